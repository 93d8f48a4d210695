// A quiz as a form: questions with their options, graded by the server, and shown again as they were answered, on any device.

import { make, setText } from "./dom.js";
import { Problem, call } from "./sse.js";

const JSON_BODY = { "Content-Type": "application/json" };
const TRUTH = ["true", "false"];

/** The form of a quiz that a run made on a thread. */
export function quizForm(questions, threadId, runId) {
  const path = `/v1/threads/${encodeURIComponent(threadId)}/quizzes/${encodeURIComponent(runId)}`;
  const state = make("p", { className: "hint", dataset: { testid: "quiz-state" }, attributes: { role: "status" } });
  const fields = new Map(questions.map((each) => [each.id, questionField(each, runId)]));
  const send = make("button", { type: "submit", dataset: { testid: "quiz-send" } }, "Check answers");
  const form = make("form", { className: "quiz", dataset: { testid: "quiz" } }, ...[...fields.values()].map(({ node }) => node), send, state);
  const show = (quiz) => {
    for (const { id, result } of quiz.questions) fields.get(id)?.show(result);
    if (quiz.answered) setText(state, `${quiz.right} of ${quiz.answered} right, ${quiz.questions.length - quiz.answered} open.`);
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const answers = [...fields].map(([question_id, { given }]) => ({ question_id, given: given() })).filter(({ given }) => given);
    if (!answers.length) return setText(state, "Answer a question first.");
    send.disabled = true;
    try {
      const body = JSON.stringify({ answers });
      show(await (await call(`${path}/answers`, { method: "POST", headers: JSON_BODY, body })).json());
    } catch (error) {
      setText(state, error instanceof Problem ? error.message : "The server does not answer. Try again.");
    }
    send.disabled = false;
  });
  call(path).then((response) => response.json()).then(show).catch(() => {}); // a quiz that is being made is not kept yet
  return form;
}

function questionField({ id, kind, question, options }, runId) {
  const name = `${runId}-${id}`;
  const verdict = make("p", { className: "hint", dataset: { testid: "quiz-verdict" }, attributes: { dir: "auto" } });
  const choices = kind === "multiple_choice" ? options : kind === "true_false" ? TRUTH : [];
  const inputs = choices.map((value) => make("input", { type: "radio", name, value }));
  const text = choices.length ? null : make("input", { type: "text", name, maxLength: 1000, attributes: { "aria-label": question } });
  const labels = inputs.map((input) => make("label", { attributes: { dir: "auto" } }, input, ` ${input.value}`));
  const legend = make("legend", { attributes: { dir: "auto" } }, question);
  const node = make("fieldset", { dataset: { testid: "quiz-question", kind } }, legend, ...labels, text, verdict);
  const given = () => text?.value.trim() ?? inputs.find(({ checked }) => checked)?.value ?? "";
  return { node, given, show: (result) => show(result, inputs, text, verdict) };
}

function show(result, inputs, text, verdict) {
  if (!result) return;
  for (const input of inputs) input.checked = input.value === result.given;
  if (text) text.value = result.given;
  setText(verdict, result.is_right ? `Right. ${result.explanation}` : `Wrong. The answer is: ${result.answer}. ${result.explanation}`);
}
