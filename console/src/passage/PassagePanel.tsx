// The passage behind a citation: of a PDF the page with the cited words outlined, of others the text with the words marked; the claims
// that it carries with their verdicts, and why it was found.

import { useQuery } from "@tanstack/react-query";
import { lazy, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { api, dataOf, download } from "../api/client";
import type { Citation } from "../api/types";
import { useFormat } from "../i18n/format";
import { Button, Failure, Icon, IconButton, Segments } from "../parts";
import { attachRun, useRun } from "../run/store";
import { useKey } from "../shell/keys";
import { Later } from "../shell/Later";
import { dotted, joined, placeOf, quoted, webAddressOf } from "../text";
import { closePassage, goOn, passageOf, passagesOf, type Shown } from "./shown";
import { claimsOf, verdictWords } from "./verdicts";

const PdfPage = lazy(() => import("./PdfPage"));

type Look = "page" | "text";

export function PassagePanel({ shown }: { shown: Shown }) {
  const { t } = useTranslation();
  const citation = passageOf(shown);
  useKey("nextCitation", () => goOn(shown, 1));
  useKey("previousCitation", () => goOn(shown, -1));
  useKey("closePanel", closePassage);
  if (!citation) return <Failure>{t("passage.gone")}</Failure>;
  const all = passagesOf(shown);
  const place = dotted([citation.page ? t("passage.page", { page: citation.page }) : "", placeOf(citation)]);
  return (
    <>
      <header className="panel-head">
        <span className="mark-number" aria-hidden="true">
          {citation.number}
        </span>
        <div className="panel-title">
          <h2 dir="auto">{citation.document_name}</h2>
          {place && (
            <p className="hint" dir="auto">
              {place}
            </p>
          )}
          <ReadAt citation={citation} />
        </div>
        {all.length > 1 && (
          <>
            <IconButton label={t("passage.previous")} icon="back" onPress={() => goOn(shown, -1)} data-testid="previous-citation" />
            <IconButton label={t("passage.next")} icon="next" onPress={() => goOn(shown, 1)} data-testid="next-citation" />
          </>
        )}
        <IconButton label={t("passage.close")} icon="close" onPress={closePassage} data-testid="passage-close" />
      </header>
      <Carried shown={shown} citation={citation} />
      <Passage key={`${citation.chunk_id}-${citation.number}-${citation.quote_start}`} citation={citation} />
      <WhyFound shown={shown} citation={citation} />
    </>
  );
}

/** When a page of the web was read, and where: it may say something else by now. */
function ReadAt({ citation }: { citation: Citation }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { read_at, channel } = citation.origin ?? {};
  if (!read_at) return null;
  return (
    <p className="hint" dir="auto" data-testid="passage-read-at">
      {t("passage.read_at", { when: format.moment(read_at), address: channel ?? "" })}
    </p>
  );
}

/** The claims of the answer that cite this passage. */
function Carried({ shown, citation }: { shown: Shown; citation: Citation }) {
  const { t } = useTranslation();
  const claims = claimsOf(citation.number, shown.run.verification);
  if (!claims.length) return null;
  return (
    <ul className="carried" aria-label={t("passage.claims")} data-testid="passage-claims">
      {claims.map((claim, index) => {
        const { status, words } = verdictWords(claim, t);
        return (
          <li key={`${index}-${claim.sentence}`} className="claim" data-status={status}>
            <span dir="auto">{claim.sentence}</span>
            <span className="verdict-words">{words}</span>
          </li>
        );
      })}
    </ul>
  );
}

/** The cited page or the text, and the document to save. */
export function Passage({ citation }: { citation: Citation }) {
  const { t } = useTranslation();
  const address = webAddressOf(citation);
  const id = citation.document_id ?? "";
  const { data: document, isLoading } = useQuery({
    queryKey: ["document", id],
    queryFn: () => dataOf(api.GET("/v1/documents/{document_id}", { params: { path: { document_id: id } } })),
    enabled: Boolean(id) && !address,
    retry: false,
  });
  const [chosen, choose] = useState<Look | null>(null);
  const [problem, setProblem] = useState("");
  const isPdf = document?.media_type === "application/pdf" && Boolean(citation.page);
  const look = isPdf ? (chosen ?? "page") : "text";
  const save = () => download(`/v1/documents/${encodeURIComponent(id)}/content`).catch((error: Error) => setProblem(error.message));
  return (
    <div className="panel-body">
      <div className="panel-bar">
        {isPdf && (
          <Segments
            label={t("passage.look")}
            value={look}
            options={[
              { id: "page", label: t("passage.asPage") },
              { id: "text", label: t("passage.asText") },
            ]}
            onChange={choose}
            testId="look"
          />
        )}
        {address ? (
          <a href={address} target="_blank" rel="noopener noreferrer nofollow">
            {t("passage.openPage")}
          </a>
        ) : (
          document && (
            <Button look="link" icon="download" onPress={save} data-testid="passage-download">
              {t("passage.download")}
            </Button>
          )
        )}
      </div>
      <Failure>{problem}</Failure>
      {isLoading && citation.page ? (
        <p className="loading">{t("common.loading")}</p>
      ) : look === "page" ? (
        <Later>
          <PdfPage documentId={id} citation={citation} />
        </Later>
      ) : (
        <PassageText citation={citation} hasSurroundings={!address} />
      )}
    </div>
  );
}

function PassageText({ citation, hasSurroundings }: { citation: Citation; hasSurroundings: boolean }) {
  const { t } = useTranslation();
  const mark = useRef<HTMLElement>(null);
  const { data: around, isError } = useQuery({
    queryKey: ["chunk", citation.chunk_id],
    queryFn: () =>
      dataOf(api.GET("/v1/chunks/{chunk_id}", { params: { path: { chunk_id: citation.chunk_id ?? "" }, query: { window: 1 } } })),
    enabled: hasSurroundings && Boolean(citation.chunk_id),
    retry: false,
  });
  useEffect(() => {
    mark.current?.scrollIntoView({ block: "center" });
  }, [around]);
  const [before, quote, after] = quoted(citation.text, citation.quote_start, citation.quote_end);
  const neighbours = around ? joined(around) : { before: [], after: [] };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
    <section className="passage-scroll" tabIndex={0} aria-label={t("passage.text")} data-testid="passage-text">
      {neighbours.before.map((text) => (
        <p key={text} className="passage-text around" dir="auto">
          {text}
        </p>
      ))}
      <p className="passage-text" dir="auto">
        {before}
        <mark ref={mark}>{quote}</mark>
        {after}
      </p>
      {neighbours.after.map((text) => (
        <p key={text} className="passage-text around" dir="auto">
          {text}
        </p>
      ))}
      {isError && <p className="hint">{t("passage.changed")}</p>}
    </section>
  );
}

/** Ranks and scores of the passage, and what was left out beside it. */
function WhyFound({ shown, citation }: { shown: Shown; citation: Citation }) {
  const { t } = useTranslation();
  const format = useFormat();
  const [isOpen, setOpen] = useState(false);
  const [store, setStore] = useState<ReturnType<typeof attachRun>>();
  const followed = useRun(store);
  const evidence = shown.evidence.length ? shown.evidence : followed.evidence;
  const dropped = shown.evidence.length ? shown.dropped : followed.dropped;
  useEffect(() => {
    if (isOpen && !shown.evidence.length && shown.runId) setStore(attachRun(shown.runId));
  }, [isOpen, shown]);
  const found = evidence.find((each) => each.chunk_id === citation.chunk_id);
  return (
    <details className="why" onToggle={(event) => setOpen(event.currentTarget.open)} data-testid="why-found">
      <summary>
        <Icon name="search" /> {t("passage.why")}
      </summary>
      {found ? (
        <dl className="facts">
          <div>
            <dt>{t("passage.rank")}</dt>
            <dd>
              {t("passage.rankOf", {
                rank: format.number(found.number || evidence.indexOf(found) + 1),
                count: format.number(evidence.length),
              })}
            </dd>
          </div>
          {found.score !== null && (
            <div>
              <dt>{t("passage.score")}</dt>
              <dd>{format.number(found.score, 3)}</dd>
            </div>
          )}
          {found.dense_score !== null && (
            <div>
              <dt>{t("passage.similarity")}</dt>
              <dd>{format.number(found.dense_score, 3)}</dd>
            </div>
          )}
        </dl>
      ) : (
        <p className="hint">{t("passage.whyUnknown")}</p>
      )}
      {found && found.ranks.length > 0 && (
        <div className="table-scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">{t("passage.query")}</th>
                <th scope="col">{t("passage.stage")}</th>
                <th scope="col">{t("passage.rank")}</th>
                <th scope="col">{t("passage.score")}</th>
              </tr>
            </thead>
            <tbody>
              {found.ranks.map((each) => (
                <tr key={`${each.query}-${each.stage}`}>
                  <td dir="auto">{each.query || "–"}</td>
                  <td>{each.stage}</td>
                  <td>{format.number(each.rank)}</td>
                  <td>{each.score === null ? "–" : format.number(each.score, 3)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {dropped.length > 0 && (
        <>
          <p className="hint">{t("passage.dropped", { count: dropped.length })}</p>
          <ul className="dropped hint">
            {dropped.slice(0, 12).map((each) => (
              <li key={`${each.chunk_id}-${each.stage}`} dir="auto">
                {each.document_name}: {t(`search.drop_${each.stage}` as "search.drop_top_k", { defaultValue: each.stage })}
              </li>
            ))}
          </ul>
        </>
      )}
    </details>
  );
}
