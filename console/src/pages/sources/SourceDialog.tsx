import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Button, Confirm, Dialog, Failure, Status } from "../../parts";
import { Table } from "../../parts/Table";
import { ChangeSource } from "./ChangeSource";
import type { Source } from "./Sources";

const LOOK_EVERY_MS = 1000;

/** One source: how far it is, each file that fails with what to do, and what a person can do with it. */
export function SourceDialog({ id, onClose, onChange }: { id: string; onClose: () => void; onChange: () => void }) {
  const { t } = useTranslation();
  const [isRemoving, setRemoving] = useState(false);
  const [isChanging, setChanging] = useState(false);
  const params = { path: { source_id: id } };
  const source = useQuery({
    queryKey: ["source", id],
    queryFn: () => dataOf(api.GET("/v1/sources/{source_id}", { params })),
    refetchInterval: isRemoving ? false : LOOK_EVERY_MS,
    retry: false,
  });
  const again = () => {
    source.refetch();
    onChange();
  };
  const run = useMutation({
    mutationFn: (accept_empty: boolean) => api.POST("/v1/sources/{source_id}/run", { params, body: { accept_empty } }),
    onSuccess: again,
  });
  const pause = useMutation({
    mutationFn: (paused: boolean) => api.PATCH("/v1/sources/{source_id}", { params, body: bodyOf<Schemas["ChangedSource"]>({ paused }) }),
    onSuccess: again,
  });
  const remove = async () => {
    await api.DELETE("/v1/sources/{source_id}", { params });
    onClose();
    onChange();
  };
  const shown = source.data;
  const isPaused = shown?.state === "paused";
  return (
    <Dialog title={shown?.name ?? t("common.loading")} isOpen onClose={onClose}>
      <div className="stack" data-testid="source">
        <Failure>{(source.error ?? run.error ?? pause.error)?.message}</Failure>
        {shown && <Progress source={shown} />}
        {shown?.error?.reason === "SOURCE_EMPTY" && (
          <Button onPress={() => run.mutate(true)} isDisabled={run.isPending}>
            {t("sourcesPage.acceptEmpty")}
          </Button>
        )}
        {shown && shown.failing.length > 0 && <FailingFiles source={shown} />}
        <div className="actions start">
          <Button icon="retry" look="primary" onPress={() => run.mutate(false)} isDisabled={isPaused || run.isPending}>
            {t("sourcesPage.run")}
          </Button>
          <Button icon={isPaused ? "next" : "stop"} onPress={() => pause.mutate(!isPaused)} isDisabled={!shown || pause.isPending}>
            {t(isPaused ? "sourcesPage.resume" : "sourcesPage.pause")}
          </Button>
          <Button icon="settings" onPress={() => setChanging(true)} isDisabled={!shown} data-testid="source-change">
            {t("sourcesPage.change")}
          </Button>
          <Button icon="trash" look="danger" onPress={() => setRemoving(true)} isDisabled={!shown}>
            {t("common.delete")}
          </Button>
        </div>
      </div>
      {isChanging && shown && <ChangeSource source={shown} onClose={() => setChanging(false)} onChange={again} />}
      <Confirm
        title={t("sourcesPage.removeTitle", { name: shown?.name ?? "" })}
        action={t("common.delete")}
        isOpen={isRemoving}
        onClose={() => setRemoving(false)}
        onConfirm={remove}
      >
        <p>{t("sourcesPage.removeHint")}</p>
      </Confirm>
    </Dialog>
  );
}

function Progress({ source }: { source: Source }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { sync } = source;
  return (
    <>
      <Failure>{source.error?.message}</Failure>
      <Failure>
        {source.access?.error &&
          t(source.access.withheld ? "sourcesPage.accessWithheld" : "sourcesPage.accessLate", { why: source.access.error.message })}
      </Failure>
      <Status>
        <strong>{t(`sourcesPage.state_${source.state}`)}</strong>
        {sync && source.state === "syncing" && (
          <> · {t("sourcesPage.taken", { done: format.number(sync.done_count), total: format.number(sync.total_count) })}</>
        )}
        {source.pending_count > 0 && <> · {t("sourcesPage.pending", { count: source.pending_count })}</>}
      </Status>
      {sync?.ended_at && (
        <p className="hint">
          {t("sourcesPage.last", {
            at: format.moment(sync.ended_at),
            added: format.number(sync.added_count),
            changed: format.number(sync.changed_count),
            moved: format.number(sync.moved_count),
            removed: format.number(sync.removed_count),
          })}
        </p>
      )}
      <dl className="facts">
        <div>
          <dt>{t("sourcesPage.everyFact")}</dt>
          <dd>{format.duration(source.every_s)}</dd>
        </div>
        {source.access && (
          <div>
            <dt>{t("sourcesPage.accessFact")}</dt>
            <dd>
              {source.access.refreshed_at
                ? t("sourcesPage.accessAt", {
                    at: format.moment(source.access.refreshed_at),
                    every: format.duration(source.access.every_s),
                  })
                : format.duration(source.access.every_s)}
            </dd>
          </div>
        )}
        {Object.entries(source.settings).map(([name, value]) => (
          <div key={name}>
            <dt dir="ltr">{name}</dt>
            <dd dir="auto">{value}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function FailingFiles({ source }: { source: Source }) {
  const { t } = useTranslation();
  return (
    <section>
      <h3>{t("sourcesPage.failingFiles", { count: source.failing_count })}</h3>
      <Table>
        <thead>
          <tr>
            <th scope="col">{t("sourcesPage.file")}</th>
            <th scope="col">{t("sourcesPage.why")}</th>
          </tr>
        </thead>
        <tbody>
          {source.failing.map((file) => (
            <tr key={file.path}>
              <td dir="auto">{file.path}</td>
              <td dir="auto">
                {file.message} <span className="hint">({file.reason})</span>
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
    </section>
  );
}
