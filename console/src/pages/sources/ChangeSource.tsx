import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { Button, Dialog, Failure, Field } from "../../parts";
import { KINDS, isKind } from "./kinds";
import type { Source } from "./Sources";

const MINUTE_S = 60;

/** How often a source is looked at, and what it takes to get in. Secrets that are left empty stay as they are. */
export function ChangeSource({ source, onClose, onChange }: { source: Source; onClose: () => void; onChange: () => void }) {
  const { t } = useTranslation();
  const [minutes, setMinutes] = useState(String(source.every_s / MINUTE_S));
  const [given, setGiven] = useState<Record<string, string>>({});
  const secrets = isKind(source.kind) ? KINDS[source.kind].filter((each) => each.isSecret) : [];
  const save = useMutation({
    mutationFn: () => {
      const filled = Object.fromEntries(Object.entries(given).filter(([, value]) => value));
      const body = { every_s: Math.round(Number(minutes) * MINUTE_S), ...(Object.keys(filled).length ? { secrets: filled } : {}) };
      return api.PATCH("/v1/sources/{source_id}", {
        params: { path: { source_id: source.id } },
        body: bodyOf<Schemas["ChangedSource"]>(body),
      });
    },
    onSuccess: () => {
      onChange();
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Dialog title={t("sourcesPage.changeTitle", { name: source.name })} isOpen onClose={onClose} className="small">
      <form className="stack" onSubmit={submit} autoComplete="off">
        <Field label={t("sourcesPage.every")} hint={t("sourcesPage.everyHint")}>
          {(id) => (
            <input
              id={id}
              type="number"
              min="1"
              max="10080"
              step="any"
              required
              value={minutes}
              onChange={(event) => setMinutes(event.target.value)}
              data-testid="source-every"
            />
          )}
        </Field>
        {secrets.map(({ name }) => (
          <Field key={name} label={t(`sourcesPage.field_${name}`)}>
            {(id) => (
              <input
                id={id}
                type="password"
                autoComplete="new-password"
                value={given[name] ?? ""}
                onChange={(event) => setGiven({ ...given, [name]: event.target.value })}
                dir="ltr"
              />
            )}
          </Field>
        ))}
        {secrets.length > 0 && <p className="hint">{t("sourcesPage.secretsHint")}</p>}
        <Failure>{save.error?.message}</Failure>
        <div className="actions">
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" type="submit" isDisabled={!(Number(minutes) > 0) || save.isPending} data-testid="source-save">
            {t("common.save")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
