// The sample documents: one button where there are no documents yet, and afterwards questions to click.

import { collection, listCollections, ownNamed } from "./collections.js";
import { upload } from "./documents.js";
import { byId, make, setText } from "./dom.js";
import { call } from "./sse.js";

const box = byId("samples");
const button = byId("load-samples");
const failure = byId("samples-failure");
let samples = null; // what the server offers, once it has said so

/** Has `ask` ask what is clicked. `redraw` is called when it is known what there is. */
export async function startSamples(ask, redraw) {
  button.addEventListener("click", load);
  try {
    samples = await (await call("/samples/samples.json")).json();
  } catch {
    return; // a server without them offers none
  }
  byId("suggestion-list").replaceChildren(...samples.questions.map((question) => suggestion(question, ask)));
  redraw();
}

/** Offers the samples where there is no document at all, and their questions where they are chosen and have been read. */
export function offerSamples({ total, shown, isAsked }) {
  box.hidden = !samples || total > 0;
  const states = new Map(shown.map(({ name, status }) => [name, status]));
  const areRead = Boolean(samples) && samples.documents.every((name) => states.get(name) === "ready");
  byId("suggestions").hidden = !(isAsked && areRead && ownNamed(samples.collection) === collection());
}

async function load() {
  button.disabled = true;
  failure.hidden = true;
  try {
    const files = await Promise.all(samples.documents.map(fetched));
    const id = ownNamed(samples.collection) || (await made(samples.collection));
    await listCollections(id);
    upload(files, id);
  } catch (error) {
    setText(failure, error.message);
    failure.hidden = false;
  }
  button.disabled = false;
}

async function fetched(name) {
  return new File([await (await call(`/samples/${encodeURIComponent(name)}`)).blob()], name);
}

async function made(name) {
  const headers = { "Content-Type": "application/json" };
  return (await (await call("/v1/collections", { method: "POST", headers, body: JSON.stringify({ name }) })).json()).id;
}

function suggestion(question, ask) {
  const button = make("button", { type: "button", className: "suggestion", dataset: { testid: "suggestion" }, attributes: { dir: "auto" } }, question);
  button.addEventListener("click", () => ask(question));
  return make("li", {}, button);
}
