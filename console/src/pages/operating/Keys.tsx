import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { Problem, api, bodyOf, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { MemoryDialog } from "../../parts/MemoryDialog";
import { SelectField, TextField } from "../../parts/fields";
import { MemoryModeSelect, useMemoryMode, type MemoryMode } from "../../parts/memoryModes";
import { ActionMenu, Button, Confirm, Dialog, Empty, Failure, Field, Icon } from "../../parts";
import { Table } from "../../parts/Table";

type ApiKey = Schemas["ApiKey"];
type Scope = Schemas["NewApiKey"]["scopes"][number];
const SCOPES: Scope[] = ["query", "ingest", "admin", "operator"];
type Guard = NonNullable<ApiKey["guard"]> | "";
const KEPT_S = 86_400;

/** The keys that the caller may see: made, rotated, revoked. The text of a key is shown once. */
export function Keys() {
  const { t } = useTranslation();
  const format = useFormat();
  const queries = useQueryClient();
  const mode = useMemoryMode();
  const [isMaking, setMaking] = useState(false);
  const [shown, show] = useState("");
  const { data, error } = useQuery({
    queryKey: ["keys"],
    queryFn: async () => (await dataOf(api.GET("/v1/keys", { params: { query: { page_size: 200 } } }))).keys,
    retry: false,
  });
  if (error instanceof Problem && error.reason === "API_KEYS_OFF") {
    return (
      <Empty icon="key" title={t("apiKeys.offTitle")}>
        {t("apiKeys.off")} <code dir="ltr">GROUNDWORK_AUTH=api_keys</code>
      </Empty>
    );
  }
  const again = () => queries.invalidateQueries({ queryKey: ["keys"] });
  return (
    <section className="stack">
      <Failure>{error?.message}</Failure>
      <div className="actions start">
        <Button icon="add" look="primary" onPress={() => setMaking(true)} data-testid="new-key">
          {t("apiKeys.new")}
        </Button>
      </div>
      {shown && <ShownKey text={shown} onClose={() => show("")} />}
      {data && !data.length && <p className="hint">{t("apiKeys.none")}</p>}
      {data && data.length > 0 && (
        <Table>
          <thead>
            <tr>
              <th scope="col">{t("apiKeys.name")}</th>
              <th scope="col">{t("apiKeys.subject")}</th>
              <th scope="col">{t("apiKeys.scopes")}</th>
              <th scope="col">{t("apiKeys.guard")}</th>
              <th scope="col">{t("memoryMode.title")}</th>
              <th scope="col">{t("apiKeys.used")}</th>
              <th scope="col">{t("apiKeys.until")}</th>
              <th scope="col">{t("apiKeys.status")}</th>
              <th scope="col">
                <span className="visually-hidden">{t("answer.more")}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.map((each) => (
              <tr key={each.id}>
                <td dir="auto">{each.name}</td>
                <td dir="auto">{each.subject}</td>
                <td>{each.scopes.join(", ")}</td>
                <td>{each.guard ? t(`apiKeys.guard_${each.guard}`) : "–"}</td>
                <td>{each.memory ? mode(each.memory) : "–"}</td>
                <td className="tight">{each.last_used_at ? format.ago(each.last_used_at) : "–"}</td>
                <td className="tight">{each.expires_at ? format.moment(each.expires_at) : "–"}</td>
                <td>{t(`apiKeys.status_${each.status}`)}</td>
                <td className="row-actions">{each.status === "active" && <KeyActions apiKey={each} onShow={show} onChange={again} />}</td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {isMaking && (
        <NewKey
          onClose={() => setMaking(false)}
          onMade={(text) => {
            show(text);
            again();
          }}
        />
      )}
    </section>
  );
}

function ShownKey({ text, onClose }: { text: string; onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <div className="card shown-key">
      <p>
        <Icon name="key" /> {t("apiKeys.once")}
      </p>
      <code dir="ltr">{text}</code>
      <div className="actions start">
        <Button icon="copy" onPress={() => navigator.clipboard.writeText(text)}>
          {t("apiKeys.copy")}
        </Button>
        <Button onPress={onClose}>{t("common.done")}</Button>
      </div>
    </div>
  );
}

function KeyActions({ apiKey, onShow, onChange }: { apiKey: ApiKey; onShow: (text: string) => void; onChange: () => void }) {
  const { t } = useTranslation();
  const [dialog, open] = useState<"memory" | "rotate" | "revoke" | null>(null);
  const params = { path: { key_id: apiKey.id } };
  const rotate = async () => {
    const made = await dataOf(api.POST("/v1/keys/{key_id}/rotate", { params, body: { keep_old_for_s: KEPT_S } }));
    onShow(made.key);
    onChange();
  };
  const revoke = async () => {
    await api.DELETE("/v1/keys/{key_id}", { params });
    onChange();
  };
  return (
    <>
      <ActionMenu
        label={t("apiKeys.actions", { name: apiKey.name })}
        choices={[
          { id: "memory", label: t("memoryMode.title"), icon: "memory", act: () => open("memory") },
          { id: "rotate", label: t("apiKeys.rotate"), icon: "retry", act: () => open("rotate") },
          { id: "revoke", label: t("apiKeys.revoke"), icon: "trash", isDanger: true, act: () => open("revoke") },
        ]}
      />
      {dialog === "memory" && (
        <MemoryDialog
          now={apiKey.memory ?? ""}
          hint={t("memoryMode.keyHint")}
          onChoose={async (memory) => {
            await api.PATCH("/v1/keys/{key_id}", { params, body: { memory } });
            onChange();
          }}
          onClose={() => open(null)}
        />
      )}
      <Confirm
        title={t("apiKeys.rotateTitle", { name: apiKey.name })}
        action={t("apiKeys.rotate")}
        isOpen={dialog === "rotate"}
        onClose={() => open(null)}
        onConfirm={rotate}
      >
        <p>{t("apiKeys.rotateHint")}</p>
      </Confirm>
      <Confirm
        title={t("apiKeys.revokeTitle", { name: apiKey.name })}
        action={t("apiKeys.revoke")}
        isOpen={dialog === "revoke"}
        onClose={() => open(null)}
        onConfirm={revoke}
      >
        <p>{t("apiKeys.revokeHint")}</p>
      </Confirm>
    </>
  );
}

function NewKey({ onClose, onMade }: { onClose: () => void; onMade: (text: string) => void }) {
  const { t } = useTranslation();
  const [name, setName] = useState("");
  const [subject, setSubject] = useState("");
  const [scopes, setScopes] = useState<Scope[]>(["query"]);
  const [until, setUntil] = useState("");
  const [guard, setGuard] = useState<Guard>("");
  const [memory, setMemory] = useState<MemoryMode | "">("");
  const make = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/v1/keys", {
          body: bodyOf<Schemas["NewApiKey"]>({
            name,
            subject,
            scopes,
            guard: guard || null,
            memory: memory || null,
            expires_at: until || null,
          }),
        }),
      ),
    onSuccess: ({ key }) => {
      onMade(key);
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    make.mutate();
  };
  return (
    <Dialog title={t("apiKeys.new")} isOpen onClose={onClose} className="small">
      <form className="stack" onSubmit={submit}>
        <TextField label={t("apiKeys.name")} value={name} onChange={setName} maxLength={200} />
        <TextField label={t("apiKeys.subject")} hint={t("apiKeys.subjectHint")} value={subject} onChange={setSubject} dir="ltr" />
        <fieldset>
          <legend>{t("apiKeys.scopes")}</legend>
          {SCOPES.map((scope) => (
            <label key={scope} className="check">
              <input
                type="checkbox"
                checked={scopes.includes(scope)}
                onChange={(event) => setScopes(event.target.checked ? [...scopes, scope] : scopes.filter((each) => each !== scope))}
              />
              <span>
                <code>{scope}</code> <span className="hint">{t(`apiKeys.scope_${scope}`)}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <SelectField
          label={t("apiKeys.guard")}
          hint={t("apiKeys.guardHint")}
          value={guard}
          options={["", "flag", "block"] as Guard[]}
          words={(each) => t(`apiKeys.guard_${each || "unset"}`)}
          onChange={setGuard}
          testId="key-guard"
        />
        <Field label={t("memoryMode.title")} hint={t("memoryMode.keyHint")}>
          {(id) => <MemoryModeSelect id={id} value={memory} onChange={setMemory} testId="key-memory" />}
        </Field>
        <Field label={t("apiKeys.until")}>
          {(id) => <input id={id} type="date" value={until} onChange={(event) => setUntil(event.target.value)} />}
        </Field>
        <Failure>{make.error?.message}</Failure>
        <div className="actions">
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" type="submit" isDisabled={!name.trim() || !scopes.length || make.isPending}>
            {t("apiKeys.make")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
