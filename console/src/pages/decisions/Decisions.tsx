// What waits for a person's decision, of all runs.

import { useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { api, dataOf } from "../../api/client";
import { Button, Empty, Failure } from "../../parts";
import { ApprovalCard } from "./ApprovalCard";
import { useApprovals } from "./approvals";

export function Decisions() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { approvals, error, isSuccess } = useApprovals();
  const show = async (runId: string) => {
    const run = await dataOf(api.GET("/v1/runs/{run_id}", { params: { path: { run_id: runId } } }));
    navigate({ to: "/conversations/$threadId", params: { threadId: run.thread_id ?? `run-${runId}` }, search: { answer: runId } });
  };
  return (
    <div className="column wide" data-testid="approvals">
      <header className="page-head">
        <h1>{t("shell.decisions")}</h1>
        <p className="lead">{t("decisions.lead")}</p>
      </header>
      <Failure>{error?.message}</Failure>
      {isSuccess && !approvals.length && (
        <Empty icon="scale" title={t("decisions.none")}>
          {t("decisions.noneHint")}
        </Empty>
      )}
      {approvals.map((asked) => (
        <ApprovalCard key={asked.id} asked={asked}>
          <Button look="link" onPress={() => show(asked.run_id)} data-testid="show-run">
            {t("decisions.showRun")}
          </Button>
        </ApprovalCard>
      ))}
    </div>
  );
}
