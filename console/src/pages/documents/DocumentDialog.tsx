// One document: how it was read, what went wrong, its pages, and what can be done with it.

import { useQuery } from "@tanstack/react-query";
import { lazy, useState } from "react";
import { useTranslation } from "react-i18next";
import { api, call, download } from "../../api/client";
import type { Citation, Document } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Button, Confirm, Dialog, Failure, Icon } from "../../parts";
import { useMay } from "../../shell/caller";
import { Later } from "../../shell/Later";
import { dotted } from "../../text";
import { AccessList } from "./AccessList";
import { useCollections } from "./collections";
import { putDocument, whileLeaving } from "./feed";
import { mayRetry, statusWords } from "./states";
import { Versions } from "./Versions";

const PdfPage = lazy(() => import("../../passage/PdfPage"));
const TEXTS = /^(text\/|application\/json)/;
const SHOWN_BYTES = 200_000;

export function DocumentDialog({ document, onClose }: { document: Document; onClose: () => void }) {
  const { t } = useTranslation();
  const may = useMay();
  const { mayEdit } = useCollections();
  const [isDeleting, setDeleting] = useState(false);
  const [problem, setProblem] = useState("");
  const params = { path: { document_id: document.id } };
  const act = (work: () => Promise<unknown>) => {
    setProblem("");
    work().catch((error: Error) => setProblem(error.message));
  };
  const reindex = () =>
    act(async () => {
      const { data } = await api.POST("/v1/documents/{document_id}/reindex", { params });
      if (data) putDocument(data.document);
    });
  const remove = async () => {
    await whileLeaving(document.id, () => api.DELETE("/v1/documents/{document_id}", { params }));
    onClose();
  };
  return (
    <Dialog title={document.name} isOpen onClose={onClose} className="document-dialog" testId="document">
      <div className="actions start">
        <Button
          icon="download"
          onPress={() => act(() => download(`/v1/documents/${encodeURIComponent(document.id)}/content`))}
          data-testid="download"
        >
          {t("documents.download")}
        </Button>
        {may.change && mayEdit(document.collection_id) && (
          <>
            <Button icon="retry" onPress={reindex} data-testid="reindex">
              {mayRetry(document) ? t("documents.retry") : t("documents.reindex")}
            </Button>
            <Button look="danger" icon="trash" onPress={() => setDeleting(true)} data-testid="delete">
              {t("common.delete")}
            </Button>
          </>
        )}
      </div>
      <Failure>{problem}</Failure>
      <Failure data-testid="document-error">{document.error?.message}</Failure>
      {document.error && !mayRetry(document) && <p className="hint">{t("documents.final")}</p>}
      <Report document={document} />
      <Versions document={document} />
      {may.change && mayEdit(document.collection_id) && <AccessList documentId={document.id} />}
      <Preview document={document} />
      <Confirm
        title={t("documents.deleteTitle")}
        action={t("common.delete")}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={remove}
      >
        <p dir="auto">{document.name}</p>
        <p>{t("documents.deleteHint")}</p>
      </Confirm>
    </Dialog>
  );
}

/** What happened on the way. */
function Report({ document }: { document: Document }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { report } = document;
  const seconds = Object.entries((report?.stage_seconds ?? {}) as Record<string, number>);
  const failed = (report?.pages ?? []).filter((each) => each.status === "failed").map((each) => format.number(each.page ?? 0));
  const empty = (report?.pages ?? []).filter((each) => each.status === "empty").length;
  const stage = (name: string) => t(`documents.stage_${name}` as "documents.stage_parse", { defaultValue: name });
  const facts: [string, string][] = [
    [t("documents.state"), statusWords(document, t)],
    [t("documents.size"), format.size(document.size_bytes ?? 0)],
    [t("documents.type"), document.media_type ?? ""],
    [t("documents.uploaded"), document.created_at ? format.moment(document.created_at) : ""],
    [t("documents.changed"), document.updated_at ? format.moment(document.updated_at) : ""],
    [t("documents.pageCount"), report?.page_count ? format.number(report.page_count) : ""],
    [t("documents.passageCount"), report?.chunk_count ? format.number(report.chunk_count) : ""],
    [t("documents.kept"), report?.reused_chunk_count ? format.number(report.reused_chunk_count) : ""],
    [t("documents.languages"), (report?.languages ?? []).join(", ")],
    [t("documents.failedPages"), failed.length ? format.list(failed) : ""],
    [t("documents.emptyPages"), empty ? format.number(empty) : ""],
    [t("documents.slowest"), report?.slowest_stage ? stage(report.slowest_stage) : ""],
    [t("documents.times"), dotted(seconds.map(([name, took]) => `${stage(name)} ${format.duration(took)}`))],
    [t("documents.attempts"), (report?.attempts ?? 0) > 1 ? format.number(report?.attempts ?? 0) : ""],
  ];
  return (
    <>
      <dl className="facts" data-testid="report">
        {facts
          .filter(([, value]) => value)
          .map(([name, value]) => (
            <div key={name} className={value.length > 60 ? "wide" : ""}>
              <dt>{name}</dt>
              <dd>
                <bdi>{value}</bdi>
              </dd>
            </div>
          ))}
      </dl>
      {(report?.warnings ?? []).map((each) => (
        <p key={each} className="warning" dir="auto">
          <Icon name="warning" /> {each}
        </p>
      ))}
    </>
  );
}

function Preview({ document }: { document: Document }) {
  const { t } = useTranslation();
  const type = document.media_type ?? "";
  const isText = TEXTS.test(type);
  const text = useQuery({
    queryKey: ["content", document.id, document.revision_id],
    queryFn: async () => (await (await call(`/v1/documents/${encodeURIComponent(document.id)}/content`)).text()).slice(0, SHOWN_BYTES),
    enabled: isText,
  });
  if (type === "application/pdf") {
    return (
      <Later>
        <PdfPage documentId={document.id} citation={WHOLE} />
      </Later>
    );
  }
  if (!isText) return <p className="hint">{t("documents.noPreview")}</p>;
  return (
    <>
      <Failure>{text.error?.message}</Failure>
      {text.data !== undefined && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
        <pre className="preview-text" dir="auto" tabIndex={0} data-testid="preview">
          {text.data}
        </pre>
      )}
    </>
  );
}

/** No words of a document in particular. */
const WHOLE: Citation = {
  number: 0,
  document_id: null,
  document_name: "",
  chunk_id: null,
  page: null,
  text: "",
  quote_start: 0,
  quote_end: 0,
  bounding_boxes: [],
  heading_path: [],
  origin: null,
};
