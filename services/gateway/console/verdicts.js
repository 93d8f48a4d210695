// What is said of an answer below it besides what was checked (claims.js): how likely it answers the question, since a sentence that is
// quoted word for word may be about something else.

import { make } from "./dom.js";
import { openPassage } from "./passage.js";
import { place, quoted } from "./text.js";

const CONFIDENCE = {
  likely: "Likely answers your question",
  uncertain: "May answer your question; read the quotes before you rely on it",
  unlikely: "Probably does not answer your question",
};

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

/** What the sources disagree about, as items of a list: the statement, and each value with its source, which opens its passage. */
export function conflicts({ conflicts: found = [], citations = [] }) {
  return found.map(({ what, sides }) =>
    make(
      "li",
      { dataset: { testid: "conflict" } },
      make("span", { className: "hint", attributes: { dir: "auto" } }, what),
      ...sides.map((side) => conflictSide(side, citations)),
    ),
  );
}

function conflictSide({ value, date, document_name: name, citation: number, start, end }, citations) {
  const button = make(
    "button",
    { type: "button", className: "source", attributes: { dir: "auto" } },
    make("strong", {}, value),
    make("span", { className: "source-name" }, name),
    make("span", { className: "hint" }, date || "no date"),
  );
  const cited = citations.find((each) => each.number === number);
  if (cited) button.addEventListener("click", () => openPassage({ ...cited, quote_start: start, quote_end: end }));
  return button;
}
