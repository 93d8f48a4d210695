import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Button, Empty, Failure } from "../../parts";
import { Table } from "../../parts/Table";
import { useCollections } from "../documents/collections";
import { isKind } from "./kinds";
import { NewSource } from "./NewSource";
import { SourceDialog } from "./SourceDialog";
import "../../style/pages.css";

export type Source = Schemas["Source"];
const LOOK_EVERY_MS = 3000;

/** The places from which collections are filled: what they are doing, and which of their files fail. */
export function Sources() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [isMaking, setMaking] = useState(false);
  const [open, setOpen] = useState("");
  const { data, error } = useQuery({
    queryKey: ["sources"],
    queryFn: async () => (await dataOf(api.GET("/v1/sources"))).sources,
    refetchInterval: LOOK_EVERY_MS,
    retry: false,
  });
  const again = () => queries.invalidateQueries({ queryKey: ["sources"] });
  return (
    <div className="column wide stack">
      <header className="page-head">
        <h1>{t("sourcesPage.title")}</h1>
        <p className="lead">{t("sourcesPage.lead")}</p>
      </header>
      <div className="actions start">
        <Button icon="add" look="primary" onPress={() => setMaking(true)} data-testid="new-source">
          {t("sourcesPage.new")}
        </Button>
      </div>
      <Failure>{error?.message}</Failure>
      {data && !data.length && (
        <Empty icon="folder" title={t("sourcesPage.none")}>
          <p>{t("sourcesPage.noneHint")}</p>
        </Empty>
      )}
      {data && data.length > 0 && <SourceTable sources={data} onOpen={setOpen} />}
      {isMaking && (
        <NewSource
          onClose={() => setMaking(false)}
          onMade={(id) => {
            again();
            setOpen(id);
          }}
        />
      )}
      {open && <SourceDialog id={open} onClose={() => setOpen("")} onChange={again} />}
    </div>
  );
}

function SourceTable({ sources, onOpen }: { sources: Source[]; onOpen: (id: string) => void }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { nameOf } = useCollections();
  return (
    <Table data-testid="sources">
      <thead>
        <tr>
          <th scope="col">{t("sourcesPage.name")}</th>
          <th scope="col">{t("sourcesPage.kind")}</th>
          <th scope="col">{t("sourcesPage.collection")}</th>
          <th scope="col">{t("sourcesPage.state")}</th>
          <th scope="col">{t("sourcesPage.files")}</th>
          <th scope="col">{t("sourcesPage.failing")}</th>
          <th scope="col">{t("sourcesPage.next")}</th>
        </tr>
      </thead>
      <tbody>
        {sources.map((each) => (
          <tr key={each.id}>
            <td dir="auto">
              <Button look="link" onPress={() => onOpen(each.id)}>
                {each.name}
              </Button>
            </td>
            <td>{isKind(each.kind) ? t(`sourcesPage.kind_${each.kind}`) : each.kind}</td>
            <td dir="auto">{nameOf(each.collection_id)}</td>
            <td>{t(`sourcesPage.state_${each.state}`)}</td>
            <td className="tight">{format.number(each.file_count)}</td>
            <td className="tight">{each.failing_count ? format.number(each.failing_count) : "–"}</td>
            <td className="tight">{each.next_sync_at ? format.moment(each.next_sync_at) : "–"}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
