// What is remembered of the person: listed with its source and history, changed, forgotten, paused.

import { byId, make, setText } from "./dom.js";
import { Problem, call } from "./sse.js";

const dialog = byId("memory");
const SENDS_JSON = { "content-type": "application/json" };

/** Opens the list on the button "Memory". */
export function startMemory() {
  byId("memory-open").addEventListener("click", () => {
    dialog.showModal();
    look();
  });
  byId("memory-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // the backdrop
  });
}

async function look() {
  await said(async () => {
    const summary = await (await call("/v1/memory/summary")).json();
    const { facts } = await (await call("/v1/memory/facts?with_past=false&page_size=1000")).json();
    byId("memory-list").replaceChildren(...facts.map(factBox), controls(summary, facts.length));
    return stateOf(summary, facts.length);
  });
}

function stateOf({ enabled, paused }, count) {
  if (!enabled) return "Memory is switched off here.";
  const known = count ? `${count} ${count === 1 ? "fact is" : "facts are"} known of you.` : "Nothing is known of you yet.";
  return paused ? `${known} Nothing is learnt now.` : known;
}

/** Says what the work comes to, or why it failed. */
async function said(work) {
  try {
    setText(byId("memory-state"), (await work()) ?? "");
  } catch (error) {
    setText(byId("memory-state"), error instanceof Problem ? error.message : "The server does not answer.");
  }
}

function factBox(fact) {
  const path = `/v1/memory/facts/${fact.id}`;
  const text = make("input", { className: "field", value: fact.text, attributes: { "aria-label": "The fact", maxlength: "500" } });
  const history = make("p", { className: "hint" });
  const change = async () => {
    await call(path, { method: "PATCH", headers: SENDS_JSON, body: JSON.stringify({ text: text.value }) });
    await look();
  };
  const forget = async () => {
    await call(path, { method: "DELETE" });
    await look();
  };
  const tell = async () => setText(history, historyOf(await (await call(path)).json()));
  return make(
    "section",
    { className: "fact", dataset: { testid: "fact" } },
    text,
    make("p", { className: "hint" }, sourceOf(fact)),
    history,
    button("Save", () => said(change)),
    button("History", () => said(tell)),
    button("Forget", () => said(forget)),
  );
}

function sourceOf(fact) {
  const day = fact.learnt_at.slice(0, 10);
  const words = fact.said && fact.said !== fact.text ? ` You said: “${fact.said}”.` : "";
  const until = fact.valid_to ? ` Until ${fact.valid_to.slice(0, 10)}.` : "";
  return `${fact.kind}, learnt on ${day}.${until}${words}`;
}

function historyOf({ earlier }) {
  if (!earlier.length) return "It took the place of nothing.";
  return `Before: ${earlier.map(({ text, learnt_at }) => `${text} (${learnt_at.slice(0, 10)})`).join("; ")}`;
}

function controls({ paused }, count) {
  const post = async (path, body) => {
    await call(path, { method: "POST", headers: SENDS_JSON, body: JSON.stringify(body) });
    await look();
  };
  const all = button("Forget everything", () => {
    if (window.confirm("Forget everything that is known of you? It cannot be brought back.")) {
      said(() => post("/v1/memory/forget", { everything: true }));
    }
  });
  all.hidden = count === 0;
  const pause = button(paused ? "Learn again" : "Learn nothing for now", () =>
    said(() => post("/v1/memory/pause", { paused: !paused })),
  );
  return make("p", {}, pause, all);
}

function button(label, onClick) {
  const made = make("button", { type: "button", className: "secondary", dataset: { testid: `memory-${label.toLowerCase().replaceAll(" ", "-")}` } }, label);
  made.addEventListener("click", onClick);
  return made;
}
