// The agent at work: the steps of a run as its events tell them, with what came of each and what it cost.

import type { Evidence, RunEvent, RunEvents, Schemas } from "../api/types";
import { NEW_RUN, foldEvent, type FoldedRun } from "./fold";

/** One line of the trace: the event that began it and what is known of it by now. */
export interface Step {
  key: string;
  event: RunEvent;
  state: "note" | "running" | "waiting" | "ok" | "failed" | "degraded";
  result?: RunEvents["tool_result"];
  decision?: RunEvents["approval"];
  cost?: Schemas["StepUsage"];
}

/** A run with what a person wants to see of its way. */
export interface RunView {
  run: FoldedRun;
  started: RunEvents["run"] | null;
  agent: RunEvents["agent"] | null;
  steps: Step[];
  /** Costs of steps that have no line of their own, such as a model's words. */
  otherCosts: Schemas["StepUsage"][];
  evidence: Evidence[];
  dropped: Schemas["DroppedPassage"][];
  /** What happened last, for the line above the answer. */
  last: RunEvent | null;
}

export const NEW_VIEW: RunView = {
  run: NEW_RUN,
  started: null,
  agent: null,
  steps: [],
  otherCosts: [],
  evidence: [],
  dropped: [],
  last: null,
};

/** The view after one more event: the one place where events of runs are read. */
export function addEvent(view: RunView, event: RunEvent): RunView {
  const next = { ...view, run: foldEvent(view.run, event), last: event.event === "token" ? view.last : event };
  switch (event.event) {
    case "run":
      return { ...next, started: event.data };
    case "agent":
      return { ...next, agent: event.data };
    case "retrieval":
      return { ...withStep(next, event, "note"), ...found(view, event.data) };
    case "plan":
      return withStep(next, event, "note");
    case "thinking":
      return event.data.text || event.data.degraded ? withNote(next, event) : next;
    case "coverage":
    case "verification":
      return withStep(next, event, "note");
    case "safety":
      return withStep(next, event, "degraded");
    case "input":
      return withStep(next, event, event.data.state === "pending" ? "waiting" : "note");
    case "tool":
      return withStep(next, event, "running");
    case "tool_result":
      return {
        ...next,
        steps: next.steps.map((step) =>
          isCall(step, event.data) ? { ...step, result: event.data, state: event.data.ok ? "ok" : "failed" } : step,
        ),
      };
    case "approval":
      return withDecision(next, event);
    case "usage":
      return withCosts(next, event.data.steps ?? []);
    case "done":
      return { ...next, steps: next.steps.map(ended) };
    default:
      return next;
  }
}

function found(view: RunView, { evidence, dropped, investigation }: RunEvents["retrieval"]): Pick<RunView, "evidence" | "dropped"> {
  if (investigation) return { evidence: view.evidence, dropped: [...view.dropped, ...dropped] };
  return { evidence, dropped: [...view.dropped, ...dropped] };
}

function withStep(view: RunView, event: RunEvent, state: Step["state"]): RunView {
  return { ...view, steps: [...view.steps, { key: String(event.data.seq), event, state }] };
}

/** A thought that says what the line before says is left out. */
function withNote(view: RunView, event: RunEvent & { event: "thinking" }): RunView {
  const before = view.steps.at(-1)?.event;
  if (before?.event === "thinking" && before.data.text === event.data.text && !event.data.degraded) return view;
  return withStep(view, event, event.data.degraded ? "degraded" : "note");
}

function isCall({ event }: Step, { call_id: id }: { call_id?: string | null }): boolean {
  return event.event === "tool" && event.data.call_id === id;
}

function withDecision(view: RunView, event: RunEvent & { event: "approval" }): RunView {
  const { approval_id: id, decision } = event.data;
  if (decision === "pending") return withStep(view, event, "waiting");
  const state = decision === "allowed" ? "ok" : "failed";
  return {
    ...view,
    steps: view.steps.map((step) =>
      step.event.event === "approval" && step.event.data.approval_id === id ? { ...step, decision: event.data, state } : step,
    ),
  };
}

function withCosts(view: RunView, costs: Schemas["StepUsage"][]): RunView {
  const steps = [...view.steps];
  const others: Schemas["StepUsage"][] = [];
  for (const cost of costs) {
    if (!cost.prompt_tokens && !cost.completion_tokens && !cost.cost_usd && !cost.seconds) continue;
    const calls = steps.findIndex(({ event }) => event.event === "tool" && event.data.step === cost.step);
    const at = calls >= 0 ? calls : steps.findIndex(({ event }) => event.data.step === cost.step);
    const step = steps[at];
    if (cost.step && step) steps[at] = { ...step, cost };
    else others.push(cost);
  }
  return { ...view, steps, otherCosts: others };
}

function ended(step: Step): Step {
  return step.state === "running" || (step.state === "waiting" && step.event.event === "approval") ? { ...step, state: "failed" } : step;
}
