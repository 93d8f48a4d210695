// What is said of a claim and of its judge: only what the judge has earned.

import type { TFunction } from "i18next";
import type { Verdict } from "../api/types";
import type { Format } from "../i18n/format";
import type { FoldedClaim, FoldedRun } from "../run/fold";

const STATUS: Record<string, string> = {
  supported: "supported",
  similar_wording: "similar",
  partly: "partial",
  contradicted: "insufficient",
  not_found: "insufficient",
};
const CHECKS = ["quotes", "table", "effects", "words"] as const;

/** The verdict on a claim as a status to colour and words to read. */
export function verdictWords(claim: Pick<Verdict, "verdict" | "is_action">, t: TFunction): { status: string; words: string } {
  const { verdict, is_action: isAction } = claim;
  if (isAction && verdict === "contradicted") return { status: "insufficient", words: t("claims.didNotHappen") };
  if (isAction && verdict === "not_found") return { status: "insufficient", words: t("claims.unknownAction") };
  const status = STATUS[verdict];
  return status ? { status, words: t(`claims.${verdict}` as "claims.supported") } : { status: "", words: verdict };
}

/** Who has judged, and how often that judge is wrong. */
export function judgeWords(verification: FoldedRun["verification"], t: TFunction, format: Format): string {
  const by = verification?.checked_by ?? verification?.sentences.find((each) => each.checked_by)?.checked_by;
  if (!by) return "";
  const check = CHECKS.find((each) => each === by.name);
  if (check) return t(`claims.by_${check}`);
  if (!by.claims) return t("claims.unmeasured", { name: by.name });
  return t("claims.measured", {
    name: by.name,
    passed: format.percent(by.false_passed ?? 0),
    failed: format.percent(by.true_failed ?? 0),
    count: by.claims,
  });
}

/** The claims that carry a citation. */
export function claimsOf(number: number, verification: FoldedRun["verification"]): FoldedClaim[] {
  return (verification?.sentences ?? []).filter((each) => each.citations?.includes(number) && each.verdict !== "no_claim");
}

/** Whether its sources carry the whole answer. */
export function supportWords(run: FoldedRun, t: TFunction): string {
  const removed = run.verification?.removed ?? 0;
  const text = run.verification?.verify === "off" ? t("verdict.off") : supported(run, t);
  return [text, removed ? t("verdict.removed", { count: removed }) : ""].filter(Boolean).join(" ");
}

function supported({ support_status: status, method, citations, verification }: FoldedRun, t: TFunction): string {
  const by = verification?.checked_by;
  const untrue = (verification?.sentences ?? []).some((each) => each.is_action && each.verdict !== "supported");
  if (untrue && !citations.length) return t("verdict.untrue");
  if (status === "supported" && method === "extractive") return by?.name === "table" ? t("verdict.table") : t("verdict.quoted");
  if (status === "supported") return by?.measured ? t("verdict.supported") : t("verdict.unmeasured");
  if (status === "similar_wording") return t("verdict.similar");
  if (status === "partial") return t("verdict.partial");
  if (status === "unavailable") return t("verdict.unavailable");
  return status === "insufficient" && (citations.length || verification) ? t("verdict.insufficient") : "";
}

/** How likely the answer answers the question; nothing of a refusal, which shows what came closest. */
export function confidenceWords(
  { answer_status: status, answer_confidence: share, closest }: FoldedRun,
  t: TFunction,
  format: Format,
): string {
  if (closest.length || (status !== "likely" && status !== "uncertain" && status !== "unlikely")) return "";
  return t(`verdict.${status}`, { share: format.percent(share ?? 0) });
}
