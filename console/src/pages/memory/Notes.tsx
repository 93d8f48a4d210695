// The notes of the person: documents of a collection of their own, written here as text.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf, call } from "../../api/client";
import type { Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Button, Confirm, Dialog, Failure, Field, IconButton } from "../../parts";
import { TextField } from "../../parts/fields";
import { useMay } from "../../shell/caller";
import { useCollections } from "../documents/collections";
import { putDocument, useDocuments, whileLeaving } from "../documents/feed";

const LONGEST = 100_000;
const NEW = "MEMORY.md";

export function Notes({ collection }: { collection: string }) {
  const { t } = useTranslation();
  const format = useFormat();
  const may = useMay();
  const [written, write] = useState<{ id?: string; name: string } | null>(null);
  const [leaving, leave] = useState<{ id: string; name: string } | null>(null);
  const notes = useDocuments().documents.filter((each) => each.collection_id === collection);
  const remove = (id: string) =>
    whileLeaving(id, () => api.DELETE("/v1/documents/{document_id}", { params: { path: { document_id: id } } }));
  return (
    <section className="stack" aria-labelledby="notes-title" data-testid="notes">
      <h2 id="notes-title">{t("memory.notes")}</h2>
      <p className="hint">{t("memory.notesHint")}</p>
      {notes.length > 0 && (
        <ul className="facts-list">
          {notes.map((note) => (
            <li key={note.id} className="card fact" data-testid="note">
              <div className="fact-line">
                <span className="note-name" dir="auto">
                  {note.name}
                </span>
                <span className="hint">{format.ago(note.updated_at ?? note.created_at ?? "")}</span>
                {may.change && (
                  <>
                    <IconButton
                      label={t("memory.editNote", { name: note.name })}
                      icon="edit"
                      onPress={() => write({ id: note.id, name: note.name })}
                    />
                    <IconButton label={t("memory.deleteNote", { name: note.name })} icon="trash" onPress={() => leave(note)} />
                  </>
                )}
              </div>
              <Failure>{note.error?.message}</Failure>
            </li>
          ))}
        </ul>
      )}
      <div className="actions start">
        {may.change && (
          <Button icon="add" onPress={() => write({ name: notes.length ? "" : NEW })} data-testid="new-note">
            {t("memory.newNote")}
          </Button>
        )}
        {notes.length > 0 && (
          <Link to="/documents" search={{ collection }}>
            {t("memory.notesAsDocuments")}
          </Link>
        )}
      </div>
      {written && <NoteDialog {...written} collection={collection} onClose={() => write(null)} />}
      <Confirm
        title={t("memory.deleteNote", { name: leaving?.name ?? "" })}
        action={t("common.delete")}
        isOpen={leaving !== null}
        onClose={() => leave(null)}
        onConfirm={() => leaving && remove(leaving.id)}
      >
        <p>{t("memory.deleteNoteHint")}</p>
      </Confirm>
    </section>
  );
}

/** Writes a note, or another version of it under the same name. */
function NoteDialog({ id, name, collection, onClose }: { id?: string; name: string; collection: string; onClose: () => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const { collections, isFetching } = useCollections();
  const [title, setTitle] = useState(name);
  const [changed, setText] = useState<string | null>(null);
  const kept = useQuery({
    queryKey: ["note", id],
    queryFn: async () => (await call(`/v1/documents/${encodeURIComponent(id ?? "")}/content`)).text(),
    enabled: Boolean(id),
    gcTime: 0,
  });
  const text = changed ?? kept.data ?? "";
  const write = useMutation({
    mutationFn: async () => {
      const form = new FormData();
      form.append("lane", "interactive");
      form.append("file", new File([text], title.trim(), { type: "text/markdown" }));
      if (!isFetching && !collections.some((each) => each.id === collection)) {
        await api.POST("/v1/collections", { body: bodyOf<Schemas["NewCollection"]>({ id: collection, name: t("memory.notes") }) });
      }
      const answer = await call(`/v1/collections/${encodeURIComponent(collection)}/documents`, { method: "POST", body: form });
      return (await answer.json()) as Schemas["UploadedDocument"];
    },
    onSuccess: async ({ document }) => {
      putDocument(document);
      onClose();
      await queries.invalidateQueries({ queryKey: ["collections"] });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    write.mutate();
  };
  const isLoading = Boolean(id) && kept.isPending;
  return (
    <Dialog title={id ? t("memory.editNote", { name }) : t("memory.newNote")} isOpen onClose={onClose} testId="note-dialog">
      <form className="stack" onSubmit={submit}>
        {!id && (
          <TextField
            label={t("memory.noteName")}
            hint={t("memory.noteNameHint")}
            value={title}
            onChange={setTitle}
            maxLength={200}
            testId="note-name"
          />
        )}
        <Field label={t("memory.noteText")}>
          {(field) => (
            <textarea
              id={field}
              rows={12}
              value={text}
              maxLength={LONGEST}
              onChange={(event) => setText(event.target.value)}
              readOnly={isLoading}
              dir="auto"
              data-testid="note-text"
            />
          )}
        </Field>
        <Failure>{(kept.error ?? write.error)?.message}</Failure>
        <div className="actions">
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button
            look="primary"
            type="submit"
            isDisabled={isLoading || Boolean(kept.error) || !title.trim() || !text.trim() || write.isPending}
            data-testid="note-save"
          >
            {t("common.save")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
