import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useFormat } from "../../i18n/format";
import { Button, Failure, Icon } from "../../parts";
import { Arguments } from "../../parts/Arguments";
import { useToolName } from "../../parts/names";
import { isMine, useDecide, type Asked } from "./approvals";

/** A call with its arguments in full, what is doubtful about it, and the buttons that decide about it. */
export function ApprovalCard({ asked, children }: { asked: Asked; children?: ReactNode }) {
  const { t } = useTranslation();
  const format = useFormat();
  const tool = useToolName()(asked.tool);
  const decide = useDecide(asked);
  const isDone = decide.isPending || decide.isSuccess;
  return (
    <article className="approval card" data-testid="question" aria-label={t("decisions.ask", { tool })}>
      <h2>
        <Icon name="scale" /> {t("decisions.ask", { tool })}
      </h2>
      <Arguments given={asked.arguments ?? {}} marked={asked.tainted_arguments ?? []} none={t("decisions.noArguments")} />
      {asked.is_tainted && (
        <p className="warning" data-testid="taint">
          <Icon name="warning" />
          <span>
            {t("decisions.tainted")}{" "}
            {asked.tainted_arguments?.length ? t("decisions.taintedIn", { names: format.list(asked.tainted_arguments) }) : ""}
          </span>
        </p>
      )}
      {asked.expires_at && <p className="hint">{t("decisions.expires", { moment: format.moment(asked.expires_at) })}</p>}
      <Failure>{decide.error?.message}</Failure>
      <div className="actions">
        {children}
        {isMine(asked) ? (
          <>
            <Button
              onPress={() => decide.mutate("deny")}
              isDisabled={isDone}
              data-testid="deny"
              aria-label={t("decisions.denyTool", { tool })}
            >
              {t("decisions.deny")}
            </Button>
            <Button
              look="primary"
              onPress={() => decide.mutate("allow")}
              isDisabled={isDone}
              data-testid="allow"
              aria-label={t("decisions.allowTool", { tool })}
            >
              {t("decisions.allow")}
            </Button>
          </>
        ) : (
          <p className="hint">
            {t("decisions.others", { names: format.list(asked.may_decide?.length ? asked.may_decide : [asked.subject ?? ""]) })}
          </p>
        )}
      </div>
    </article>
  );
}
