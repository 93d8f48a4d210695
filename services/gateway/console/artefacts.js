// What an agent has made besides its text: a quiz as a form, tables and charts as tables, everything else as its outline.

import { byId, make } from "./dom.js";
import { quizForm } from "./quiz.js";

const TABLES = { table, chart, timeline, side_by_side: sides };

/** Draws a run's in order; hides the place where there are none. A quiz becomes a form once the run has ended and its thread keeps it. */
export function drawArtefacts({ artefacts, thread_id: threadId, run_id: runId, status }) {
  const kept = status !== "running" && status !== "waiting" ? threadId : null;
  byId("artefacts").replaceChildren(...artefacts.map((each) => artefact(each, kept, runId)));
  byId("artefacts").hidden = !artefacts.length;
}

/** One artefact of a run on a thread; without a thread a quiz is shown and not graded. */
export function artefact({ kind, title, body, items, outline }, threadId, runId) {
  const cited = new Map((items ?? []).map(({ path, citations }) => [path, citations.map((number) => `[${number}]`).join("")]));
  const isQuiz = kind === "quiz" && body && threadId;
  const drawn = isQuiz ? quizForm(body.questions, threadId, runId) : body && TABLES[kind] ? TABLES[kind](body, cited) : plain(outline);
  const left = body?.left_out?.length ? make("p", { className: "hint", attributes: { dir: "auto" } }, `Left out: ${body.left_out.join(" ")}`) : null;
  return make("section", { dataset: { testid: "artefact", kind } }, make("h3", { attributes: { dir: "auto" } }, title || kind), drawn, left);
}

function plain(outline) {
  return make("pre", { className: "outline", attributes: { dir: "auto" } }, outline);
}

function table({ columns, rows }, cited) {
  return drawTable(columns, rows.map((row, at) => row.map((value, column) => cell(value, cited.get(`/rows/${at}/${column}`)))));
}

function chart({ unit, labels, series }, cited) {
  const heads = series.map(({ name }) => [name, unit].filter(Boolean).join(", ") || "–");
  const rows = labels.map((label, at) => [label, ...series.map(({ values }, line) => cell(values[at], cited.get(`/series/${line}/values/${at}`)))]);
  return drawTable(["", ...heads], rows);
}

function timeline({ events }, cited) {
  return drawTable(["When", "What"], events.map(({ when, what }, at) => [when, cell(what, cited.get(`/events/${at}`))]));
}

function sides({ documents, rows }, cited) {
  return drawTable(["", ...documents], rows.map(({ topic, texts }, at) => [topic, ...texts.map((text, side) => cell(text, cited.get(`/rows/${at}/texts/${side}`)))]));
}

function cell(value, marks = "") {
  return [value ?? "–", marks].filter((each) => each !== "").join(" ");
}

function drawTable(heads, rows) {
  const head = make("tr", {}, ...heads.map((each) => make("th", { attributes: { dir: "auto", scope: "col" } }, each)));
  const lines = rows.map((row) => make("tr", {}, ...row.map((each) => make("td", { attributes: { dir: "auto" } }, String(each)))));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines));
}
