import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, dataOf } from "../../api/client";
import type { Run } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Button, Empty, Failure } from "../../parts";
import { Table } from "../../parts/Table";

const PAGE = 50;

/** The runs with how they ended and what they cost; those of research by default. */
export function Runs() {
  const { t } = useTranslation();
  const [all, setAll] = useState(false);
  const runs = useInfiniteQuery({
    queryKey: ["runs"],
    queryFn: ({ pageParam }) => dataOf(api.GET("/v1/runs", { params: { query: { page_size: PAGE, page_token: pageParam } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_page_token ?? undefined,
  });
  const shown = (runs.data?.pages.flatMap((page) => page.runs) ?? []).filter((each) => all || each.mode === "agent");
  return (
    <section className="stack">
      <label className="check">
        <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} /> {t("runs.all")}
      </label>
      <Failure>{runs.error?.message}</Failure>
      {runs.isPending && <p className="loading">{t("common.loading")}</p>}
      {runs.isSuccess && !shown.length && (
        <Empty icon="search" title={t("runs.none")}>
          {t("runs.noneHint")}
        </Empty>
      )}
      {shown.length > 0 && (
        <Table>
          <thead>
            <tr>
              <th scope="col">{t("runs.question")}</th>
              <th scope="col">{t("runs.subject")}</th>
              <th scope="col">{t("runs.status")}</th>
              <th scope="col">{t("runs.at")}</th>
              <th scope="col">{t("usage.tokens")}</th>
              <th scope="col">{t("usage.cost")}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((run) => (
              <RunRow key={run.id} run={run} />
            ))}
          </tbody>
        </Table>
      )}
      {runs.hasNextPage && (
        <Button look="link" onPress={() => runs.fetchNextPage()}>
          {t("common.more")}
        </Button>
      )}
    </section>
  );
}

function RunRow({ run }: { run: Run }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { data } = useQuery({
    queryKey: ["run", run.id, run.status],
    queryFn: () => dataOf(api.GET("/v1/runs/{run_id}", { params: { path: { run_id: run.id } } })),
    staleTime: 60_000,
  });
  const usage = data?.usage;
  return (
    <tr>
      <td dir="auto">
        <Link to="/conversations/$threadId" params={{ threadId: run.thread_id ?? `run-${run.id}` }} search={{ answer: run.id }}>
          {run.question}
        </Link>
      </td>
      <td dir="auto">{run.subject}</td>
      <td>{t(`runs.status_${run.status}` as "runs.status_completed", { defaultValue: run.status ?? "" })}</td>
      <td className="tight">{run.created_at ? format.moment(run.created_at) : ""}</td>
      <td className="tight">{usage ? format.number((usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0)) : ""}</td>
      <td className="tight">{usage ? format.dollars(usage.cost_usd ?? 0) : ""}</td>
    </tr>
  );
}
