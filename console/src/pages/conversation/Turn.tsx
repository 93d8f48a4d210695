// A question with its answer: how it is made, what it says, what carries it, and what can be done with it.

import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { api, download } from "../../api/client";
import { degradedWords, refusalWords } from "../../api/words";
import { Artefacts } from "../../artefacts/Artefacts";
import { openPassage } from "../../passage/shown";
import { useFormat } from "../../i18n/format";
import { ActionMenu, Button, Failure, Icon, IconButton, Status, type Choice } from "../../parts";
import type { FoldedRun } from "../../run/fold";
import { attachRun, useRun, type Followed, type RunStore } from "../../run/store";
import { useKey } from "../../shell/keys";
import { dotted } from "../../text";
import { ApprovalCard } from "../decisions/ApprovalCard";
import { askedOf } from "../decisions/approvals";
import { AnswerText } from "./AnswerText";
import type { Asking } from "./asking";
import { textWithSources } from "./copying";
import { Claims, Conflicts, Coverage, Closest, Sources, Verdicts } from "./Grounds";
import { InputBox } from "./InputBox";
import { useProgress } from "./progress";
import { Trace } from "./Trace";
import { runOfMessage, type TurnData } from "./turns";

export interface TurnProps {
  data?: TurnData;
  store: RunStore | undefined;
  threadId?: string;
  isLast?: boolean;
  isLinked?: boolean;
  onEdit?: (text: string) => void;
  onAskAgain?: (text: string, change: Partial<Asking>) => void;
}

export function Turn({ data, store: given, threadId = "", isLast = false, isLinked = false, onEdit, onAskAgain }: TurnProps) {
  const { t } = useTranslation();
  const [attached, attach] = useState<RunStore>();
  const store = given ?? attached;
  const followed = useRun(store);
  const fromMessage = useMemo(() => runOfMessage(data?.answer ?? null, threadId), [data?.answer, threadId]);
  const isFollowed = followed.run.answer || (given && !followed.isOver) || !data?.answer;
  const run = store && followed.run.run_id && isFollowed ? followed.run : fromMessage;
  const runId = data?.runId || store?.runId || "";
  const isOver = store ? followed.isOver : true;
  const question = data?.question?.text || followed.started?.question || followed.question;
  const element = useRef<HTMLElement>(null);
  // The last answer is shown with all that its events tell, also after a reload; of earlier ones when it is asked for.
  useEffect(() => {
    if (isLast && !given && data?.answer && !data.answer.forgotten && runId) attach(attachRun(runId, data.question?.text));
  }, [isLast, given, data, runId]);
  useEffect(() => {
    if (isLinked) element.current?.scrollIntoView({ block: "start" });
  }, [isLinked]);
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(textWithSources(run));
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  useKey("copyAnswer", copy, isLast && Boolean(run.answer));
  const open = (number: number) => {
    const cited = run.citations.find((each) => each.number === number) ?? followed.evidence.find((each) => each.number === number);
    if (cited) openPassage({ number, run, runId, evidence: followed.evidence, dropped: followed.dropped });
  };
  const isModel = Boolean(followed.started?.model) || run.method === "model";
  const words = <AnswerText run={run} evidence={followed.evidence} isModel={isModel} isLive={!isOver} onOpen={open} />;
  // Without a model the words only list what the artefact shows.
  const isSaidTwice = isOver && !isModel && run.artefacts.length > 0;
  return (
    <article
      ref={element}
      className={`turn ${isLinked ? "is-linked" : ""}`}
      aria-label={question}
      data-testid="turn"
      id={`answer-${runId}`}
    >
      {question && (
        <div className="asked" data-testid="asked">
          <p dir="auto">{question}</p>
          {onEdit && <IconButton label={t("answer.edit")} icon="edit" onPress={() => onEdit(question)} />}
        </div>
      )}
      <div className="answer-part">
        {store ? (
          <Trace followed={followed} isLive={!isOver} />
        ) : (
          runId && (
            <Button look="link" className="trace-load" onPress={() => attach(attachRun(runId))} data-testid="show-steps">
              <Icon name="plan" /> {t("trace.show")}
            </Button>
          )
        )}
        {!isOver && <Progress followed={followed} />}
        {run.approvals.map((each) => (
          <ApprovalCard key={each.id} asked={askedOf(each)} />
        ))}
        {run.input && <InputBox runId={run.run_id} input={run.input} />}
        {isSaidTwice ? <Artefacts run={run} isOver={isOver} /> : words}
        <Ending run={run} followed={followed} isOver={isOver} isForgotten={data?.answer?.forgotten ?? false} />
        {isSaidTwice ? (
          <details className="as-text">
            <summary>{t("artefact.asText")}</summary>
            {words}
          </details>
        ) : (
          <Artefacts run={run} isOver={isOver} />
        )}
        <Grounds run={run} followed={followed} isOver={isOver}>
          {isOver && run.answer && (
            <Actions
              runId={runId}
              threadId={threadId}
              question={question}
              copied={copied}
              onCopy={copy}
              onAskAgain={onAskAgain}
              hasReport={run.status === "completed" || run.status === "refused" || run.status === "timeout"}
            />
          )}
        </Grounds>
      </div>
    </article>
  );
}

function Grounds({ run, followed, isOver, children }: { run: FoldedRun; followed: Followed; isOver: boolean; children: ReactNode }) {
  return (
    <>
      <Closest run={run} />
      <Conflicts run={run} />
      <Sources run={run} followed={followed} />
      <Coverage run={run} followed={followed} />
      <Claims run={run} />
      {isOver && <Verdicts run={run} />}
      <div className="answer-foot">
        {children}
        <Cost run={run} />
      </div>
    </>
  );
}

/** What is being done now, in words. */
function Progress({ followed }: { followed: Followed }) {
  const { t } = useTranslation();
  const words = useProgress()(followed);
  return (
    <Status className="progress">
      <span className="pulse" aria-hidden="true" /> {followed.isLost ? t("progress.lost") : words}
    </Status>
  );
}

/** How the run ended where that is not plain, and what was done in a lesser way than asked. */
function Ending({ run, followed, isOver, isForgotten }: { run: FoldedRun; followed: Followed; isOver: boolean; isForgotten: boolean }) {
  const { t } = useTranslation();
  const words: Record<string, string> = {
    cancelled: t("answer.cancelled"),
    timeout: t("answer.timeout"),
    failed: run.error || followed.problem ? "" : t("answer.failed"),
  };
  const text = isOver ? words[run.status] : "";
  return (
    <>
      <Failure data-testid="answer-problem">
        {followed.problem || (run.error && refusalWords({ reason: run.error.reason, detail: run.error.message }))}
      </Failure>
      {text && (
        <p className="hint" data-testid="ending">
          {text}
        </p>
      )}
      {isForgotten && <p className="hint">{t("answer.forgotten")}</p>}
      {run.degraded.length > 0 && (
        <ul className="degraded" aria-label={t("answer.degraded")} data-testid="degraded">
          {run.degraded.map((each) => (
            <li key={each.part + each.reason} dir="auto">
              <Icon name="warning" /> <span>{degradedWords(each)}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Cost({ run: { usage, method, citations } }: { run: FoldedRun }) {
  const { t } = useTranslation();
  const format = useFormat();
  if (usage.seconds === undefined && !usage.model) return null;
  const { prompt_tokens: read = 0, completion_tokens: written = 0, tool_calls: calls = 0, cost_usd: cost, seconds } = usage;
  // A model may have been asked before its answer was given up for a quote.
  const quoted = citations.length ? t(read || written ? "cost.quotedAfter" : "cost.quoted") : read || written ? "" : t("cost.noModel");
  const parts = [
    usage.model || (method === "model" ? t("cost.model") : quoted),
    read || written ? t("cost.tokens", { read: format.number(read), written: format.number(written) }) : "",
    calls ? t("cost.calls", { count: calls }) : "",
    cost ? format.dollars(cost) : "",
    seconds ? format.duration(seconds) : "",
  ];
  return (
    <p className="cost" data-testid="cost">
      {dotted(parts)}
    </p>
  );
}

function Actions({
  runId,
  threadId,
  question,
  copied,
  onCopy,
  onAskAgain,
  hasReport,
}: {
  runId: string;
  threadId: string;
  question: string;
  copied: boolean;
  onCopy: () => void;
  onAskAgain?: (text: string, change: Partial<Asking>) => void;
  hasReport: boolean;
}) {
  const { t } = useTranslation();
  const [problem, setProblem] = useState("");
  const report = (form: "markdown" | "docx") =>
    download(`/v1/runs/${runId}/report?format=${form}`).catch((error: Error) => setProblem(error.message));
  const link = `${location.origin}/conversations/${threadId || `run-${runId}`}?answer=${runId}`;
  const again: Choice[] = onAskAgain
    ? [
        { id: "again", label: t("answer.again"), icon: "retry", act: () => onAskAgain(question, {}) },
        { id: "low", label: t("answer.againLow"), icon: "search", act: () => onAskAgain(question, { way: "research", effort: "low" }) },
        { id: "high", label: t("answer.againHigh"), icon: "search", act: () => onAskAgain(question, { way: "research", effort: "high" }) },
        { id: "tools", label: t("answer.againTools"), icon: "tool", act: () => onAskAgain(question, { way: "chat" }) },
      ]
    : [];
  const more: Choice[] = [
    { id: "link", label: t("answer.link"), icon: "link", act: () => navigator.clipboard.writeText(link) },
    ...(hasReport
      ? [
          { id: "markdown", label: t("answer.markdown"), icon: "download" as const, act: () => void report("markdown") },
          { id: "docx", label: t("answer.docx"), icon: "download" as const, act: () => void report("docx") },
        ]
      : []),
    {
      id: "delete",
      label: t("answer.deleteRun"),
      icon: "trash",
      isDanger: true,
      act: () =>
        void api.DELETE("/v1/runs/{run_id}", { params: { path: { run_id: runId } } }).catch((error: Error) => setProblem(error.message)),
    },
  ];
  return (
    <div className="answer-actions">
      <IconButton
        label={copied ? t("answer.copied") : t("answer.copy")}
        icon={copied ? "check" : "copy"}
        onPress={onCopy}
        data-testid="copy"
      />
      {again.length > 0 && <ActionMenu label={t("answer.againMenu")} icon="retry" choices={again} testId="again" />}
      <ActionMenu label={t("answer.more")} choices={more} testId="answer-more" />
      <Failure>{problem}</Failure>
    </div>
  );
}
