// What was checked of an answer, claim by claim, and by whom: only what the judge has earned is said.

import { make } from "./dom.js";

const VERDICTS = {
  supported: ["supported", "carried by its source"],
  similar_wording: ["similar", "similar wording; its meaning is not checked"],
  partly: ["partial", "carried in part"],
  contradicted: ["insufficient", "its sources say otherwise"],
  not_found: ["insufficient", "not found in the documents"],
};
const DID_NOT_HAPPEN = "did not happen";
const UNKNOWN_ACTION = "nobody knows whether this happened";
const CHECKS = {
  quotes: "Compared word for word.",
  table: "Put together from the cells of a row, each compared word for word.",
  effects: "Compared with what was done in this run.",
  words: "Compared by shared words only: the last resort.",
};
const SIMILAR = "The wording of every sentence is similar to its sources. Its meaning is not checked.";

/** Whether the sources carry the answer, as {status, text}; an empty text where there is nothing to say. */
export function support({ support_status: status, method, citations = [], verification }) {
  const text = verification?.verify === "off" ? "Nothing was checked." : said(status, method, citations, verification);
  return { status: text ? status || "" : "", text: [text, left(verification)].filter(Boolean).join(" ") };
}

function said(status, method, citations, verification) {
  const by = verification?.checked_by;
  const untrue = (verification?.sentences ?? []).some((each) => each.is_action && each.verdict !== "supported");
  if (untrue && !citations.length) return "It says that something was done, which was not.";
  if (status === "supported" && method === "extractive") return by?.name === "table" ? "From a table of your documents." : "Quoted word for word from your documents.";
  if (status === "supported" && by?.measured) return "Every sentence is carried by its sources.";
  if (status === "supported") return "A model found every sentence carried by its sources. How often it is wrong was not measured.";
  if (status === "similar_wording") return SIMILAR;
  if (status === "partial") return "Some sentences were not found in their sources.";
  if (status === "unavailable") return "Search was not available; nothing could be checked.";
  return status === "insufficient" && (citations.length || verification) ? "Nothing in the documents carries this." : "";
}

function left(verification) {
  const count = verification?.removed ?? 0;
  return count ? `${count} sentence${count > 1 ? "s were" : " was"} left out, because nothing carries ${count > 1 ? "them" : "it"}.` : "";
}

/** The claims that were checked so far, as items of a list. */
export function claimItems(verification) {
  const claims = (verification?.sentences ?? []).filter((each) => each.verdict !== "no_claim");
  return claims.map((claim) => {
    const [status, words] = verdictOf(claim);
    return make(
      "li",
      { className: "claim", dataset: { testid: "claim", status } },
      make("span", { attributes: { dir: "auto" } }, claim.sentence),
      make("span", { className: "hint" }, [words, claim.searched ? "searched for by itself" : "", claim.removed ? "left out" : ""].filter(Boolean).join("; ")),
      claim.span?.text ? make("q", { className: "closest-quote", attributes: { dir: "auto" } }, claim.span.text) : null,
    );
  });
}

/** Of the list of claims. It says no more than the verdicts: not every judge may say that a claim is checked. */
export function claimsTitle(items) {
  return `${items.length} ${items.length === 1 ? "claim compared with its sources" : "claims compared with their sources"}`;
}

function verdictOf({ verdict, is_action: isAction }) {
  if (isAction && verdict === "contradicted") return ["insufficient", DID_NOT_HAPPEN];
  if (isAction && verdict === "not_found") return ["insufficient", UNKNOWN_ACTION];
  return VERDICTS[verdict] ?? ["", verdict];
}

/** Who has judged, and how often that judge is wrong. */
export function judgeLine(verification) {
  const by = verification?.checked_by ?? verification?.sentences?.find((each) => each.checked_by)?.checked_by;
  if (!by) return "";
  if (CHECKS[by.name]) return CHECKS[by.name];
  const share = (value) => `${Math.round(100 * value)} %`;
  if (!by.claims) return `Judged by ${by.name}. How often it is wrong was not measured.`;
  return `Judged by ${by.name}: ${share(by.false_passed)} of false claims pass and ${share(by.true_failed)} of true ones do not, on ${by.claims} labelled claims.`;
}
