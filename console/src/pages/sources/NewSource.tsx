import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { Button, Dialog, Failure, Field } from "../../parts";
import { CollectionField, SelectField } from "../../parts/fields";
import { useCollections } from "../documents/collections";
import { KINDS, type KindField, type KindName } from "./kinds";

/** Where the files are, and which collection they fill. What is wrong is said before anything is made. */
export function NewSource({ onClose, onMade }: { onClose: () => void; onMade: (id: string) => void }) {
  const { t } = useTranslation();
  const { collections, own } = useCollections();
  const [kind, setKind] = useState<KindName>("web");
  const [collection, setCollection] = useState("");
  const [given, setGiven] = useState<Record<string, string>>({});
  const fields = KINDS[kind];
  const valuesOf = (wanted: KindField[]) =>
    Object.fromEntries(wanted.map(({ name }) => [name, given[name]?.trim() ?? ""]).filter(([, value]) => value));
  const make = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/v1/sources", {
          body: bodyOf<Schemas["NewSource"]>({
            kind,
            collection_id: collection || own,
            settings: valuesOf(fields.filter((each) => !each.isSecret)),
            secrets: valuesOf(fields.filter((each) => each.isSecret)),
          }),
        }),
      ),
    onSuccess: ({ id }) => {
      onClose();
      onMade(id);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    make.mutate();
  };
  const lacks = fields.some((each) => each.isRequired && !given[each.name]?.trim());
  return (
    <Dialog title={t("sourcesPage.new")} isOpen onClose={onClose} className="small">
      <form className="stack" onSubmit={submit} autoComplete="off">
        <SelectField
          label={t("sourcesPage.kind")}
          value={kind}
          options={Object.keys(KINDS) as KindName[]}
          words={(each) => t(`sourcesPage.kind_${each}`)}
          onChange={setKind}
          testId="source-kind"
        />
        {fields.map(({ name, isRequired, isSecret, example }) => (
          <Field key={name} label={t(`sourcesPage.field_${name}`)} hint={isRequired ? undefined : t("sourcesPage.optional")}>
            {(id) => (
              <input
                id={id}
                name={name}
                type={isSecret ? "password" : "text"}
                autoComplete={isSecret ? "new-password" : "off"}
                required={isRequired}
                placeholder={example}
                value={given[name] ?? ""}
                onChange={(event) => setGiven({ ...given, [name]: event.target.value })}
                dir="ltr"
              />
            )}
          </Field>
        ))}
        <CollectionField label={t("sourcesPage.collection")} value={collection || own} collections={collections} onChange={setCollection} />
        <Failure>{make.error?.message}</Failure>
        <div className="actions">
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" type="submit" isDisabled={lacks || make.isPending}>
            {t("sourcesPage.make")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
