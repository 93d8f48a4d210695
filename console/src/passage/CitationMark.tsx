import { Button, Tooltip, TooltipTrigger } from "react-aria-components";
import { useTranslation } from "react-i18next";
import type { Citation, Evidence } from "../api/types";
import type { FoldedRun } from "../run/fold";
import { quoted } from "../text";
import { claimsOf, verdictWords } from "./verdicts";

const SHOWN_LETTERS = 280;

/** A small number that opens its passage, with the words on hover and focus. */
export function CitationMark({
  citation,
  verification,
  onOpen,
}: {
  citation: Citation | Evidence;
  verification: FoldedRun["verification"];
  onOpen: () => void;
}) {
  const { t } = useTranslation();
  const [, quote] = "quote_start" in citation ? quoted(citation.text, citation.quote_start, citation.quote_end) : ["", citation.text];
  const words = (quote ?? "").trim();
  const worst = claimsOf(citation.number, verification)
    .map((each) => verdictWords(each, t))
    .find(({ status }) => status && status !== "supported");
  return (
    <sup className="mark">
      <TooltipTrigger delay={250} closeDelay={100}>
        <Button
          className="mark-number"
          data-testid="citation"
          data-number={citation.number}
          data-status={worst?.status ?? ""}
          onPress={onOpen}
          aria-label={t("sources.number", { number: citation.number, name: citation.document_name })}
        >
          {citation.number}
        </Button>
        <Tooltip className="tooltip preview" offset={6} data-testid="citation-preview">
          <strong dir="auto">{citation.document_name}</strong>
          {citation.page ? <span className="hint"> {t("passage.page", { page: citation.page })}</span> : null}
          <span className="preview-quote" dir="auto">
            {words.length > SHOWN_LETTERS ? `${words.slice(0, SHOWN_LETTERS)}…` : words}
          </span>
          {worst && <span className="verdict-words">{worst.words}</span>}
        </Tooltip>
      </TooltipTrigger>
    </sup>
  );
}
