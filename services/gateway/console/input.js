// A question of a run to its user, with a box for the answer.

import { byId, make, setText } from "./dom.js";
import { call } from "./sse.js";

let drawn = "";

/** Shows what the run asks, or nothing. What is typed stays while the same question is asked. */
export function drawInput({ run_id: runId, input }) {
  const key = input ? `${runId} ${input.question}` : "";
  if (key === drawn) return;
  drawn = key;
  byId("input-box").replaceChildren(...(input ? [box(runId, input)] : []));
}

function box(runId, { question, expires_at: expires }) {
  const failure = make("p", { className: "failure", hidden: true, attributes: { role: "alert" } });
  const field = make("input", { type: "text", id: "input-text", maxLength: 2000, required: true, dataset: { testid: "input-text" }, attributes: { dir: "auto" } });
  const send = make("button", { type: "submit", className: "primary", dataset: { testid: "input-send" } }, "Answer");
  const form = make(
    "form",
    { className: "question", dataset: { testid: "input-box" } },
    make("label", { className: "question-title", htmlFor: "input-text", attributes: { dir: "auto" } }, question),
    field,
    make("p", { className: "hint" }, expires ? `Without an answer before ${new Date(expires).toLocaleString()} the question is taken as it stands.` : ""),
    failure,
    make("div", { className: "question-actions" }, send),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    failure.hidden = true;
    try {
      const body = JSON.stringify({ text: field.value });
      await call(`/v1/runs/${encodeURIComponent(runId)}/input`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    } catch (error) {
      setText(failure, error.message);
      failure.hidden = false;
      send.disabled = false;
    }
  });
  return form;
}
