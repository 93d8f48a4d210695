// The steps of a run as they come: what was looked for, which tool was called with what, what came of it, how long it took and
// what it cost.

import { byId, make, setText } from "./dom.js";
import { agentInWords, inWords, stepInWords } from "./names.js";
import { argumentText, duration, stepCost } from "./text.js";

const DECISIONS = { allowed: "Allowed", denied: "Denied", expired: "Nobody decided in time" };

/** What was planned: a search, or another way to an answer. */
export function planned({ route, queries, round = 0, investigation = "" }) {
  const quoted = queries.map((query) => `“${query}”`).join(", ");
  const words = { tools: "Choosing tools …", math: `Working out ${quoted} …`, time: "Looking at the clock …", talk: "Answering …" };
  const where = round ? `Round ${round}${investigation ? `, on “${investigation}”` : ""}: searching` : "Searching";
  return words[route] || `${where} for ${quoted} …`;
}

const PLACES = { question: "The question", tool_result: "A result of a tool", answer: "The answer", reasoning: "What the model thinks", arguments: "A call" };
const KINDS = { injection: "gives orders to the model", exfiltration: "asks for secrets", abuse: "asks for harm", canary: "gave instructions away", address: "had an address with data in it" };
const ACTIONS = { removed: "it was taken out", ended: "the text ends before it" };

/** What was seen that is not safe, in a sentence. */
export function unsafe({ place, kind, action, passage, text }) {
  const where = passage ? `Passage [${passage}]` : PLACES[place] || place;
  const done = ACTIONS[action] ? `; ${ACTIONS[action]}` : "";
  return `${where} ${KINDS[kind] || kind}${text ? ` (“${text}”)` : ""}${done}`;
}

/** Draws into the card's list of steps. Make a new one for each run. */
export class StepTrace {
  #calls = new Map();
  #steps = new Map();
  #lastNote = "";

  constructor() {
    byId("steps").replaceChildren();
    byId("trace").hidden = true;
    byId("trace").open = false;
  }

  /** Takes the next event of the run. */
  take({ event, data }) {
    const take = {
      agent: () => this.#agent(data),
      thinking: () => this.#thinking(data),
      plan: () => this.#note(planned(data)),
      retrieval: () => this.#retrieval(data),
      coverage: () => this.#note(`Covered: ${Math.round(data.share * 100)} % of ${data.investigation ? `“${data.investigation}”` : "the question"}`),
      safety: () => this.#note(unsafe(data), "degraded"),
      tool: () => this.#tool(data),
      tool_result: () => this.#result(data),
      approval: () => this.#approval(data),
      input: () => this.#note(data.state === "pending" ? data.question : data.text ? `You: ${data.text}` : "Nobody answered in time"),
      verification: () => this.#note(`Compared ${data.sentences.length} sentence${data.sentences.length === 1 ? "" : "s"} with the sources`),
      usage: () => this.#usage(data),
      done: () => this.#done(),
    }[event];
    if (!take) return;
    const item = take();
    if (item && data.step && !this.#steps.has(data.step)) this.#steps.set(data.step, item);
  }

  #agent({ name, chosen_by: by }) {
    const words = agentInWords(name, by);
    return words ? this.#note(words) : undefined;
  }

  #thinking({ text, degraded }) {
    if (degraded) return this.#note(degraded.message || degraded.part, "degraded");
    return text && this.#note(text);
  }

  #retrieval({ evidence, degraded }) {
    const item = this.#note(evidence.length ? `Found ${evidence.length} passage${evidence.length > 1 ? "s" : ""}` : "Found nothing fitting");
    degraded.forEach((each) => this.#note(each.message || each.part, "degraded"));
    return item;
  }

  #tool({ call_id: id, name, arguments: given, step }) {
    byId("trace").open = true;
    const item = this.#add("running", inWords(name), given);
    setText(item.summary, "Running …");
    this.#calls.set(id, item);
    if (step) this.#steps.set(step, item); // rather than a note of the same step
  }

  #result({ call_id: id, ok, summary, duration_ms: ms, error }) {
    const item = this.#calls.get(id);
    if (!item) return;
    item.element.dataset.state = ok ? "ok" : "failed";
    setText(item.summary, ok ? summary || "Done" : [error?.message || summary || "Did not work", error?.reason && `(${error.reason})`].filter(Boolean).join(" "));
    item.took = ms ? duration(ms / 1000) : "";
    setText(item.cost, item.took);
  }

  #approval({ approval_id: id, tool, decision, decided_by: by }) {
    if (decision === "pending") this.#calls.set(`approval ${id}`, this.#note(`${inWords(tool)}: waits for a decision`, "waiting"));
    else {
      const item = this.#calls.get(`approval ${id}`);
      if (!item) return;
      item.element.dataset.state = decision === "allowed" ? "ok" : "failed";
      setText(item.summary, `${inWords(tool)}: ${DECISIONS[decision] || decision}${by ? ` by ${by}` : ""}`);
    }
  }

  // What a step of ours cost stands with it; of the others, such as a model's words, at the end.
  #usage({ steps = [] }) {
    for (const each of steps) {
      const cost = stepCost(each);
      const item = this.#steps.get(each.step);
      if (!cost) continue;
      if (item) setText(item.cost, item.took ? [item.took, stepCost({ ...each, seconds: 0 })].filter(Boolean).join(" · ") : cost);
      else setText(this.#add("cost", stepInWords(each.step), {}).cost, cost);
    }
  }

  #done() {
    for (const { element, summary } of this.#calls.values()) {
      if (element.dataset.state !== "running" && element.dataset.state !== "waiting") continue;
      element.dataset.state = "failed";
      setText(summary, "Not finished");
    }
  }

  /** A line without a tool; nothing when it says what the line before says. */
  #note(text, state = "note") {
    if (text === this.#lastNote && state === "note") return undefined;
    this.#lastNote = text;
    const item = this.#add(state, "", {});
    setText(item.summary, text);
    return item;
  }

  #add(state, name, given) {
    const summary = make("p", { className: "step-summary", attributes: { dir: "auto" } });
    const cost = make("span", { className: "hint step-cost", dataset: { testid: "step-cost" } });
    const title = name ? make("span", { className: "step-name" }, name) : "";
    const element = make(
      "li",
      { className: "step", dataset: { testid: "step", state } },
      make("div", { className: "step-head" }, title || summary, cost),
      argumentList(given),
      title && summary,
    );
    byId("steps").append(element);
    byId("trace").hidden = false;
    const count = byId("steps").childElementCount;
    setText(byId("trace-title"), `${count} step${count === 1 ? "" : "s"}`);
    return { element, summary, cost, took: "" };
  }
}

/** Arguments as a list of names and values; nothing when there are none. */
export function argumentList(given) {
  const names = Object.keys(given || {});
  if (!names.length) return null;
  const rows = names.flatMap((name) => [make("dt", {}, name), make("dd", { attributes: { dir: "auto" } }, argumentText(given[name]))]);
  return make("dl", { className: "arguments" }, ...rows);
}
