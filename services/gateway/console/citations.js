// The mark of a citation in a text.

import { make } from "./dom.js";
import { openPassage } from "./passage.js";

/** A small number that opens its passage. */
export function mark(citation) {
  const number = String(citation.number);
  const button = make("button", {
    type: "button",
    textContent: number,
    dataset: { testid: "citation", number },
    attributes: { "aria-label": `Source ${number}: ${citation.document_name}` },
  });
  button.addEventListener("click", () => openPassage(citation));
  return make("sup", { className: "mark" }, button);
}
