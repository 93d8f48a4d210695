// What the events of a run add up to: the same fold as kit/vocabulary/run_fold.py, held to the cases in tests/data/run_folds.json.

import type { Citation, Degradation, RunEvent, RunEvents, Schemas, Verification } from "../api/types";
import { applyToken } from "../text";

type Own<Name extends keyof RunEvents> = Omit<RunEvents[Name], "run_id" | "seq" | "at">;
type WithoutStep<Name extends keyof RunEvents> = Omit<Own<Name>, "step">;

export type ToolCall = Own<"tool"> & Pick<RunEvents["tool_result"], "summary" | "duration_ms" | "error"> & { ok: boolean | null };
export type AskedApproval = Own<"approval"> & { run_id: string; id: string | null };
export type FoldedClaim = Schemas["SentenceVerdict"] & { index?: number };

/** A run as far as its events have come. `status` is "", "running", "waiting", or how it ended. */
export interface FoldedRun {
  run_id: string;
  thread_id: string | null;
  status: string;
  answer: string;
  support_status: string | null;
  method: string;
  answer_confidence: number | null;
  answer_status: string | null;
  citations: Citation[];
  closest: Citation[];
  conflicts: Schemas["Conflict"][];
  block: unknown;
  verification: (Partial<Omit<Verification, "sentences">> & { sentences: FoldedClaim[] }) | null;
  ending: string;
  degraded: Degradation[];
  usage: Partial<Own<"usage">>;
  tool_calls: ToolCall[];
  approvals: AskedApproval[];
  input: Own<"input"> | null;
  parked: Own<"parked"> | null;
  error: Own<"error"> | null;
  coverage: WithoutStep<"coverage"> | Schemas["Coverage"] | null;
  artefacts: (WithoutStep<"artefact"> | Schemas["Artefact"])[];
  safety: WithoutStep<"safety">[];
}

export const NEW_RUN: FoldedRun = {
  run_id: "",
  thread_id: null,
  status: "",
  answer: "",
  support_status: null,
  method: "",
  answer_confidence: null,
  answer_status: null,
  citations: [],
  closest: [],
  conflicts: [],
  block: null,
  verification: null,
  ending: "",
  degraded: [],
  usage: {},
  tool_calls: [],
  approvals: [],
  input: null,
  parked: null,
  error: null,
  coverage: null,
  artefacts: [],
  safety: [],
};

/** The run after one more event. One of a kind that a newer server knows is passed over. */
export function foldEvent(before: FoldedRun, event: RunEvent): FoldedRun {
  // A decision or an answer alone does not set the run going.
  const isDecision = event.event === "approval" || event.event === "input";
  const run: FoldedRun = { ...before, run_id: event.data.run_id, ...(isDecision ? {} : { status: "running", parked: null }) };
  switch (event.event) {
    case "run":
      return { ...run, thread_id: event.data.thread_id ?? null };
    case "token":
      return withToken(run, event.data);
    case "thinking":
      return { ...run, degraded: withNew(run.degraded, event.data.degraded ? [event.data.degraded] : []) };
    case "retrieval":
      return { ...run, degraded: withNew(run.degraded, event.data.degraded ?? []) };
    case "tool":
      return { ...run, tool_calls: [...run.tool_calls, { ...own(event.data), ok: null, summary: "", duration_ms: null, error: null }] };
    case "tool_result":
      return {
        ...run,
        tool_calls: run.tool_calls.map((each) => (each.call_id === event.data.call_id ? { ...each, ...own(event.data) } : each)),
      };
    case "approval":
      return { ...run, approvals: withApproval(run, event.data) };
    case "input":
      return { ...run, input: event.data.state === "pending" ? own(event.data) : null };
    case "claim":
      return { ...run, verification: withClaim(run, event.data) };
    case "verification":
      return { ...run, verification: own(event.data) as FoldedRun["verification"] };
    case "answer":
      return withAnswer(run, own(event.data));
    case "usage":
      return { ...run, usage: own(event.data) };
    case "error":
      return { ...run, error: own(event.data) };
    case "coverage":
      // Of an investigation it is of a part of the question only.
      return event.data.investigation ? run : { ...run, coverage: withoutStep(own(event.data)) };
    case "artefact":
      return { ...run, artefacts: withArtefact(run.artefacts, withoutStep(own(event.data))) };
    case "safety":
      return { ...run, safety: [...run.safety, withoutStep(own(event.data))] };
    case "parked":
      return { ...run, status: "waiting", parked: own(event.data) };
    case "done":
      return { ...run, status: event.data.status ?? "", approvals: [], input: null };
    default:
      return run;
  }
}

function own<T extends { run_id: string; seq: number; at?: unknown }>({
  run_id: _run,
  seq: _seq,
  at: _at,
  ...rest
}: T): Omit<T, "run_id" | "seq" | "at"> {
  return rest;
}

function withoutStep<T extends { step: string }>({ step: _step, ...rest }: T): Omit<T, "step"> {
  return rest;
}

function withToken(run: FoldedRun, token: RunEvents["token"]): FoldedRun {
  // Verdicts so far were on the text that is taken back.
  const isTakenBack = token.offset === 0 && run.verification !== null && !("support_status" in run.verification);
  return { ...run, answer: applyToken(run.answer, token), ...(isTakenBack ? { verification: null } : {}) };
}

function withNew(known: Degradation[], degraded: Degradation[]): Degradation[] {
  const keys = new Set(known.map((each) => JSON.stringify(each)));
  return [...known, ...degraded.filter((each) => !keys.has(JSON.stringify(each)))];
}

function withApproval(run: FoldedRun, data: RunEvents["approval"]): AskedApproval[] {
  const others = run.approvals.filter((each) => each.id !== data.approval_id);
  return data.decision === "pending" ? [...others, { ...own(data), run_id: run.run_id, id: data.approval_id }] : others;
}

// While the answer is written there are only verdicts on its first claims, each with its index.
function withClaim(run: FoldedRun, { index, verdict }: RunEvents["claim"]): FoldedRun["verification"] {
  const known: FoldedClaim[] = run.verification?.sentences ?? [];
  const others = known.filter((each) => each.index !== index);
  const sentences: FoldedClaim[] = [...others, { ...verdict, index } as FoldedClaim];
  return { sentences: sentences.sort((one, other) => (one.index ?? 0) - (other.index ?? 0)) };
}

const GROUNDS = [
  "support_status",
  "method",
  "answer_confidence",
  "answer_status",
  "citations",
  "closest",
  "conflicts",
  "block",
  "ending",
] as const;

function withAnswer(run: FoldedRun, data: Own<"answer">): FoldedRun {
  const grounds = Object.fromEntries(GROUNDS.filter((name) => name in data).map((name) => [name, data[name]]));
  const artefacts = (data.artefacts ?? []).reduce<FoldedRun["artefacts"]>(withArtefact, run.artefacts);
  return {
    ...run,
    ...grounds,
    answer: data.text,
    verification: (data.verification as FoldedRun["verification"]) ?? null,
    coverage: data.coverage || run.coverage,
    artefacts,
  };
}

function withArtefact(known: FoldedRun["artefacts"], artefact: FoldedRun["artefacts"][number]): FoldedRun["artefacts"] {
  const at = known.findIndex((each) => each.artefact_id === artefact.artefact_id);
  return at < 0 ? [...known, artefact] : known.with(at, artefact);
}
