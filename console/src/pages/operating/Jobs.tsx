import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { api, bodyOf, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Button, Empty, Failure } from "../../parts";
import { Table } from "../../parts/Table";

const LOOK_EVERY_MS = 3000;

/** Documents whose reading waits, goes on, or was given up. */
export function Jobs() {
  const { t } = useTranslation();
  const format = useFormat();
  const queries = useQueryClient();
  const counts = useQuery({ queryKey: ["jobs"], queryFn: () => dataOf(api.GET("/v1/jobs")), refetchInterval: LOOK_EVERY_MS });
  const dead = useInfiniteQuery({
    queryKey: ["dead"],
    queryFn: ({ pageParam }) => dataOf(api.GET("/v1/jobs/dead", { params: { query: { page_size: 50, page_token: pageParam } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_page_token ?? undefined,
  });
  const again = () => {
    queries.invalidateQueries({ queryKey: ["dead"] });
    queries.invalidateQueries({ queryKey: ["jobs"] });
  };
  const one = useMutation({
    mutationFn: (id: string) => api.POST("/v1/jobs/dead/{dead_letter_id}/requeue", { params: { path: { dead_letter_id: id } } }),
    onSuccess: again,
  });
  const all = useMutation({
    mutationFn: () => api.POST("/v1/jobs/dead/requeue", { body: bodyOf<Schemas["RequeueMany"]>({}) }),
    onSuccess: again,
  });
  const letters = dead.data?.pages.flatMap((page) => page.dead_letters) ?? [];
  return (
    <section className="stack">
      <Failure>{(counts.error ?? dead.error ?? one.error ?? all.error)?.message}</Failure>
      {counts.data && (
        <dl className="numbers">
          <Figure name={t("operating.queued")} value={format.number(counts.data.queued_count)} />
          <Figure name={t("operating.processing")} value={format.number(counts.data.processing_count)} />
          <Figure name={t("operating.dead")} value={format.number(counts.data.dead_letter_count)} />
          {counts.data.oldest_queued_at && <Figure name={t("operating.oldest")} value={format.ago(counts.data.oldest_queued_at)} />}
        </dl>
      )}
      {dead.isSuccess && !letters.length && (
        <Empty icon="check" title={t("operating.noDead")}>
          {t("operating.noDeadHint")}
        </Empty>
      )}
      {letters.length > 0 && (
        <>
          <div className="actions start">
            <Button icon="retry" onPress={() => all.mutate()} isDisabled={all.isPending}>
              {t("operating.requeueAll")}
            </Button>
          </div>
          <Table>
            <thead>
              <tr>
                <th scope="col">{t("operating.document")}</th>
                <th scope="col">{t("operating.why")}</th>
                <th scope="col">{t("operating.last")}</th>
                <th scope="col">
                  <span className="visually-hidden">{t("operating.requeue")}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {letters.map((each) => (
                <tr key={each.id}>
                  <td dir="auto">{each.document_name}</td>
                  <td dir="auto">
                    {each.message} <span className="hint">({each.reason})</span>
                  </td>
                  <td className="tight">{each.last_failed_at ? format.moment(each.last_failed_at) : ""}</td>
                  <td>
                    <Button look="link" onPress={() => one.mutate(each.id)}>
                      {t("operating.requeue")}
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </Table>
          {dead.hasNextPage && (
            <Button look="link" onPress={() => dead.fetchNextPage()}>
              {t("common.more")}
            </Button>
          )}
        </>
      )}
    </section>
  );
}

export function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div className="card">
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
