// One question and its answer, as its events tell it.

import { Decisions } from "./approvals.js";
import { drawArtefacts } from "./artefacts.js";
import { mark } from "./citations.js";
import { claimItems, claimsTitle, judgeLine, support } from "./claims.js";
import { drawCoverage } from "./coverage.js";
import { byId, make, setText } from "./dom.js";
import { drawInput } from "./input.js";
import { inWords } from "./names.js";
import { openPassage } from "./passage.js";
import { addEvent, newRun } from "./run.js";
import { StepTrace, planned } from "./steps.js";
import { dollars, duration, pieces, place } from "./text.js";
import { closest, confidence, conflicts } from "./verdicts.js";

/** Draws a run into the answer card. Make a new one for each question. */
export class AnswerView {
  #run = newRun();
  #ended = false;
  #cited = new Map();
  #hasModel = false;
  #nodes = [];
  #notes = new Set();
  #steps = new StepTrace();
  #decisions = new Decisions();
  #alone;

  /** `alone` gives the name of the collection that is asked where there are others, which may not be known yet; "" otherwise. */
  constructor(question, alone = () => "") {
    this.#alone = alone;
    byId("answer-card").hidden = false;
    byId("answer").replaceChildren();
    byId("answer").setAttribute("aria-busy", "true");
    byId("notes").replaceChildren();
    byId("source-list").replaceChildren();
    const parts = ["notes", "claims", "artefacts", "coverage", "verdict", "answer-status", "closest", "conflicts", "sources", "cost", "answer-problem"];
    for (const id of parts) byId(id).hidden = true;
    setText(byId("asked"), question);
    this.say("Starting …");
  }

  say(text) {
    setText(byId("progress"), text);
  }

  /** Says below the answer what was done in a lesser way than asked. */
  note(message) {
    this.#note({ message, part: "conversation" });
  }

  /** Whether the run waits for a person, and can be left meanwhile. */
  get isWaiting() {
    return this.#run.status === "waiting";
  }

  /** Takes the next event of the run. */
  take({ event, data }) {
    addEvent(this.#run, { event, data });
    this.#steps.take({ event, data });
    this.#decisions.show(this.#run.approvals);
    drawInput(this.#run);
    const take = {
      run: () => this.#begin(data),
      thinking: () => this.#thinking(data),
      plan: () => this.say(planned(data)),
      retrieval: () => this.#retrieval(data),
      token: () => this.#draw(),
      tool: () => this.say(`Using a tool: ${inWords(data.name)} …`),
      tool_result: () => this.say("Thinking …"),
      parked: () => this.say(this.#run.input ? "Waiting for your answer." : "Waiting for your decision. You may ask something else meanwhile."),
      artefact: () => drawArtefacts(this.#run),
      coverage: () => drawCoverage(this.#run.coverage),
      claim: () => this.#claims(),
      verification: () => this.#claims(),
      answer: () => this.#answer(data),
      usage: () => this.#usage(data),
      error: () => this.fail(data.message),
      done: () => this.#done(data),
    }[event];
    if (take) take();
  }

  /** Shows that something went wrong, in the words of whoever knows. */
  fail(message) {
    const box = byId("answer-problem");
    setText(box, message);
    box.hidden = false;
    this.end("");
  }

  /** No more events will come. */
  end(text) {
    this.#ended = true;
    byId("answer").setAttribute("aria-busy", "false");
    this.#draw();
    this.say(text);
  }

  #begin({ question, model }) {
    if (question) setText(byId("asked"), question);
    this.#hasModel = Boolean(model);
  }

  #thinking({ text, degraded }) {
    if (degraded) this.#note(degraded);
    else if (text) this.say(text);
  }

  #retrieval({ evidence, degraded }) {
    // While a model writes, its marks are numbers of passages. Quoted answers come at once, with numbers of their own.
    if (this.#hasModel) for (const passage of evidence) this.#cited.set(passage.number, passage);
    degraded.forEach((each) => this.#note(each));
    this.say(evidence.length ? `Reading ${evidence.length} passage${evidence.length > 1 ? "s" : ""} …` : "Nothing fitting was found …");
  }

  #answer(answer) {
    const { citations } = answer;
    this.#cited = new Map(citations.map((citation) => [citation.number, citation]));
    this.#nodes.splice(0).forEach(({ node }) => node.remove());
    this.#draw();
    this.#sources(citations);
    drawCoverage(this.#run.coverage);
    drawArtefacts(this.#run);
    byId("closest-list").replaceChildren(...closest(answer));
    byId("closest").hidden = !answer.closest?.length;
    this.#claims();
    byId("conflict-list").replaceChildren(...conflicts(answer));
    byId("conflicts").hidden = !answer.conflicts?.length;
    this.#verdict("verdict", support(answer));
    this.#verdict("answer-status", confidence(answer));
  }

  // Of quotes there is nothing to read: they are their sources' own words.
  #claims() {
    const { verification, method } = this.#run;
    const items = method === "extractive" ? [] : claimItems(verification);
    byId("claim-list").replaceChildren(...items);
    setText(byId("claims-title"), claimsTitle(items));
    setText(byId("judge"), judgeLine(verification));
    byId("claims").hidden = !items.length;
  }

  #verdict(id, { status, text }) {
    const line = byId(id);
    line.dataset.status = status;
    setText(line, text);
    line.hidden = !text;
  }

  #usage({ seconds, model, prompt_tokens: read, completion_tokens: written, cost_usd: cost, tool_calls: calls }) {
    const quoted = this.#run.citations.length ? "Quoted from your documents, no model used" : "No model used";
    const parts = [this.#run.method === "model" || model ? model || "Written by the model" : quoted];
    if (read || written) parts.push(`${read} + ${written} tokens`);
    if (calls) parts.push(`${calls} tool call${calls > 1 ? "s" : ""}`);
    if (cost) parts.push(dollars(cost));
    if (seconds) parts.push(duration(seconds));
    setText(byId("cost"), parts.join(" · "));
    byId("cost").hidden = false;
  }

  #done({ status }) {
    const alone = this.#alone();
    const words = {
      completed: "Answered.",
      refused: alone ? `Nothing found in “${alone}” that answers this; only it was asked.` : "Nothing found that answers this.",
      cancelled: "Stopped.",
      timeout: "The time for this answer ran out. Ask again, perhaps more narrowly.",
      failed: "",
    };
    this.end(words[status] ?? "");
    drawArtefacts(this.#run); // its thread keeps them now
    if (status === "failed" && byId("answer-problem").hidden) this.fail("The answer failed. Ask again.");
  }

  #note({ message, part }) {
    const text = message || `Degraded: ${part}`;
    if (this.#notes.has(text)) return;
    this.#notes.add(text);
    byId("notes").append(make("li", { dataset: { part }, attributes: { dir: "auto" } }, text));
    byId("notes").hidden = false;
  }

  // Only what differs from the last drawing is touched, so that a focused citation keeps its focus while text streams in.
  #draw() {
    const next = pieces(this.#run.answer, (number) => this.#cited.has(number), !this.#ended);
    const answer = byId("answer");
    next.forEach((piece, index) => this.#drawPiece(answer, piece, index));
    this.#nodes.splice(next.length).forEach(({ node }) => node.remove());
  }

  #drawPiece(answer, piece, index) {
    const drawn = this.#nodes[index];
    if (drawn && drawn.text === piece.text && drawn.number === piece.number) return;
    if (drawn && drawn.text !== undefined && piece.text !== undefined) {
      drawn.node.data = piece.text;
      drawn.text = piece.text;
      return;
    }
    const node = piece.text === undefined ? mark(this.#cited.get(piece.number)) : document.createTextNode(piece.text);
    if (drawn) drawn.node.replaceWith(node);
    else answer.append(node);
    this.#nodes[index] = { ...piece, node };
  }

  #sources(citations) {
    const list = byId("source-list");
    list.replaceChildren(...citations.map((citation) => this.#source(citation)));
    byId("sources").hidden = citations.length === 0;
  }

  #source(citation) {
    const button = make(
      "button",
      { type: "button", className: "source", dataset: { testid: "source" }, attributes: { dir: "auto" } },
      make("span", { className: "source-number", attributes: { "aria-hidden": "true" } }, String(citation.number)),
      make("span", { className: "source-name" }, citation.document_name),
      make("span", { className: "hint" }, place(citation)),
    );
    button.addEventListener("click", () => openPassage(citation));
    return make("li", { value: citation.number }, button);
  }
}
