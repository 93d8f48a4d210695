// The box for a question, and how it is asked.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type FormEvent, type KeyboardEvent } from "react";
import { useTranslation } from "react-i18next";
import { api, dataOf } from "../../api/client";
import { Button, Dialog, Failure, Field, Icon, IconButton, Segments } from "../../parts";
import { useToolName } from "../../parts/names";
import { useCollections, useChosenCollection } from "../documents/collections";
import { Microphone } from "./Microphone";
import { changeAsking, useAsking, type Effort, type Way } from "./asking";
import { useDraft } from "./draft";

/** `onAsk` sends the text and throws what the server says of one that it refuses; the text stays then. */
export function Composer({
  onAsk,
  isBusy,
  onStop,
  draft,
  isFirst = false,
}: {
  onAsk: (text: string) => Promise<void>;
  isBusy: boolean;
  onStop?: () => void;
  draft?: { text: string; at: number };
  isFirst?: boolean;
}) {
  const { t } = useTranslation();
  const { way } = useAsking();
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useDraft(draft?.text);
  const [problem, setProblem] = useState("");
  const [isSending, setSending] = useState(false);
  useEffect(() => {
    if (!draft) return;
    setText(draft.text);
    field.current?.focus();
  }, [draft?.at]);
  const send = async () => {
    const question = text.trim();
    if (!question || isSending || isBusy) {
      field.current?.focus();
      return;
    }
    setSending(true);
    setProblem("");
    setText("");
    try {
      await onAsk(question);
    } catch (error) {
      setText((typed) => typed || question); // to be mended, or sent again
      setProblem((error as Error).message);
    }
    setSending(false);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    send();
  };
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form className="composer card" onSubmit={submit} noValidate>
      <Failure data-testid="ask-problem">{problem}</Failure>
      <label htmlFor="question" className="visually-hidden">
        {t("ask.label")}
      </label>
      <textarea
        id="question"
        ref={field}
        data-testid="question-input"
        rows={isFirst ? 2 : 1}
        dir={text ? "auto" : undefined}
        value={text}
        placeholder={t(`ask.placeholder_${way}`)}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={press}
        // biome-ignore lint/a11y/noAutofocus: a page for asking begins with its field
        autoFocus={isFirst}
      />
      <div className="composer-bar">
        <WayChoice />
        <div className="composer-end">
          <HowChoice />
          <Microphone onText={(said) => setText((typed) => `${typed} ${said}`.trim())} onProblem={setProblem} />
          {isBusy && onStop ? (
            <Button look="secondary" icon="stop" onPress={onStop} className="send" data-testid="stop-button">
              {t("ask.stop")}
            </Button>
          ) : (
            <Button
              look="primary"
              type="submit"
              className="send"
              isDisabled={isSending || isBusy}
              data-testid="ask-button"
              aria-label={t("ask.ask")}
            >
              <Icon name="send" />
            </Button>
          )}
        </div>
      </div>
    </form>
  );
}

function WayChoice() {
  const { t } = useTranslation();
  const { way } = useAsking();
  const options = (["documents", "research", "chat"] as Way[]).map((id) => ({
    id,
    label: t(`ask.way_${id}`),
    title: t(`ask.about_${id}`),
  }));
  return <Segments label={t("ask.way")} value={way} options={options} onChange={(next) => changeAsking({ way: next })} testId="mode" />;
}

/** What else there is to choose for the chosen way. */
function HowChoice() {
  const { t } = useTranslation();
  const { way, effort, isReport, tools, model } = useAsking();
  const [isOpen, setOpen] = useState(false);
  return (
    <div className="how">
      {way !== "chat" && <CollectionChoice />}
      {way === "documents" && <AgentChoice />}
      {way === "research" && (
        <label className="choice">
          <span className="visually-hidden">{t("ask.effort")}</span>
          <select value={effort} onChange={(event) => changeAsking({ effort: event.target.value as Effort })} data-testid="effort">
            {(["auto", "low", "medium", "high"] as Effort[]).map((each) => (
              <option key={each} value={each}>
                {t(`ask.effort_${each}`)}
              </option>
            ))}
          </select>
        </label>
      )}
      {way === "research" && (
        <label className="check">
          <input type="checkbox" checked={isReport} onChange={(event) => changeAsking({ isReport: event.target.checked })} />{" "}
          {t("ask.report")}
        </label>
      )}
      <IconButton
        label={tools || model ? t("ask.moreSet") : t("ask.more")}
        icon="settings"
        className={tools || model ? "is-set" : ""}
        onPress={() => setOpen(true)}
        data-testid="ask-more"
      />
      {isOpen && <More onClose={() => setOpen(false)} />}
    </div>
  );
}

function CollectionChoice() {
  const { t } = useTranslation();
  const { collection } = useAsking();
  const { collections } = useCollections();
  const chosen = useChosenCollection(collection);
  useEffect(() => {
    if (chosen && chosen !== collection) changeAsking({ collection: chosen });
  }, [chosen, collection]);
  if (collections.length < 2) return null;
  return (
    <label className="choice">
      <Icon name="folder" />
      <span className="visually-hidden">{t("documents.collection")}</span>
      <select value={chosen} onChange={(event) => changeAsking({ collection: event.target.value })} data-testid="collection" dir="auto">
        {collections.map(({ id, name }) => (
          <option key={id} value={id}>
            {name || id}
          </option>
        ))}
      </select>
    </label>
  );
}

function AgentChoice() {
  const { t } = useTranslation();
  const { agent } = useAsking();
  const { data } = useQuery({ queryKey: ["agents"], queryFn: () => dataOf(api.GET("/v1/agents")), staleTime: 300_000 });
  const agents = (data?.agents ?? []).filter((each) => each.modes.includes("grounded"));
  const known = ["extraction", "quiz", "reasoning", "summary", "visualisation"] as const;
  const word = (name: string) => {
    const found = known.find((each) => each === name);
    return found ? t(`agents.${found}`) : name;
  };
  return (
    <label className="choice keeps">
      <span className="visually-hidden">{t("ask.agent")}</span>
      <select
        value={agents.some((each) => each.name === agent) ? agent : "auto"}
        onChange={(event) => changeAsking({ agent: event.target.value })}
        data-testid="agent"
      >
        <option value="auto">{t("ask.anyAgent")}</option>
        {agents.map(({ name, description }) => (
          <option key={name} value={name} title={description}>
            {word(name)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Tools that may be used, and a model of one's own. */
function More({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const { way } = useAsking();
  return (
    <Dialog title={t("ask.more")} isOpen onClose={onClose} className="small" testId="ask-more-dialog">
      <div className="stack">
        {way === "chat" && <ToolChoice />}
        <ModelChoice />
        <div className="actions">
          <Button look="primary" onPress={onClose}>
            {t("common.done")}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function ToolChoice() {
  const { t } = useTranslation();
  const name = useToolName();
  const { tools: chosen } = useAsking();
  const { data } = useQuery({ queryKey: ["tools"], queryFn: () => dataOf(api.GET("/v1/tools")), staleTime: 300_000 });
  const all = data?.tools ?? [];
  const names = chosen ?? all.map((each) => each.name);
  const toggle = (tool: string, isOn: boolean) => {
    const next = isOn ? [...names, tool] : names.filter((each) => each !== tool);
    changeAsking({ tools: next.length === all.length ? null : next });
  };
  return (
    <fieldset className="tools">
      <legend>{t("ask.tools")}</legend>
      {all.map((tool) => (
        <label key={tool.name} className="check" title={tool.description}>
          <input type="checkbox" checked={names.includes(tool.name)} onChange={(event) => toggle(tool.name, event.target.checked)} />
          <span>
            {name(tool.name)} {tool.needs_approval && <span className="hint">{t("ask.asksFirst")}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function ModelChoice() {
  const { t } = useTranslation();
  const { model } = useAsking();
  const set = (change: { base_url?: string; api_key?: string; model?: string }) => {
    const next = { base_url: "", api_key: "", model: "", ...model, ...change };
    changeAsking({ model: next.model || next.base_url || next.api_key ? next : null });
  };
  return (
    <fieldset className="stack">
      <legend>{t("ask.ownModel")}</legend>
      <p className="hint">{t("ask.ownModelHint")}</p>
      <Field label={t("ask.modelName")}>
        {(id) => (
          <input id={id} value={model?.model ?? ""} onChange={(event) => set({ model: event.target.value })} spellCheck={false} dir="ltr" />
        )}
      </Field>
      <Field label={t("ask.modelAddress")}>
        {(id) => (
          <input
            id={id}
            type="url"
            value={model?.base_url ?? ""}
            onChange={(event) => set({ base_url: event.target.value })}
            placeholder="https://…/v1"
            dir="ltr"
          />
        )}
      </Field>
      <Field label={t("ask.modelKey")}>
        {(id) => (
          <input
            id={id}
            type="password"
            autoComplete="off"
            value={model?.api_key ?? ""}
            onChange={(event) => set({ api_key: event.target.value })}
            dir="ltr"
          />
        )}
      </Field>
    </fieldset>
  );
}
