// What the evidence covers of a question, part by part, as a research run measures it.

import { byId, make, setText } from "./dom.js";

const STATES = { found: "Found", partly: "Partly", conflicting: "Sources disagree", missing: "Not found" };

/** Draws the table; hides it where nothing was measured. */
export function drawCoverage(coverage) {
  byId("coverage").hidden = !coverage?.parts.length;
  if (!coverage?.parts.length) return;
  setText(byId("coverage-title"), `Covered: ${Math.round(coverage.share * 100)} %`);
  byId("coverage-rows").replaceChildren(...coverage.parts.map(row));
}

function row({ text, state, evidence }) {
  return make(
    "tr",
    { dataset: { testid: "coverage-part", state: state || "" } },
    make("td", { attributes: { dir: "auto" } }, text),
    make("td", {}, STATES[state] || state || ""),
    make("td", {}, evidence.map((number) => `[${number}]`).join(" ")),
  );
}
