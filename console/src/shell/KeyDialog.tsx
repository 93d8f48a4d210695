import { useMutation, useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { canBeKey, loadIssuers, loginAddress, useKeyQuestion } from "../api/key";
import { becomeGuest, loadGuestsAllowed } from "../api/guest";
import { Button, Dialog, Failure, Field } from "../parts";

/** The issuers at which people can log in. */
export function useIssuers() {
  return useQuery({ queryKey: ["issuers"], queryFn: loadIssuers, staleTime: Number.POSITIVE_INFINITY }).data ?? [];
}

/** Whether people without an account are let in. */
export function useGuestsAllowed() {
  return useQuery({ queryKey: ["guests"], queryFn: loadGuestsAllowed, staleTime: Number.POSITIVE_INFINITY }).data ?? false;
}

/** Asks for the API key when the server does. Without a key there is nothing behind the dialog, so that it cannot be left. */
export function KeyDialog() {
  const { t } = useTranslation();
  const question = useKeyQuestion();
  const [key, setKey] = useState("");
  const [isMalformed, setMalformed] = useState(false);
  const issuers = useIssuers();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const given = key.trim();
    setMalformed(!canBeKey(given));
    if (!canBeKey(given)) return;
    setKey("");
    question?.answer(given);
  };
  const refusal = question?.refusal ? t("key.refused", { why: question.refusal }) : "";
  return (
    <Dialog
      title={t("key.title")}
      isOpen={question !== null}
      onClose={() => {}}
      isDismissable={false}
      className="small"
      testId="key-dialog"
    >
      <p className="hint">{t("key.hint")}</p>
      <form onSubmit={submit} noValidate className="stack">
        <Field label={t("key.label")}>
          {(id) => (
            <input
              id={id}
              type="password"
              value={key}
              onChange={(event) => setKey(event.target.value)}
              autoComplete="off"
              spellCheck={false}
              placeholder="gw_…"
              dir="ltr"
              data-testid="key-input"
              autoFocus
            />
          )}
        </Field>
        <Failure data-testid="key-refused">{isMalformed ? t("key.malformed") : refusal}</Failure>
        <Button look="primary" type="submit" data-testid="key-submit">
          {t("key.signIn")}
        </Button>
      </form>
      {issuers.length > 0 && (
        <p className="actions" data-testid="key-issuers">
          {issuers.map((each) => (
            <a key={each.issuer} className="button secondary" href={loginAddress(each)}>
              {t("key.signInWith", { name: each.name })}
            </a>
          ))}
        </p>
      )}
      <GuestEntry />
    </Dialog>
  );
}

/** The way in without an account: the browser works for a moment, and the page begins anew as a guest's. */
function GuestEntry() {
  const { t } = useTranslation();
  const isAllowed = useGuestsAllowed();
  const entry = useMutation({ mutationFn: becomeGuest, onSuccess: () => location.reload() });
  if (!isAllowed) return null;
  return (
    <div className="stack" data-testid="guest-entry">
      <p className="actions start">
        <Button onPress={() => entry.mutate()} isDisabled={entry.isPending || entry.isSuccess} data-testid="guest-submit">
          {entry.isPending ? t("key.guestPreparing") : t("key.guest")}
        </Button>
      </p>
      <p className="hint">{t("key.guestHint")}</p>
      <Failure data-testid="guest-refused">{entry.error?.message}</Failure>
    </div>
  );
}
