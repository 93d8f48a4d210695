// Calls of tools that wait for a person: asked about in the run's card, and listed for all runs, also after a reload.

import { byId, make, setText } from "./dom.js";
import { inWords } from "./names.js";
import { Problem, call } from "./sse.js";
import { argumentList } from "./steps.js";

const LOOK_EVERY_MS = 20000;
const dialog = byId("approvals");
let showRun = () => {};
let looking = null;

/** The questions of the run in the card. Make a new one for each run. */
export class Decisions {
  #boxes = new Map();

  constructor() {
    byId("decisions").replaceChildren();
  }

  /** Shows the questions that nobody has decided, as the run's events have them. */
  show(pending) {
    const open = new Map(pending.map((asked) => [asked.id, asked]));
    const gone = [...this.#boxes.keys()].filter((id) => !open.has(id));
    const asked = pending.filter(({ id }) => !this.#boxes.has(id));
    if (!gone.length && !asked.length) return;
    for (const id of gone) {
      this.#boxes.get(id).remove();
      this.#boxes.delete(id);
    }
    for (const each of asked) this.#boxes.set(each.id, questionBox(each));
    byId("decisions").append(...asked.map(({ id }) => this.#boxes.get(id)));
    refreshApprovals();
  }
}

/** Watches what waits, for the badge and the list. `show(runId)` brings a run into the card. */
export function startApprovals(show) {
  showRun = show;
  byId("approvals-open").addEventListener("click", () => {
    dialog.showModal();
    refreshApprovals();
  });
  byId("approvals-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // the backdrop
  });
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && refreshApprovals());
  refreshApprovals();
}

/** Looks what waits now. */
export function refreshApprovals() {
  clearTimeout(looking);
  looking = setTimeout(look, 0); // events that come together are one reason to look
}

async function look() {
  try {
    const { approvals } = await (await call("/v1/approvals")).json();
    drawList(approvals);
    setText(byId("approvals-state"), approvals.length ? "" : "Nothing waits any more.");
  } catch (error) {
    setText(byId("approvals-state"), error instanceof Problem ? error.message : "The server does not answer.");
  }
  clearTimeout(looking);
  looking = setTimeout(() => (document.visibilityState === "visible" ? look() : undefined), LOOK_EVERY_MS);
}

function drawList(approvals) {
  setText(byId("approvals-count"), String(approvals.filter(isMine).length));
  byId("approvals-open").hidden = approvals.length === 0 && !dialog.open;
  const list = byId("approvals-list");
  const ids = new Set(approvals.map(({ id }) => id));
  for (const box of [...list.children]) if (!ids.has(box.dataset.id)) box.remove();
  const drawn = new Set([...list.children].map((box) => box.dataset.id));
  // What is drawn stays as it is, so that a focused button keeps its focus.
  list.append(...approvals.filter(({ id }) => !drawn.has(id)).map((asked) => questionBox(asked, true)));
}

/** A call with its arguments, and the buttons that decide about it. */
function questionBox(asked, listed = false) {
  const failure = make("p", { className: "failure", hidden: true, attributes: { role: "alert" } });
  const choice = (word, decision, className) =>
    make("button", { type: "button", className, dataset: { testid: decision }, attributes: { "aria-label": `${word}: ${inWords(asked.tool)}` } }, word);
  const allow = choice("Allow", "allow", "primary");
  const deny = choice("Deny", "deny", "secondary");
  const open = make("button", { type: "button", className: "link", hidden: !listed, dataset: { testid: "show-run" } }, "Show the run");
  const decide = async (decision) => {
    allow.disabled = deny.disabled = true;
    failure.hidden = true;
    try {
      const body = JSON.stringify({ decision, arguments_hash: asked.arguments_hash });
      await call(`/v1/approvals/${encodeURIComponent(asked.id)}`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
      setText(failure, "");
      if (listed) show(asked.run_id);
      refreshApprovals();
    } catch (error) {
      setText(failure, error.message);
      failure.hidden = false;
      allow.disabled = deny.disabled = false;
    }
  };
  allow.addEventListener("click", () => decide("allow"));
  deny.addEventListener("click", () => decide("deny"));
  open.addEventListener("click", () => show(asked.run_id));
  return make(
    "section",
    { className: "question", dataset: { testid: "question", id: asked.id }, attributes: { "aria-label": `Allow this: ${inWords(asked.tool)}?` } },
    make("p", { className: "question-title" }, "Allow this: ", make("strong", {}, inWords(asked.tool)), "?"),
    argumentList(asked.arguments) || make("p", { className: "hint" }, "It takes no arguments."),
    taint(asked),
    make("p", { className: "hint" }, expiry(asked.expires_at)),
    failure,
    isMine(asked) ? "" : make("p", { className: "hint" }, `${(asked.may_decide || []).join(", ") || asked.subject} may decide.`),
    make("div", { className: "question-actions" }, open, isMine(asked) ? deny : "", isMine(asked) ? allow : ""),
  );
}

/** A warning where the call may follow an order that stands in a document or came from a tool. */
function taint({ is_tainted: isTainted, tainted_arguments: names = [] }) {
  if (!isTainted) return "";
  const from = names.length ? ` Words of it are in: ${names.join(", ")}.` : "";
  return make("p", { className: "failure", dataset: { testid: "taint" } }, `The run has read text that you did not write.${from} Check that this call is what you want.`);
}

/** Whether the one who looks may decide; the event of a run does not say, and then the server does. */
const isMine = ({ yours_to_decide: mine = true }) => mine;

function show(runId) {
  dialog.close();
  showRun(runId);
}

function expiry(moment) {
  return moment ? `If nobody decides before ${new Date(moment).toLocaleString()}, it is not called.` : "";
}
