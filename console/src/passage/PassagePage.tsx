// A passage by itself, which citations in other programs lead to: its page with the cited words outlined, or its text with them marked.

import { useQuery } from "@tanstack/react-query";
import { useParams, useSearch } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { api, dataOf } from "../api/client";
import type { Citation, Schemas } from "../api/types";
import { Failure } from "../parts";
import { boxesOf, placeOf } from "../text";
import { Passage } from "./PassagePanel";

export function PassagePage() {
  const { t } = useTranslation();
  const { chunkId } = useParams({ from: "/passages/$chunkId" });
  const { from = 0, to = 0 } = useSearch({ from: "/passages/$chunkId" });
  const { data, error } = useQuery({
    queryKey: ["chunk", chunkId],
    queryFn: () => dataOf(api.GET("/v1/chunks/{chunk_id}", { params: { path: { chunk_id: chunkId }, query: { window: 1 } } })),
    retry: false,
  });
  const citation = data && asCitation(data.chunk, from, to);
  const place =
    citation && [citation.page ? t("passage.page", { page: citation.page }) : "", placeOf(citation)].filter(Boolean).join(" · ");
  return (
    <div className="column wide" data-testid="passage-page">
      <header className="page-head">
        <h1 dir="auto">{citation?.document_name ?? t("passage.title")}</h1>
        {place && (
          <p className="hint" dir="auto">
            {place}
          </p>
        )}
      </header>
      {error && (
        <Failure>
          {t("passage.gone")} {error.message}
        </Failure>
      )}
      {citation ? (
        <div className="card passage-card">
          <Passage citation={citation} />
        </div>
      ) : (
        !error && <p className="loading">{t("common.loading")}</p>
      )}
    </div>
  );
}

/** The passage as a citation of these characters of it; of all of it where there are none. */
function asCitation(passage: Schemas["Passage"], from: number, to: number): Citation {
  const { chunk_id, document_id, document_name, heading_path, page, text } = passage;
  const bounding_boxes = boxesOf(passage.bounding_boxes, from, to);
  return {
    number: 1,
    chunk_id,
    document_id,
    document_name,
    heading_path,
    page,
    text,
    bounding_boxes,
    origin: null,
    quote_start: from,
    quote_end: to,
  };
}
