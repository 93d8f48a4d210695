// What a search found: the decision before it, the time of each stage, the hits with their ranks, and what was left out.

import { useTranslation } from "react-i18next";
import type { Schemas } from "../../api/types";
import { degradedWords } from "../../api/words";
import { useFormat } from "../../i18n/format";
import { Icon } from "../../parts";
import { Table } from "../../parts/Table";
import { openPassage } from "../../passage/shown";
import { dotted, placeOf } from "../../text";

type Answer = Schemas["SearchResponse"];
type Hit = Schemas["Hit"];

export function Found({ answer, name, other }: { answer: Answer; name: string; other?: Answer }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { plan } = answer;
  return (
    <section className="found-list" aria-label={name ? t("search.resultOf", { name }) : t("search.result")} data-testid="search-result">
      {name && <h2>{t("search.resultOf", { name })}</h2>}
      {plan && (
        <p className="hint" dir="auto">
          {dotted([plan.reason, plan.rerank_reason])}
        </p>
      )}
      <Times times={answer.timings_ms as Record<string, number>} />
      {answer.degraded.map((each) => (
        <p key={each.reason} className="warning" dir="auto">
          <Icon name="warning" /> <span>{degradedWords(each)}</span>
        </p>
      ))}
      {!answer.hits.length && <p className="hint">{t("search.nothing")}</p>}
      <ol className="hits">
        {answer.hits.map((hit, index) => (
          <HitCard key={hit.chunk_id} hit={hit} rank={index + 1} otherRank={other ? rankIn(other, hit) : undefined} />
        ))}
      </ol>
      {answer.dropped.length > 0 && (
        <details data-testid="dropped">
          <summary>{t("search.dropped", { count: answer.dropped.length })}</summary>
          <Table>
            <thead>
              <tr>
                <th scope="col">{t("search.passage")}</th>
                <th scope="col">{t("search.stage")}</th>
                <th scope="col">{t("search.reason")}</th>
              </tr>
            </thead>
            <tbody>
              {answer.dropped.map((each) => (
                <tr key={`${each.chunk_id}-${each.stage}`}>
                  <td dir="ltr">{each.chunk_id}</td>
                  <td>{t(`search.drop_${each.stage}` as "search.drop_top_k", { defaultValue: each.stage })}</td>
                  <td dir="auto">{each.reason}</td>
                </tr>
              ))}
            </tbody>
          </Table>
        </details>
      )}
      <p className="hint">
        {t("search.done", {
          strategy: answer.strategy ?? "",
          fusion: answer.fusion ?? "",
          time: format.duration(((answer.timings_ms as Record<string, number>).total ?? 0) / 1000),
        })}
      </p>
    </section>
  );
}

function rankIn(answer: Answer, hit: Hit): number {
  return answer.hits.findIndex((each) => each.chunk_id === hit.chunk_id) + 1;
}

/** The time of each stage as bars of one length. */
function Times({ times }: { times: Record<string, number> }) {
  const { t } = useTranslation();
  const format = useFormat();
  const stages = Object.entries(times).filter(([stage, ms]) => stage !== "total" && ms > 0);
  const name = (stage: string) => t(`search.time_${stage}` as "search.time_embed", { defaultValue: stage });
  const longest = Math.max(...stages.map(([, ms]) => ms), 1);
  return (
    <dl className="times" aria-label={t("search.times")}>
      {stages.map(([stage, ms]) => (
        <div key={stage}>
          <dt>{name(stage)}</dt>
          <dd>
            <meter min={0} max={longest} value={ms} aria-label={name(stage)} /> {format.duration(ms / 1000)}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function HitCard({ hit, rank, otherRank }: { hit: Hit; rank: number; otherRank?: number }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { explain } = hit;
  const place = dotted([hit.page ? t("passage.page", { page: hit.page }) : "", placeOf(hit)]);
  const stages: [string, number | null | undefined, number | null | undefined][] = [
    [t("search.words"), explain?.lexical_rank, explain?.lexical_score],
    [t("search.meaning"), explain?.dense_rank, explain?.dense_score],
    [t("search.fused"), explain?.fused_rank, explain?.fused_score],
    [t("search.reranked"), explain?.rerank_rank, explain?.rerank_score],
    [t("search.chosen"), explain?.diversity_rank, null],
  ];
  const open = () =>
    openPassage({
      number: rank,
      run: { citations: [{ ...hit, number: rank, quote_start: 0, quote_end: 0, origin: null }], verification: null },
      runId: "",
      evidence: [],
      dropped: [],
    });
  return (
    <li className="card hit" data-testid="hit">
      <div className="hit-head">
        <span className="mark-number" aria-hidden="true">
          {format.number(rank)}
        </span>
        <button type="button" className="hit-name" onClick={open} dir="auto">
          {hit.document_name}
        </button>
        {otherRank !== undefined && (
          <span className="moved" data-status={otherRank === rank ? "" : otherRank === 0 ? "new" : otherRank > rank ? "up" : "down"}>
            {otherRank === 0 ? t("search.onlyHere") : otherRank === rank ? "=" : t("search.thereRank", { rank: otherRank })}
          </span>
        )}
      </div>
      {place && (
        <p className="hint" dir="auto">
          {place}
        </p>
      )}
      <p className="hit-text" dir="auto">
        {hit.text}
      </p>
      <ul className="ranks" aria-label={t("search.ranks")}>
        {stages
          .filter(([, at]) => at !== null && at !== undefined)
          .map(([stage, at, score]) => (
            <li key={stage}>
              <span className="hint">{stage}</span> <strong>{format.number(at ?? 0)}</strong>{" "}
              {score !== null && score !== undefined && <span className="hint">{format.number(score, 3)}</span>}
            </li>
          ))}
      </ul>
    </li>
  );
}
