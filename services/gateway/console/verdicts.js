// What is said of an answer below it: two statements. That its sources carry it, and that it answers the question; a sentence that is
// quoted word for word may be about something else.

import { make } from "./dom.js";
import { openPassage } from "./passage.js";
import { place, quoted } from "./text.js";

const SUPPORT = {
  supported: "The wording of every sentence is similar to its sources. Its meaning is not checked.",
  partial: "The wording of some sentences is not similar to their sources.",
  unavailable: "Search was not available; nothing could be checked.",
};
const QUOTED = "Quoted word for word from your documents.";
const UNSUPPORTED = "No passage has wording similar to this.";
const CONFIDENCE = {
  likely: "Likely answers your question",
  uncertain: "May answer your question; read the quotes before you rely on it",
  unlikely: "Probably does not answer your question",
};

/** Whether the sources carry the answer, as {status, text}; an empty text where there is nothing to say. */
export function support({ support_status: status, method, citations }) {
  if (status === "supported" && method === "extractive") return { status, text: QUOTED };
  if (status === "insufficient") return { status, text: citations.length ? UNSUPPORTED : "" };
  return { status: status || "", text: SUPPORT[status] || "" };
}

/** How likely the answer answers the question, as {status, text}. A refusal says it itself. */
export function confidence({ answer_status: status, answer_confidence: sure, closest: passages }) {
  if (!CONFIDENCE[status] || passages?.length) return { status: "", text: "" };
  return { status, text: `${CONFIDENCE[status]} (${Math.round(100 * sure)} %).` };
}

/** The passages that came closest to a refused question, as items of a list: each opens its passage. */
export function closest({ closest: passages = [] }) {
  return passages.map((passage) => {
    const [, quote] = quoted(passage.text, passage.quote_start, passage.quote_end);
    const button = make(
      "button",
      { type: "button", className: "source", dataset: { testid: "closest-passage" }, attributes: { dir: "auto" } },
      make("span", { className: "source-name" }, passage.document_name),
      make("span", { className: "hint" }, place(passage)),
      make("span", { className: "closest-quote", attributes: { dir: "auto" } }, quote),
    );
    button.addEventListener("click", () => openPassage(passage));
    return make("li", {}, button);
  });
}
