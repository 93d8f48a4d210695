// An answer as text to paste elsewhere: its words with their marks, and a list of its sources.

import i18next from "i18next";
import type { Citation } from "../../api/types";
import type { FoldedRun } from "../../run/fold";
import { placeOf, quoted, withoutIsolates } from "../../text";
import { runOfMessage, type TurnData } from "./turns";

/** The answer with its sources. */
export function textWithSources({ answer, citations }: Pick<FoldedRun, "answer" | "citations">): string {
  return withoutIsolates([answer.trim(), citations.map(sourceLine).join("\n")].filter(Boolean).join("\n\n"));
}

function sourceLine(citation: Citation): string {
  const place = [citation.page ? i18next.t("passage.page", { page: citation.page }) : "", placeOf(citation)].filter(Boolean).join(", ");
  const [, quote] = quoted(citation.text, citation.quote_start, citation.quote_end);
  return `[${citation.number}] ${citation.document_name}${place ? ` (${place})` : ""}: “${quote.trim().replaceAll(/\s+/g, " ")}”`;
}

/** A turn as Markdown. */
export function markdownOf({ question, answer, store }: TurnData): string {
  const run = store?.state.run ?? runOfMessage(answer, "");
  const asked = question?.text || store?.state.started?.question || store?.state.question || "";
  return `## ${asked.replaceAll("\n", " ")}\n\n${textWithSources(run)}`;
}
