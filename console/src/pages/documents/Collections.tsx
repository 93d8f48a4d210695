// The collections: chosen, made, renamed, shared, deleted.

import { useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf, dataOf } from "../../api/client";
import type { Collection, Document, Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { ActionMenu, Button, Confirm, Dialog, Failure, Icon, IconButton, type Choice } from "../../parts";
import { TextField } from "../../parts/fields";
import { MemoryDialog } from "../../parts/MemoryDialog";
import { useMay } from "../../shell/caller";
import { useCollections } from "./collections";
import { EmbeddingDialog } from "./EmbeddingDialog";
import { LocalModelsDialog } from "./LocalModelsDialog";
import { MembersDialog } from "./MembersDialog";

export function Collections({ chosen, documents, onChoose }: { chosen: string; documents: Document[]; onChoose: (id: string) => void }) {
  const { t } = useTranslation();
  const may = useMay();
  const { collections, error } = useCollections();
  const [isMaking, setMaking] = useState(false);
  const counts = new Map<string, number>();
  for (const each of documents) counts.set(each.collection_id ?? "", (counts.get(each.collection_id ?? "") ?? 0) + 1);
  return (
    <nav className="collections" aria-label={t("documents.collections")}>
      <header>
        <h2>{t("documents.collections")}</h2>
        {may.arrange && (
          <IconButton label={t("documents.newCollection")} icon="add" onPress={() => setMaking(true)} data-testid="new-collection" />
        )}
      </header>
      <Failure>{error?.message}</Failure>
      <ul>
        {collections.map((each) => (
          <Item key={each.id} collection={each} count={counts.get(each.id) ?? 0} isChosen={each.id === chosen} onChoose={onChoose} />
        ))}
      </ul>
      {isMaking && (
        <NameDialog
          title={t("documents.newCollection")}
          onClose={() => setMaking(false)}
          onSave={async (name) =>
            onChoose((await dataOf(api.POST("/v1/collections", { body: bodyOf<Schemas["NewCollection"]>({ name }) }))).id)
          }
        />
      )}
    </nav>
  );
}

type Open = "rename" | "share" | "members" | "delete" | "embedding" | "memory" | "localModels" | null;

function Item({
  collection,
  count,
  isChosen,
  onChoose,
}: {
  collection: Collection;
  count: number;
  isChosen: boolean;
  onChoose: (id: string) => void;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const may = useMay();
  const queries = useQueryClient();
  const { own } = useCollections();
  const [dialog, open] = useState<Open>(null);
  const close = () => open(null);
  const { id } = collection;
  const name = collection.name || id;
  const isShared = collection.visibility === "tenant";
  const change = async (body: Partial<Schemas["ChangedCollection"]>) => {
    await api.PATCH("/v1/collections/{collection_id}", { params: { path: { collection_id: id } }, body });
    await queries.invalidateQueries({ queryKey: ["collections"] });
  };
  const remove = async () => {
    await api.DELETE("/v1/collections/{collection_id}", { params: { path: { collection_id: id } } });
    await queries.invalidateQueries({ queryKey: ["collections"] });
    if (isChosen) onChoose(own);
  };
  const isChangeable = may.arrange && collection.role === "owner";
  const choices: Choice[] = [
    { id: "rename", label: t("common.rename"), icon: "edit", act: () => open("rename") },
    ...(id === own
      ? []
      : [
          {
            id: "share",
            label: isShared ? t("documents.unshare") : t("documents.share"),
            icon: "share" as const,
            act: () => (isShared ? void change({ visibility: "private" }) : open("share")),
          },
          { id: "members", label: t("members.menu"), icon: "share" as const, act: () => open("members") },
        ]),
    { id: "embedding", label: t("documents.model"), icon: "settings", act: () => open("embedding") },
    { id: "memory", label: t("memoryMode.title"), icon: "memory", act: () => open("memory") },
    { id: "localModels", label: t("localModels.title"), icon: "settings", act: () => open("localModels") },
    { id: "delete", label: t("common.delete"), icon: "trash", isDanger: true, act: () => open("delete") },
  ];
  return (
    <li className="collection-item" data-testid="collection-item" data-id={id}>
      <button type="button" aria-current={isChosen ? "true" : undefined} onClick={() => onChoose(id)}>
        <Icon name="folder" />
        <span className="collection-name" dir="auto">
          {name}
        </span>
        {isShared && (
          <span className="shared" title={t("documents.shared")}>
            <Icon name="share" />
            <span className="visually-hidden">{t("documents.shared")}</span>
          </span>
        )}
        <span className="count">{format.number(count)}</span>
      </button>
      {isChangeable && <ActionMenu label={t("documents.collectionActions", { name })} choices={choices} testId="collection-actions" />}
      {dialog === "rename" && (
        <NameDialog title={t("documents.renameCollection")} name={name} onClose={close} onSave={(next) => change({ name: next })} />
      )}
      <Confirm
        title={t("documents.shareTitle", { name })}
        action={t("documents.share")}
        isOpen={dialog === "share"}
        onClose={close}
        onConfirm={() => change({ visibility: "tenant" })}
      >
        <p>{t("documents.shareHint")}</p>
      </Confirm>
      <Confirm
        title={t("documents.deleteCollection", { name })}
        action={t("common.delete")}
        isOpen={dialog === "delete"}
        onClose={close}
        onConfirm={remove}
      >
        <p>{t("documents.deleteCollectionHint", { count })}</p>
      </Confirm>
      {dialog === "members" && <MembersDialog collectionId={id} name={name} onClose={close} />}
      {dialog === "memory" && (
        <MemoryDialog
          now={collection.memory ?? ""}
          hint={t("memoryMode.collectionHint")}
          onChoose={(memory) => change({ memory })}
          onClose={close}
        />
      )}
      {dialog === "localModels" && <LocalModelsDialog collectionId={id} now={collection.local_models_only ?? false} onClose={close} />}
      {dialog === "embedding" && <EmbeddingDialog collectionId={id} name={name} onClose={close} />}
    </li>
  );
}

function NameDialog({
  title,
  name = "",
  onClose,
  onSave,
}: {
  title: string;
  name?: string;
  onClose: () => void;
  onSave: (name: string) => Promise<unknown>;
}) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [text, setText] = useState(name);
  const [problem, setProblem] = useState("");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await onSave(text.trim());
      await queries.invalidateQueries({ queryKey: ["collections"] });
      onClose();
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  return (
    <Dialog title={title} isOpen onClose={onClose} className="small">
      <form onSubmit={submit} className="stack">
        <TextField label={t("documents.name")} value={text} onChange={setText} maxLength={200} autoFocus testId="collection-name" />
        <Failure>{problem}</Failure>
        <div className="actions">
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" type="submit" isDisabled={!text.trim()}>
            {t("common.save")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
