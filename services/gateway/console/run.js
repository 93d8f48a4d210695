// What the events of a run add up to: the same fold as kit/vocabulary/run_fold.py, held to the same cases.

import { applyToken } from "./text.js";

const UNANSWERED = { ok: null, summary: "", duration_ms: null, error: null };

/** A run before its first event. `status` is "running", "waiting", or how it ended. */
export function newRun() {
  const judged = { support_status: null, method: "", answer_confidence: null, answer_status: null };
  const grounds = { ...judged, citations: [], closest: [], conflicts: [], block: null, verification: null, ending: "" };
  const steps = { degraded: [], usage: {}, tool_calls: [], approvals: [], input: null, parked: null, error: null, coverage: null, artefacts: [], safety: [] };
  return { run_id: "", thread_id: null, status: "", answer: "", ...grounds, ...steps };
}

/** Takes an event into the run. One of a kind that a newer server knows is passed over. */
export function addEvent(run, { event, data }) {
  const { run_id: id, seq: _seq, at: _at, ...own } = data;
  run.run_id = id;
  // A decision or an answer alone does not set the run going.
  if (!["approval", "input"].includes(event)) Object.assign(run, { status: "running", parked: null });
  const take = {
    run: () => (run.thread_id = own.thread_id ?? null),
    token: () => write(run, own),
    thinking: () => note(run, own.degraded ? [own.degraded] : []),
    retrieval: () => note(run, own.degraded ?? []),
    tool: () => run.tool_calls.push({ ...own, ...UNANSWERED }),
    tool_result: () => answerCall(run, own),
    approval: () => ask(run, own),
    input: () => (run.input = own.state === "pending" ? own : null),
    claim: () => judge(run, own),
    verification: () => (run.verification = own),
    answer: () => answer(run, own),
    usage: () => (run.usage = own),
    error: () => (run.error = own),
    coverage: () => own.investigation || (run.coverage = withoutStep(own)), // of an investigation it is of a part of the question only
    artefact: () => keep(run, withoutStep(own)),
    safety: () => run.safety.push(withoutStep(own)),
    parked: () => Object.assign(run, { status: "waiting", parked: own }),
    done: () => Object.assign(run, { status: own.status, approvals: [], input: null }),
  }[event];
  take?.();
}

function note(run, degraded) {
  const known = new Set(run.degraded.map((each) => JSON.stringify(each)));
  run.degraded.push(...degraded.filter((each) => !known.has(JSON.stringify(each))));
}

function answerCall(run, own) {
  const call = run.tool_calls.find((each) => each.call_id === own.call_id);
  if (call) Object.assign(call, own);
}

function ask(run, own) {
  const others = run.approvals.filter((each) => each.id !== own.approval_id);
  const asked = { ...own, run_id: run.run_id, id: own.approval_id };
  run.approvals = own.decision === "pending" ? [...others, asked] : others;
}

function write(run, own) {
  run.answer = applyToken(run.answer, own);
  if (own.offset === 0 && run.verification && !("support_status" in run.verification)) run.verification = null; // it was on what another text said
}

// While the answer is written there are only verdicts on its first claims, each with its index.
function judge(run, { index, verdict }) {
  const others = (run.verification?.sentences ?? []).filter((each) => each.index !== index);
  const sentences = [...others, { ...verdict, index }].sort((one, other) => (one.index ?? 0) - (other.index ?? 0));
  run.verification = { sentences };
}

function answer(run, own) {
  const judged = ["support_status", "method", "answer_confidence", "answer_status"];
  const grounds = [...judged, "citations", "closest", "conflicts", "block", "ending"];
  for (const name of grounds) if (name in own) run[name] = own[name];
  run.answer = own.text;
  run.verification = own.verification ?? null;
  run.coverage = own.coverage || run.coverage;
  for (const artefact of own.artefacts ?? []) keep(run, artefact);
}

function keep(run, artefact) {
  const at = run.artefacts.findIndex((each) => each.artefact_id === artefact.artefact_id);
  if (at < 0) run.artefacts.push(artefact);
  else run.artefacts[at] = artefact;
}

function withoutStep({ step: _step, ...told }) {
  return told;
}
