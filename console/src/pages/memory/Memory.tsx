// What is remembered of the person: listed with its source and history, changed, forgotten, paused, saved.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf, dataOf, save } from "../../api/client";
import type { Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Button, Confirm, Empty, Failure, Icon, IconButton } from "../../parts";
import { Notes } from "./Notes";
import "../../style/pages.css";
import { dotted } from "../../text";

type Fact = Schemas["Fact"];
const MOST = 1000;

export function Memory() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [isForgetting, setForgetting] = useState(false);
  const [words, setWords] = useState("");
  const [withPast, setWithPast] = useState(false);
  const summary = useQuery({ queryKey: ["memory", "summary"], queryFn: () => dataOf(api.GET("/v1/memory/summary")) });
  const facts = useQuery({
    queryKey: ["memory", "facts", withPast],
    queryFn: async () => (await dataOf(api.GET("/v1/memory/facts", { params: { query: { with_past: withPast, page_size: MOST } } }))).facts,
  });
  const again = () => queries.invalidateQueries({ queryKey: ["memory"] });
  const pause = useMutation({ mutationFn: (paused: boolean) => api.POST("/v1/memory/pause", { body: { paused } }), onSuccess: again });
  const exported = useMutation({
    mutationFn: async () =>
      save(new Blob([JSON.stringify(await dataOf(api.GET("/v1/memory/export")), null, 2)], { type: "application/json" }), "memory.json"),
  });
  const forgetAll = async () => {
    await api.POST("/v1/memory/forget", { body: bodyOf<Schemas["MemoryForgetting"]>({ everything: true }) });
    await again();
  };
  const isPaused = summary.data?.paused ?? false;
  const lowered = words.trim().toLowerCase();
  const shown = (facts.data ?? []).filter((each) => each.text.toLowerCase().includes(lowered));
  return (
    <div className="column wide" data-testid="memory">
      <header className="page-head">
        <h1>{t("memory.title")}</h1>
        <p className="lead">{summary.data?.enabled === false ? t("memory.off") : isPaused ? t("memory.paused") : t("memory.lead")}</p>
      </header>
      <Failure>{(summary.error ?? facts.error ?? pause.error ?? exported.error)?.message}</Failure>
      {summary.data?.summary && (
        <p className="card memory-summary" dir="auto">
          {summary.data.summary}
        </p>
      )}
      <div className="library-bar">
        <label className="find">
          <Icon name="search" />
          <span className="visually-hidden">{t("memory.find")}</span>
          <input type="search" value={words} onChange={(event) => setWords(event.target.value)} placeholder={t("memory.find")} dir="auto" />
        </label>
        <label className="check">
          <input type="checkbox" checked={withPast} onChange={(event) => setWithPast(event.target.checked)} /> {t("memory.withPast")}
        </label>
      </div>
      {facts.isSuccess && !facts.data.length && (
        <Empty icon="memory" title={t("memory.none")}>
          {t("memory.noneHint")}
        </Empty>
      )}
      <ul className="facts-list">
        {shown.map((fact) => (
          <FactCard key={`${fact.id}-${fact.edited_at}`} fact={fact} onChange={again} />
        ))}
      </ul>
      <div className="actions start">
        <Button onPress={() => pause.mutate(!isPaused)} isDisabled={pause.isPending} data-testid="memory-pause">
          {isPaused ? t("memory.resume") : t("memory.pause")}
        </Button>
        {Boolean(facts.data?.length) && (
          <>
            <Button icon="download" onPress={() => exported.mutate()}>
              {t("memory.export")}
            </Button>
            <Button look="danger" icon="trash" onPress={() => setForgetting(true)} data-testid="memory-forget-everything">
              {t("memory.forgetAll")}
            </Button>
          </>
        )}
      </div>
      {summary.data && <Notes collection={summary.data.notes_collection_id} />}
      <Confirm
        title={t("memory.forgetAllTitle")}
        action={t("memory.forgetAll")}
        isOpen={isForgetting}
        onClose={() => setForgetting(false)}
        onConfirm={forgetAll}
      >
        <p>{t("memory.forgetAllHint")}</p>
      </Confirm>
    </div>
  );
}

function FactCard({ fact, onChange }: { fact: Fact; onChange: () => Promise<unknown> }) {
  const { t } = useTranslation();
  const format = useFormat();
  const [text, setText] = useState(fact.text);
  const [hasHistory, setHistory] = useState(false);
  const params = { path: { fact_id: fact.id } };
  const change = useMutation({
    mutationFn: () => api.PATCH("/v1/memory/facts/{fact_id}", { params, body: { text } }),
    onSuccess: onChange,
  });
  const forget = useMutation({ mutationFn: () => api.DELETE("/v1/memory/facts/{fact_id}", { params }), onSuccess: onChange });
  const history = useQuery({
    queryKey: ["memory", "fact", fact.id],
    queryFn: () => dataOf(api.GET("/v1/memory/facts/{fact_id}", { params })),
    enabled: hasHistory,
  });
  const about = [
    t(`memory.kind_${fact.kind}`),
    t("memory.learnt", { day: format.day(fact.learnt_at) }),
    fact.valid_to ? t("memory.until", { day: format.day(fact.valid_to) }) : "",
    fact.said && fact.said !== fact.text ? t("memory.said", { text: fact.said }) : "",
    fact.status === "active" ? "" : t("memory.past"),
  ];
  return (
    <li className="card fact" data-testid="fact" data-status={fact.status}>
      <div className="fact-line">
        <input value={text} maxLength={500} onChange={(event) => setText(event.target.value)} aria-label={t("memory.fact")} dir="auto" />
        {text.trim() && text !== fact.text && (
          <Button look="primary" onPress={() => change.mutate()} isDisabled={change.isPending}>
            {t("common.save")}
          </Button>
        )}
        <IconButton label={t("memory.history")} icon="wait" onPress={() => setHistory(!hasHistory)} />
        <IconButton label={t("memory.forget")} icon="trash" onPress={() => forget.mutate()} isDisabled={forget.isPending} />
      </div>
      <p className="hint" dir="auto">
        {dotted(about)}{" "}
        {fact.thread_id && (
          <Link to="/conversations/$threadId" params={{ threadId: fact.thread_id }} search={fact.run_id ? { answer: fact.run_id } : {}}>
            {t("memory.where")}
          </Link>
        )}
      </p>
      {history.data && (
        <p className="hint" dir="auto">
          {history.data.earlier.length
            ? t("memory.before", { texts: history.data.earlier.map((each) => `${each.text} (${format.day(each.learnt_at)})`).join("; ") })
            : t("memory.noBefore")}
        </p>
      )}
      <Failure>{(change.error ?? forget.error)?.message}</Failure>
    </li>
  );
}
