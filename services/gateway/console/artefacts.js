// What an agent has made besides its text: each artefact as its title and its outline.

import { byId, make } from "./dom.js";

/** Draws them in order; hides the place where there are none. */
export function drawArtefacts(artefacts) {
  byId("artefacts").replaceChildren(...artefacts.map(drawn));
  byId("artefacts").hidden = !artefacts.length;
}

function drawn({ kind, title, outline }) {
  return make(
    "section",
    { dataset: { testid: "artefact", kind } },
    make("h3", { attributes: { dir: "auto" } }, title || kind),
    make("pre", { className: "outline", attributes: { dir: "auto" } }, outline),
  );
}
