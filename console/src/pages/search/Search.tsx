// The search inspector: a query, where each hit stood at each stage, what was left out, and how long each stage took; two settings beside
// each other where that is wanted.

import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { Button, Empty, Failure, Field } from "../../parts";
import { CollectionField } from "../../parts/fields";
import { askingNow } from "../conversation/asking";
import { useCollections, useChosenCollection } from "../documents/collections";
import { Found } from "./Found";
import "../../style/pages.css";

type Request = Extract<Schemas["SearchRequest"], { cache: boolean }>;

interface Settings {
  strategy: string;
  fusion: string;
  rerank: string;
  top_k: string;
  diversity: string;
  min_score: string;
}

const DEFAULT: Settings = { strategy: "", fusion: "", rerank: "", top_k: "", diversity: "", min_score: "" };
const CHOICES = { strategy: ["hybrid", "dense", "lexical"], fusion: ["convex", "rrf"], rerank: ["auto", "on", "off"] } as const;

export function Search() {
  const { t } = useTranslation();
  const { collections } = useCollections();
  const [query, setQuery] = useState("");
  const [collection, setCollection] = useState(askingNow().collection);
  const [must, setMust] = useState("");
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [settings, setSettings] = useState<Settings[]>([DEFAULT]);
  const chosen = useChosenCollection(collection);
  const search = useMutation({
    mutationFn: () => Promise.all(settings.map((each) => dataOf(api.POST("/v1/search", { body: requestOf(each) })))),
  });
  const requestOf = (given: Settings): Request =>
    bodyOf<Request>({
      query,
      collection_ids: [chosen],
      must: must
        .split(",")
        .map((each) => each.trim())
        .filter(Boolean),
      explain: true,
      cache: false,
      ...(given.strategy ? { strategy: given.strategy as Request["strategy"] } : {}),
      ...(given.fusion ? { fusion: given.fusion as Request["fusion"] } : {}),
      ...(given.rerank ? { rerank: given.rerank as Request["rerank"] } : {}),
      ...(given.top_k ? { top_k: Number(given.top_k) } : {}),
      ...(given.diversity ? { diversity: Number(given.diversity) } : {}),
      ...(given.min_score ? { min_score: Number(given.min_score) } : {}),
      ...(from || to ? { filters: bodyOf<Schemas["Filters"]>({ date_from: from || null, date_to: to || null }) } : {}),
    });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (query.trim() && chosen) search.mutate();
  };
  const change = (index: number, by: Partial<Settings>) =>
    setSettings((before) => before.map((each, at) => (at === index ? { ...each, ...by } : each)));
  const isCompared = settings.length > 1;
  return (
    <div className="column wide">
      <header className="page-head">
        <h1>{t("shell.search")}</h1>
        <p className="lead">{t("search.lead")}</p>
      </header>
      <form className="card search-form" onSubmit={submit}>
        <div className="search-line">
          <Field label={t("search.query")} className="grow">
            {(id) => (
              <input
                id={id}
                type="search"
                value={query}
                onChange={(event) => setQuery(event.target.value)}
                dir="auto"
                data-testid="search-query"
              />
            )}
          </Field>
          <CollectionField label={t("documents.collection")} value={chosen} collections={collections} onChange={setCollection} />
          <Button
            look="primary"
            type="submit"
            icon="search"
            isDisabled={!query.trim() || !chosen || search.isPending}
            data-testid="search-button"
          >
            {t("search.search")}
          </Button>
        </div>
        <details>
          <summary className="hint">{t("search.filters")}</summary>
          <div className="search-line">
            <Field label={t("search.must")} hint={t("search.mustHint")} className="grow">
              {(id) => <input id={id} value={must} onChange={(event) => setMust(event.target.value)} dir="auto" />}
            </Field>
            <Field label={t("search.from")}>
              {(id) => <input id={id} type="date" value={from} onChange={(event) => setFrom(event.target.value)} />}
            </Field>
            <Field label={t("search.to")}>
              {(id) => <input id={id} type="date" value={to} onChange={(event) => setTo(event.target.value)} />}
            </Field>
          </div>
        </details>
        {settings.map((each, index) => (
          <SettingsLine
            key={index === 0 ? "first" : "second"}
            name={isCompared ? (index === 0 ? "A" : "B") : ""}
            settings={each}
            onChange={(by) => change(index, by)}
          />
        ))}
        <div className="actions start">
          <Button
            look="link"
            onPress={() => setSettings(isCompared ? settings.slice(0, 1) : [...settings, { ...DEFAULT }])}
            data-testid="compare"
          >
            {isCompared ? t("search.single") : t("search.compare")}
          </Button>
        </div>
      </form>
      <Failure>{search.error?.message}</Failure>
      {!search.data && !search.isPending && (
        <Empty icon="search" title={t("search.empty")}>
          {t("search.emptyHint")}
        </Empty>
      )}
      {search.data && (
        <div className={isCompared ? "compared" : ""}>
          {search.data.map((answer, index) => (
            <Found
              key={index === 0 ? "first" : "second"}
              answer={answer}
              name={search.data.length > 1 ? (index === 0 ? "A" : "B") : ""}
              other={search.data[1 - index]}
            />
          ))}
        </div>
      )}
    </div>
  );
}

function SettingsLine({ name, settings, onChange }: { name: string; settings: Settings; onChange: (by: Partial<Settings>) => void }) {
  const { t } = useTranslation();
  return (
    <fieldset className="settings-line">
      <legend className={name ? "" : "visually-hidden"}>{name ? t("search.settingsOf", { name }) : t("search.settings")}</legend>
      {(Object.keys(CHOICES) as (keyof typeof CHOICES)[]).map((key) => (
        <Field key={key} label={t(`search.${key}`)}>
          {(id) => (
            <select id={id} value={settings[key]} onChange={(event) => onChange({ [key]: event.target.value })}>
              <option value="">{t("search.byItself")}</option>
              {CHOICES[key].map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          )}
        </Field>
      ))}
      <Field label={t("search.top_k")}>
        {(id) => (
          <input
            id={id}
            type="number"
            min={1}
            max={200}
            value={settings.top_k}
            placeholder={t("search.byItself")}
            onChange={(event) => onChange({ top_k: event.target.value })}
          />
        )}
      </Field>
      <Field label={t("search.diversity")}>
        {(id) => (
          <input
            id={id}
            type="number"
            min={0}
            max={1}
            step={0.1}
            value={settings.diversity}
            placeholder={t("search.byItself")}
            onChange={(event) => onChange({ diversity: event.target.value })}
          />
        )}
      </Field>
      <Field label={t("search.min_score")}>
        {(id) => (
          <input
            id={id}
            type="number"
            min={-1}
            max={1}
            step={0.05}
            value={settings.min_score}
            placeholder={t("search.byItself")}
            onChange={(event) => onChange({ min_score: event.target.value })}
          />
        )}
      </Field>
    </fieldset>
  );
}
