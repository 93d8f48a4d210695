// The passage behind a citation: the cited words marked, with what stands around them once it has come.

import { byId, make, setText } from "./dom.js";
import { call } from "./sse.js";
import { joined, place, quoted } from "./text.js";

const dialog = byId("passage");
let shown = 0;

/** Opens the passage of a citation or of a piece of evidence. */
export async function openPassage(citation) {
  const mine = ++shown;
  setText(byId("passage-title"), citation.document_name);
  setText(byId("passage-place"), place(citation));
  const page = pageOf(citation);
  const source = byId("passage-download");
  source.href = page || `/v1/documents/${encodeURIComponent(citation.document_id)}/content`;
  source.toggleAttribute("download", !page);
  source.rel = "noopener noreferrer nofollow";
  setText(source, page ? "Open the page as it is today" : "Download the document");
  const [before, quote, after] = quoted(citation.text, citation.quote_start, citation.quote_end);
  const mark = make("mark", {}, quote);
  const body = byId("passage-body");
  body.replaceChildren(make("p", { className: "passage-text", attributes: { dir: "auto" } }, before, mark, after));
  if (!dialog.open) dialog.showModal();
  mark.scrollIntoView({ block: "center" });
  if (page) return; // the run keeps what was read of it, and nothing else does
  try {
    const response = await call(`/v1/chunks/${encodeURIComponent(citation.chunk_id)}?window=1`);
    const around = await response.json();
    if (mine !== shown) return;
    const { before: earlier, after: later } = joined(around);
    body.prepend(...earlier.map(neighbour));
    body.append(...later.map(neighbour));
    mark.scrollIntoView({ block: "center" });
  } catch {
    if (mine === shown) {
      body.append(make("p", { className: "hint" }, "Its surroundings cannot be shown: the document has changed or gone since."));
    }
  }
}

/** The address of a passage that was read on the web; empty for one of a document. */
function pageOf({ document_id: id, origin }) {
  const address = (origin && origin.channel) || "";
  return id.startsWith("web-") && /^https?:\/\//.test(address) ? address : "";
}

const neighbour = (text) => make("p", { className: "passage-text around", attributes: { dir: "auto" } }, text);

byId("passage-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close(); // the backdrop
});
