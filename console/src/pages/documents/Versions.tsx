// The versions of a document: when each was asked for and by whom, which file it was, and what became of it.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, dataOf } from "../../api/client";
import type { Document, Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Failure, Icon } from "../../parts";
import { dotted } from "../../text";

type Version = Schemas["DocumentRevision"];

export function Versions({ document }: { document: Document }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const { data, error, isPending } = useQuery({
    queryKey: ["revisions", document.id, document.updated_at],
    queryFn: () =>
      dataOf(api.GET("/v1/documents/{document_id}/revisions", { params: { path: { document_id: document.id } }, cache: "no-store" })),
    placeholderData: (before) => before,
    enabled: isOpen,
    retry: false,
  });
  const versions = data?.revisions ?? [];
  return (
    <details className="access" data-testid="versions" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="archive" /> {t("versions.title")}
      </summary>
      <div className="stack">
        <Failure>{error?.message}</Failure>
        {isPending && !error && <p className="hint">{t("common.loading")}</p>}
        {data && !versions.length && <p className="hint">{t("versions.none")}</p>}
        <ol className="versions">
          {versions.map((each, index) => (
            <VersionRow key={each.id} version={each} before={versions[index + 1]} />
          ))}
        </ol>
        {versions.length > 1 && <p className="hint">{t("versions.hint")}</p>}
      </div>
    </details>
  );
}

function VersionRow({ version, before }: { version: Version; before?: Version }) {
  const { t } = useTranslation();
  const format = useFormat();
  const state = version.state ?? "unknown";
  const isSameFile = before !== undefined && before.sha256 === version.sha256;
  const details = [
    format.size(version.size_bytes ?? 0),
    version.page_count ? t("documents.pages", { count: version.page_count }) : "",
    version.chunk_count ? t("documents.passages", { count: version.chunk_count }) : "",
    isSameFile ? t("versions.sameFile") : "",
  ];
  return (
    <li data-testid="version" data-state={state}>
      <div className="version-head">
        <strong>{t("versions.number", { number: format.number(version.number) })}</strong>
        <span className="version-state">{t(`versions.state_${state}` as "versions.state_active", { defaultValue: state })}</span>
        <span className="hint">{version.queued_at ? format.moment(version.queued_at) : t("versions.longAgo")}</span>
        {version.queued_by && (
          <span className="hint">
            {t("versions.by")} <bdi>{version.queued_by}</bdi>
          </span>
        )}
      </div>
      <p className="hint">
        {dotted(details)} ·{" "}
        <abbr title={version.sha256} className="hash" dir="ltr">
          {(version.sha256 ?? "").slice(0, 12)}
        </abbr>
      </p>
      <Failure>{version.error?.message}</Failure>
    </li>
  );
}
