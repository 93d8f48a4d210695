// The agent at work: what was planned, searched, called and checked, with results, time and cost. Folded away until it is asked for.

import { useState } from "react";
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";
import type { RunEvents, Schemas } from "../../api/types";
import { degradedWords, refusalWords } from "../../api/words";
import { useFormat } from "../../i18n/format";
import { Icon } from "../../parts";
import { Arguments } from "../../parts/Arguments";
import type { IconName } from "../../parts/icons";
import { agentInWords, stepInWords, useToolName } from "../../parts/names";
import type { Followed } from "../../run/store";
import type { Step } from "../../run/trace";
import { dotted } from "../../text";
import { useFilterWords, usePlanWords } from "./progress";

const ICONS: Partial<Record<keyof RunEvents, IconName>> = {
  plan: "plan",
  retrieval: "search",
  thinking: "memory",
  tool: "tool",
  approval: "scale",
  input: "chat",
  coverage: "gauge",
  verification: "check",
  safety: "warning",
};

export function Trace({ followed, isLive }: { followed: Followed; isLive: boolean }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const { steps, otherCosts, agent } = followed;
  if (!steps.length && !otherCosts.length) return null;
  const tools = steps.filter(({ event }) => event.event === "tool").length;
  const rounds = Math.max(0, ...steps.map(({ event }) => (event.event === "retrieval" ? event.data.round : 0)));
  const details = [
    tools ? t("trace.tools", { count: tools }) : "",
    rounds > 1 ? t("trace.rounds", { count: rounds }) : "",
    agent ? agentInWords(agent.name, agent.chosen_by) : "",
  ];
  return (
    <details className="trace" data-testid="trace" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="plan" />
        <span>{dotted([t("trace.steps", { count: steps.length }), ...details])}</span>
      </summary>
      {isOpen && (
        <ol className="steps" aria-busy={isLive}>
          {steps.map((step) => (
            <StepLine key={step.key} step={step} />
          ))}
          {otherCosts.map((cost) => (
            <li key={cost.step} className="step" data-testid="step" data-state="cost">
              <Icon name="gauge" />
              <div>
                <div className="step-head">
                  <span className="step-name" dir="auto">
                    {stepInWords(cost.step)}
                  </span>
                  <StepCost cost={cost} />
                </div>
              </div>
            </li>
          ))}
        </ol>
      )}
    </details>
  );
}

function StepLine({ step }: { step: Step }) {
  const name = ICONS[step.event.event] ?? "check";
  return (
    <li className="step" data-testid="step" data-state={step.state}>
      <Icon name={step.state === "failed" ? "warning" : name} />
      <div>
        <StepBody step={step} />
      </div>
    </li>
  );
}

function StepBody({ step }: { step: Step }) {
  const { t } = useTranslation();
  const format = useFormat();
  const tool = useToolName();
  const planned = usePlanWords();
  const kept = useFilterWords();
  const { event } = step;
  switch (event.event) {
    case "plan":
      return (
        <Line step={step} words={planned(event.data)}>
          {[...event.data.reasons, ...kept(event.data)].map((line) => (
            <p key={line} className="hint" dir="auto">
              {line}
            </p>
          ))}
          {event.data.parts.length > 0 && (
            <ul className="parts">
              {event.data.parts.map((part) => (
                <li key={part} dir="auto">
                  {part}
                </li>
              ))}
            </ul>
          )}
        </Line>
      );
    case "retrieval":
      return (
        <Line
          step={step}
          words={event.data.evidence.length ? t("trace.found", { count: event.data.evidence.length }) : t("trace.foundNothing")}
        >
          <Found data={event.data} />
        </Line>
      );
    case "thinking":
      return <Line step={step} words={event.data.degraded ? degradedWords(event.data.degraded) : event.data.text} />;
    case "tool":
      return (
        <Line step={step} words={tool(event.data.name)} isName>
          <Arguments given={event.data.arguments} />
          <Result step={step} />
        </Line>
      );
    case "approval":
      return <Line step={step} words={`${tool(event.data.tool)}: ${decisionWords(step, t)}`} />;
    case "input":
      return (
        <Line
          step={step}
          words={
            event.data.state === "pending"
              ? event.data.question
              : event.data.text
                ? t("trace.you", { text: event.data.text })
                : t("trace.noAnswer")
          }
        />
      );
    case "coverage": {
      const share = format.percent(event.data.share ?? 0);
      return (
        <Line
          step={step}
          words={event.data.investigation ? t("trace.coveredOf", { share, what: event.data.investigation }) : t("trace.covered", { share })}
        />
      );
    }
    case "verification":
      return <Line step={step} words={t("trace.checked", { count: event.data.sentences.length })} />;
    case "safety":
      return <Line step={step} words={safetyWords(event.data, t)} />;
    default:
      return null;
  }
}

function decisionWords({ decision }: Step, t: TFunction): string {
  if (!decision) return t("trace.waits");
  const by = decision.decided_by;
  if (decision.decision === "allowed") return by ? t("trace.allowedBy", { by }) : t("trace.allowed");
  if (decision.decision === "denied") return by ? t("trace.deniedBy", { by }) : t("trace.denied");
  return t("trace.expired");
}

function safetyWords({ place, kind, action, passage, text }: RunEvents["safety"], t: TFunction): string {
  const where = passage ? t("safety.passage", { number: passage }) : wordOf("place", place, t);
  const done = action === "removed" || action === "ended" ? `; ${t(`safety.action_${action}`)}` : "";
  return `${where} ${wordOf("kind", kind, t)}${text ? ` (“${text}”)` : ""}${done}`;
}

function wordOf(group: "place" | "kind", word: string, t: TFunction): string {
  return t(`safety.${group}_${word}` as "safety.kind_injection", { defaultValue: word });
}

function Line({ step, words, isName = false, children }: { step: Step; words: string; isName?: boolean; children?: React.ReactNode }) {
  return (
    <>
      <div className="step-head">
        <span className={isName ? "step-name" : ""} dir="auto">
          {words}
        </span>
        <StepCost cost={step.cost} took={step.result?.duration_ms} />
      </div>
      {children}
    </>
  );
}

function StepCost({ cost, took }: { cost?: Schemas["StepUsage"]; took?: number | null }) {
  const { t } = useTranslation();
  const format = useFormat();
  const seconds = took ? took / 1000 : cost?.seconds;
  const parts = [
    seconds ? format.duration(seconds) : "",
    cost && (cost.prompt_tokens || cost.completion_tokens)
      ? t("cost.tokens", { read: format.number(cost.prompt_tokens), written: format.number(cost.completion_tokens) })
      : "",
    cost?.cost_usd ? format.dollars(cost.cost_usd) : "",
    cost?.model ?? "",
  ].filter(Boolean);
  return parts.length ? (
    <span className="hint step-cost" data-testid="step-cost">
      {dotted(parts)}
    </span>
  ) : null;
}

export function Result({ step: { result, state } }: { step: Step }) {
  const { t, i18n } = useTranslation();
  if (!result) return <p className="step-result">{state === "running" ? t("trace.running") : t("trace.unfinished")}</p>;
  const { ok, summary, error } = result;
  if (!ok) {
    const why = error && refusalWords({ reason: error.reason, detail: error.message });
    return (
      <p className="step-result" dir="auto">
        {[why || summary || t("trace.failed"), error?.reason ? `(${error.reason})` : ""].filter(Boolean).join(" ")}
      </p>
    );
  }
  if (i18n.language === "en" || !summary) {
    return (
      <p className="step-result" dir="auto">
        {summary || t("trace.done")}
      </p>
    );
  }
  // Tools write their summaries in English: in other languages they are there for a reader who opens them.
  return (
    <details className="step-result">
      <summary>{t("trace.done")}</summary>
      <p className="hint" dir="auto" lang="en">
        {summary}
      </p>
    </details>
  );
}

/** What a search found: the documents, the engines, the time of each stage, and what was left out. */
function Found({ data }: { data: RunEvents["retrieval"] }) {
  const { t } = useTranslation();
  const format = useFormat();
  const names = [...new Set(data.evidence.map((each) => each.document_name))];
  const times = Object.entries(data.timings_ms as Record<string, number>).filter(([stage]) => stage !== "total");
  return (
    <div className="found hint">
      {names.length > 0 && <p dir="auto">{dotted(names.slice(0, 8))}</p>}
      {times.length > 0 && (
        <p>
          {times
            .sort(([, one], [, other]) => other - one)
            .slice(0, 5)
            .map(
              ([stage, ms]) => `${t(`search.time_${stage}` as "search.time_embed", { defaultValue: stage })} ${format.duration(ms / 1000)}`,
            )
            .join(" · ")}
        </p>
      )}
      {data.dropped.length > 0 && <p>{t("trace.dropped", { count: data.dropped.length })}</p>}
      {data.degraded.map((each) => (
        <p key={each.reason} className="warning" dir="auto">
          {degradedWords(each)}
        </p>
      ))}
    </div>
  );
}
