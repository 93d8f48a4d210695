// Connects a service: by its credential, or by a login there, for which a person types a code at the service.

import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { Button, Dialog, Failure, Field } from "../../parts";
import { useMay } from "../../shell/caller";
import { nameOf } from "./names";

interface Props {
  services: string[];
  logins: string[];
  onClose: () => void;
  onMade: () => void;
}

export function NewConnection({ services, logins, onClose, onMade }: Props) {
  const { t } = useTranslation();
  const may = useMay();
  const [service, setService] = useState(services[0] ?? "");
  const [account, setAccount] = useState("");
  const [secret, setSecret] = useState("");
  const [shared, setShared] = useState(false);
  const isOpen = useRef(true);
  useEffect(() => {
    isOpen.current = true;
    return () => {
      isOpen.current = false;
    };
  }, []);
  const path = { params: { path: { service } } };
  const done = () => {
    onClose();
    onMade();
  };
  const connect = useMutation({
    mutationFn: () =>
      api.PUT("/v1/connections/{service}", {
        ...path,
        body: bodyOf<Schemas["NewToolConnection"]>({ secret: secret.trim(), account: account.trim(), shared }),
      }),
    onSuccess: done,
  });
  const [trouble, setTrouble] = useState("");
  const [begun, setBegun] = useState<Schemas["ConnectionLogin"] | null>(null);
  const login = useMutation({
    mutationFn: async () => {
      const waiting = await dataOf(
        api.POST("/v1/connections/{service}/login", {
          ...path,
          body: bodyOf<Schemas["NewConnectionLogin"]>({ account: account.trim(), shared }),
        }),
      );
      setBegun(waiting);
      setTrouble("");
      let said: Schemas["ConnectionProgress"] = { connection: null, login: waiting.login, trouble: "" };
      while (!said.connection && isOpen.current) {
        said = await dataOf(api.POST("/v1/connections/{service}/login/finish", { ...path, body: { login: said.login } }));
        setTrouble(said.trouble);
      }
    },
    onSuccess: () => isOpen.current && done(),
    onError: () => setBegun(null),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    connect.mutate();
  };
  const needsAccount = service === "mail";
  const isReady = !needsAccount || account.trim();
  return (
    <Dialog title={t("connections.new")} isOpen onClose={onClose} className="small">
      <form className="stack" onSubmit={submit} autoComplete="off">
        <Field label={t("connections.service")}>
          {(id) => (
            <select id={id} value={service} disabled={login.isPending} onChange={(event) => setService(event.target.value)}>
              {services.map((each) => (
                <option key={each} value={each}>
                  {nameOf(each)}
                </option>
              ))}
            </select>
          )}
        </Field>
        {needsAccount && (
          <Field label={t("connections.user")} hint={t("connections.userHint")}>
            {(id) => <input id={id} required value={account} onChange={(event) => setAccount(event.target.value)} dir="ltr" />}
          </Field>
        )}
        <Field label={t("connections.secret")} hint={t(`connections.hint_${service}` as "connections.hint_github", { defaultValue: "" })}>
          {(id) => (
            <input
              id={id}
              type="password"
              autoComplete="new-password"
              value={secret}
              onChange={(event) => setSecret(event.target.value)}
              dir="ltr"
              data-testid="connection-secret"
            />
          )}
        </Field>
        {logins.includes(service) && service === "google-drive" && <p className="hint">{t("connections.loginHint_google-drive")}</p>}
        {may.administer && (
          <label className="check">
            <input type="checkbox" checked={shared} onChange={(event) => setShared(event.target.checked)} /> {t("connections.share")}
          </label>
        )}
        {begun && (
          <p role="status" data-testid="connection-code">
            {t("connections.typeCode")} <strong dir="ltr">{begun.user_code}</strong>{" "}
            <a href={begun.verification_url} target="_blank" rel="noreferrer" dir="ltr">
              {begun.verification_url}
            </a>
          </p>
        )}
        <Failure>{connect.error?.message ?? login.error?.message ?? trouble}</Failure>
        <div className="actions">
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          {logins.includes(service) && (
            <Button onPress={() => login.mutate()} isDisabled={!isReady || login.isPending} data-testid="connection-login">
              {t("connections.login")}
            </Button>
          )}
          <Button look="primary" type="submit" isDisabled={!secret.trim() || !isReady || connect.isPending}>
            {t("connections.connect")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
