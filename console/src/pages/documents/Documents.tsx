// The documents: collections, uploads on their way, and thousands of rows of which only those in sight are drawn.

import { useVirtualizer } from "@tanstack/react-virtual";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Document } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Empty, Icon, Name, Status } from "../../parts";
import { useMay } from "../../shell/caller";
import { Collections } from "./Collections";
import { useChosenCollection, useCollections } from "./collections";
import { DocumentDialog } from "./DocumentDialog";
import { useDocuments } from "./feed";
import { statusWords } from "./states";
import { UploadBox, UploadList } from "./UploadBox";
import "../../style/documents.css";
import { dotted } from "../../text";

type Filter = "all" | "ready" | "processing" | "failed";
const ROW = 56;
const LINE = 20;

export function Documents() {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  const { collection: wanted } = useSearch({ from: "/documents" });
  const { documents, isComplete } = useDocuments();
  const [words, setWords] = useState("");
  const [filter, setFilter] = useState<Filter>("all");
  const [opened, open] = useState<string | null>(null);
  const { mayEdit } = useCollections();
  const chosen = useChosenCollection(wanted ?? "");
  const mine = useMemo(() => documents.filter((each) => each.collection_id === chosen), [documents, chosen]);
  const shown = useMemo(() => {
    const lowered = words.trim().toLowerCase();
    return mine.filter((each) => each.name.toLowerCase().includes(lowered) && fits(each, filter));
  }, [mine, words, filter]);
  const document = opened ? documents.find((each) => each.id === opened) : undefined;
  return (
    <div className="documents-page">
      <header className="page-head">
        <h1>{t("shell.documents")}</h1>
      </header>
      <div className="documents-layout">
        <Collections
          chosen={chosen}
          documents={documents}
          onChoose={(collection) => navigate({ to: "/documents", search: { collection } })}
        />
        <section className="library" aria-labelledby="library-title">
          {may.change && mayEdit(chosen) && <UploadBox collection={chosen} />}
          <UploadList />
          <div className="library-bar">
            <label className="find">
              <Icon name="search" />
              <span className="visually-hidden">{t("documents.find")}</span>
              <input
                type="search"
                value={words}
                onChange={(event) => setWords(event.target.value)}
                placeholder={t("documents.find")}
                dir="auto"
                data-testid="find-document"
              />
            </label>
            <label className="choice">
              <span className="visually-hidden">{t("documents.filter")}</span>
              <select value={filter} onChange={(event) => setFilter(event.target.value as Filter)} data-testid="filter">
                {(["all", "ready", "processing", "failed"] as Filter[]).map((each) => (
                  <option key={each} value={each}>
                    {t(`documents.filter_${each}`)}
                  </option>
                ))}
              </select>
            </label>
            <Status className="hint">
              {isComplete
                ? t("documents.summary", { ready: mine.filter((each) => each.status === "ready").length, count: mine.length })
                : t("common.loading")}
            </Status>
          </div>
          <h2 id="library-title" className="visually-hidden">
            {t("shell.documents")}
          </h2>
          {isComplete && !mine.length && (
            <Empty icon="document" title={t("documents.none")}>
              {t("documents.noneHint")}
            </Empty>
          )}
          {mine.length > 0 && !shown.length && <p className="hint">{t("documents.noMatch")}</p>}
          <Rows documents={shown} onOpen={open} />
        </section>
      </div>
      {document && <DocumentDialog document={document} onClose={() => open(null)} />}
    </div>
  );
}

function fits({ status, error }: Document, filter: Filter): boolean {
  if (filter === "all") return true;
  if (filter === "failed") return status === "failed" || Boolean(error);
  return filter === "processing" ? status === "processing" || status === "queued" : status === "ready";
}

function Rows({ documents, onOpen }: { documents: Document[]; onOpen: (id: string) => void }) {
  const scroll = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: documents.length,
    getScrollElement: () => scroll.current,
    // What went wrong has a second line.
    estimateSize: (index) => ROW + (documents[index]?.error ? LINE : 0),
    overscan: 12,
  });
  useEffect(() => rows.measure(), [documents, rows]);
  if (!documents.length) return null;
  return (
    <div className="rows card" ref={scroll}>
      <ul ref={(element) => element?.style.setProperty("height", `${rows.getTotalSize()}px`)}>
        {rows.getVirtualItems().map((item) => {
          const document = documents[item.index];
          return document ? (
            <Row key={document.id} document={document} top={item.start} position={item.index} count={documents.length} onOpen={onOpen} />
          ) : null;
        })}
      </ul>
    </div>
  );
}

function Row({
  document,
  top,
  position,
  count,
  onOpen,
}: {
  document: Document;
  top: number;
  position: number;
  count: number;
  onOpen: (id: string) => void;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const { status, error, report, size_bytes: bytes } = document;
  const isReady = status === "ready";
  const details = [
    format.size(bytes ?? 0),
    report?.page_count ? t("documents.pages", { count: report.page_count }) : "",
    isReady ? t("documents.passages", { count: report?.chunk_count ?? 0 }) : "",
  ];
  return (
    <li
      className="row"
      data-testid="document-row"
      data-id={document.id}
      data-error={error ? true : undefined}
      data-status={error && isReady ? "warned" : status}
      aria-setsize={count}
      aria-posinset={position + 1}
      ref={(element) => element?.style.setProperty("transform", `translateY(${top}px)`)}
    >
      <button type="button" className="row-button" onClick={() => onOpen(document.id)}>
        <Icon name="document" />
        <span className="row-text">
          <Name>{document.name}</Name>
          <span className="hint row-detail" dir={error ? "auto" : undefined}>
            {error ? error.message : dotted(details)}
          </span>
        </span>
        <span className="status">{statusWords(document, t)}</span>
        {status === "processing" && <progress max={1} value={document.progress ?? 0} aria-label={t("documents.progress")} />}
      </button>
    </li>
  );
}
