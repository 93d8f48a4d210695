// Who may read a document of those who may read its collection: shown, let in, taken out.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { Button, Confirm, Failure, Icon, IconButton } from "../../parts";
import { SelectField, TextField } from "../../parts/fields";
import { changeAccess, loadAccess, openAccess, restrictAccess, wasChanged, type Change, type Kind, type Listed } from "./access";

const KINDS: Kind[] = ["subjects", "groups"];
const KIND_WORDS = { subjects: "members.subject", groups: "members.group" } as const;

export function AccessList({ documentId }: { documentId: string }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const key = ["access", documentId];
  const { data: read, error } = useQuery({
    queryKey: key,
    queryFn: () => loadAccess(documentId),
    retry: false,
  });
  const data = read?.list;
  const [isOpening, setOpening] = useState(false);
  const onSuccess = (now: Listed) => queries.setQueryData(key, now);
  const set = useMutation({
    mutationFn: (change: Change | "restrict") => (change === "restrict" ? restrictAccess(documentId) : changeAccess(documentId, change)),
    onSuccess,
    scope: { id: `access ${documentId}` }, // one after the other: each begins with the list that the one before has left
  });
  const listOf = (kind: Kind) => data?.[kind] ?? [];
  const open = async () => {
    try {
      onSuccess(await openAccess(documentId, read?.etag ?? ""));
    } catch (error) {
      if (!wasChanged(error)) throw error;
      await queries.invalidateQueries({ queryKey: key });
      throw new Error(t("access.changed"));
    }
  };
  return (
    <details className="access" data-testid="access">
      <summary>
        <Icon name="key" /> {data?.restricted ? t("access.restricted") : t("access.title")}
      </summary>
      <div className="stack">
        <Failure>{(error ?? set.error)?.message}</Failure>
        {data && !data.restricted && (
          <div className="actions start">
            <span>{t("access.all")}</span>
            <Button onPress={() => set.mutate("restrict")} isDisabled={set.isPending} data-testid="restrict">
              {t("access.restrict")}
            </Button>
          </div>
        )}
        {data?.restricted && (
          <>
            <p className="hint">{t("access.hint")}</p>
            <ul className="stack">
              {KINDS.flatMap((kind) =>
                listOf(kind).map((name) => (
                  <li key={`${kind} ${name}`} className="actions start" data-testid="reader">
                    <bdi>{name}</bdi> <span className="hint">{t(KIND_WORDS[kind])}</span>
                    <IconButton
                      label={t("members.remove", { name })}
                      icon="trash"
                      onPress={() => set.mutate({ kind, name, isIn: false })}
                    />
                  </li>
                )),
              )}
            </ul>
            <NewReader onAdd={(kind, name) => set.mutateAsync({ kind, name, isIn: true })} isBusy={set.isPending} />
            <div className="actions start">
              <Button onPress={() => setOpening(true)} data-testid="open-to-all">
                {t("access.open")}
              </Button>
            </div>
          </>
        )}
      </div>
      <Confirm
        title={t("access.openTitle")}
        action={t("access.open")}
        isOpen={isOpening}
        onClose={() => setOpening(false)}
        onConfirm={open}
      >
        <p>{t("access.openHint")}</p>
      </Confirm>
    </details>
  );
}

function NewReader({ onAdd, isBusy }: { onAdd: (kind: Kind, name: string) => Promise<unknown>; isBusy: boolean }) {
  const { t } = useTranslation();
  const [kind, setKind] = useState<Kind>("subjects");
  const [name, setName] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onAdd(kind, name.trim()).then(
      () => setName(""),
      () => {}, // what the server says stands above the list
    );
  };
  return (
    <form className="stack" onSubmit={submit}>
      <SelectField
        label={t("members.kind")}
        value={kind}
        options={KINDS}
        words={(each) => t(KIND_WORDS[each])}
        onChange={setKind}
        testId="reader-kind"
      />
      <TextField label={t("members.name")} value={name} onChange={setName} maxLength={128} testId="reader-name" />
      <div className="actions start">
        <Button look="primary" type="submit" isDisabled={!name.trim() || isBusy} data-testid="let-in">
          {t("access.letIn")}
        </Button>
      </div>
    </form>
  );
}
