// What carries an answer: its sources, what was checked and by whom, what it covers, what disagrees, and what came closest.

import { useTranslation } from "react-i18next";
import type { Citation, Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Icon } from "../../parts";
import { openPassage } from "../../passage/shown";
import { confidenceWords, judgeWords, supportWords, verdictWords } from "../../passage/verdicts";
import type { FoldedRun } from "../../run/fold";
import type { Followed } from "../../run/store";
import { dotted, placeOf, quoted } from "../../text";

export function Sources({ run, followed }: { run: FoldedRun; followed: Followed }) {
  const { t } = useTranslation();
  if (!run.citations.length) return null;
  const open = (citation: Citation) =>
    openPassage({ number: citation.number, run, runId: run.run_id, evidence: followed.evidence, dropped: followed.dropped });
  return (
    <section className="sources" aria-label={t("sources.title")}>
      <h2>{t("sources.title")}</h2>
      <ol>
        {run.citations.map((citation) => (
          <li key={citation.number}>
            <SourceButton citation={citation} onPress={() => open(citation)} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function SourceButton({ citation, onPress, isClosest = false }: { citation: Citation; onPress: () => void; isClosest?: boolean }) {
  const { t } = useTranslation();
  const [, quote] = quoted(citation.text, citation.quote_start, citation.quote_end);
  const place = dotted([citation.page ? t("passage.page", { page: citation.page }) : "", placeOf(citation)]);
  return (
    <button type="button" className="source" onClick={onPress} data-testid={isClosest ? "closest-passage" : "source"} dir="auto">
      {!isClosest && (
        <span className="mark-number" aria-hidden="true">
          {citation.number}
        </span>
      )}
      <span className="source-text">
        <span className="source-name">{citation.document_name}</span>
        {place && <span className="hint"> {place}</span>}
        <span className="source-quote">{quote}</span>
      </span>
    </button>
  );
}

/** The passages that came closest to a question that was refused. */
export function Closest({ run }: { run: FoldedRun }) {
  const { t } = useTranslation();
  if (!run.closest.length) return null;
  return (
    <section className="sources" data-testid="closest" aria-label={t("sources.closest")}>
      <h2>{t("sources.closest")}</h2>
      <ol>
        {run.closest.map((citation, index) => (
          <li key={citation.chunk_id ?? index}>
            <SourceButton
              citation={citation}
              isClosest
              onPress={() =>
                openPassage({
                  number: index,
                  run: { ...run, citations: run.closest.map((each, number) => ({ ...each, number })) },
                  runId: run.run_id,
                  evidence: [],
                  dropped: [],
                })
              }
            />
          </li>
        ))}
      </ol>
    </section>
  );
}

/** What the sources disagree about: the statement, and each value with its source. */
export function Conflicts({ run }: { run: FoldedRun }) {
  const { t } = useTranslation();
  if (!run.conflicts.length) return null;
  const open = (side: Schemas["ConflictSide"]) => {
    const citations = run.citations.map((each) =>
      each.number === side.citation ? { ...each, quote_start: side.start, quote_end: side.end } : each,
    );
    openPassage({ number: side.citation, run: { ...run, citations }, runId: run.run_id, evidence: [], dropped: [] });
  };
  return (
    <section className="conflicts" data-testid="conflicts" aria-label={t("sources.disagree")}>
      <h2>
        <Icon name="scale" /> {t("sources.disagree")}
      </h2>
      {run.conflicts.map(({ what, sides }) => (
        <div key={what} className="conflict" data-testid="conflict">
          <p className="hint" dir="auto">
            {what}
          </p>
          <div className="sides">
            {sides.map((side) => (
              <button
                type="button"
                key={`${side.citation}-${side.value}`}
                className="conflict-side card"
                onClick={() => open(side)}
                dir="auto"
              >
                <strong>{side.value}</strong>
                <span>{side.document_name}</span>
                <span className="hint">{side.date || t("sources.noDate")}</span>
              </button>
            ))}
          </div>
        </div>
      ))}
    </section>
  );
}

/** What the evidence covers of a question, part by part, as a research run measures it. */
export function Coverage({ run, followed }: { run: FoldedRun; followed: Followed }) {
  const { t } = useTranslation();
  const format = useFormat();
  if (!run.coverage?.parts.length) return null;
  const open = (number: number) =>
    openPassage({ number, run, runId: run.run_id, evidence: followed.evidence, dropped: followed.dropped, isEvidence: true });
  const words = (state: string | null | undefined) => t(`coverage.${state}` as "coverage.found", { defaultValue: state ?? "" });
  return (
    <details className="coverage" data-testid="coverage">
      <summary>
        <Icon name="gauge" /> {t("coverage.title", { share: format.percent(run.coverage.share ?? 0) })}
      </summary>
      <div className="table-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">{t("coverage.part")}</th>
              <th scope="col">{t("coverage.state")}</th>
              <th scope="col">{t("coverage.passages")}</th>
            </tr>
          </thead>
          <tbody>
            {run.coverage.parts.map((part) => (
              <tr key={part.text} data-testid="coverage-part" data-state={part.state ?? ""}>
                <td dir="auto">{part.text}</td>
                <td className="tight">{words(part.state)}</td>
                <td>
                  {part.evidence.map((number) => (
                    <button
                      type="button"
                      key={number}
                      className="mark-number"
                      onClick={() => open(number)}
                      aria-label={t("sources.passage", { number })}
                    >
                      {number}
                    </button>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** What was checked, claim by claim. Of quotes there is nothing to read: they are their sources' own words. */
export function Claims({ run }: { run: FoldedRun }) {
  const { t } = useTranslation();
  const format = useFormat();
  const claims = run.method === "extractive" ? [] : (run.verification?.sentences ?? []).filter((each) => each.verdict !== "no_claim");
  if (!claims.length) return null;
  return (
    <details className="claims" data-testid="claims">
      <summary>
        <Icon name="check" /> {t("claims.title", { count: claims.length })}
      </summary>
      <ol>
        {claims.map((claim, index) => {
          const { status, words } = verdictWords(claim, t);
          return (
            <li key={`${index}-${claim.sentence}`} className="claim" data-testid="claim" data-status={status}>
              <span dir="auto">{claim.sentence}</span>
              <span className="verdict-words">
                {[words, claim.searched ? t("claims.searched") : "", claim.removed ? t("claims.removed") : ""].filter(Boolean).join("; ")}
              </span>
              {claim.span?.text && <q dir="auto">{claim.span.text}</q>}
            </li>
          );
        })}
      </ol>
      <p className="hint" data-testid="judge">
        {judgeWords(run.verification, t, format)}
      </p>
    </details>
  );
}

/** What is said of the whole: whether its sources carry it, and how likely it answers the question. */
export function Verdicts({ run }: { run: FoldedRun }) {
  const { t } = useTranslation();
  const format = useFormat();
  const support = supportWords(run, t);
  const confidence = confidenceWords(run, t, format);
  if (!support && !confidence) return null;
  return (
    <div className="verdicts">
      {support && (
        <p className="verdict" data-testid="support-status" data-status={run.support_status ?? ""}>
          <Icon name={run.support_status === "supported" ? "check" : "warning"} /> {support}
        </p>
      )}
      {confidence && (
        <p className="verdict" data-testid="answer-status" data-status={run.answer_status ?? ""}>
          <Icon name={run.answer_status === "likely" ? "check" : "warning"} /> {confidence}
        </p>
      )}
    </div>
  );
}
