import { useQuery } from "@tanstack/react-query";
import { lazy, useState } from "react";
import { useTranslation } from "react-i18next";
import { api, dataOf } from "../../api/client";
import { useFormat } from "../../i18n/format";
import { Empty, Failure, Field, Segments } from "../../parts";
import { Table } from "../../parts/Table";
import { useMay } from "../../shell/caller";
import { Later } from "../../shell/Later";
import { Figure } from "./Jobs";

const Chart = lazy(() => import("../../artefacts/Chart"));
type By = "day" | "model" | "subject" | "thread";
const DAY_MS = 86_400_000;

/** Tokens and dollars of a time, by day, model or user. */
export function Usage() {
  const { t } = useTranslation();
  const format = useFormat();
  const may = useMay();
  const [by, setBy] = useState<By>("day");
  const [since, setSince] = useState(() => new Date(Date.now() - 29 * DAY_MS).toISOString().slice(0, 10));
  const [until, setUntil] = useState(() => new Date().toISOString().slice(0, 10));
  const [everybody, setEverybody] = useState(false);
  const subject = everybody || by === "subject" ? "*" : undefined;
  const { data, error, isPending } = useQuery({
    queryKey: ["usage", by, since, until, subject],
    queryFn: async () => ({
      by, // what is shown until other rows have come
      ...(await dataOf(api.GET("/v1/usage", { params: { query: { since, until, group_by: by, ...(subject ? { subject } : {}) } } }))),
    }),
    placeholderData: (before) => before,
  });
  const groups = (["day", "model", ...(may.administer ? ["subject"] : [])] as By[]).map((id) => ({ id, label: t(`usage.by_${id}`) }));
  const rows = data?.rows ?? [];
  return (
    <section className="stack">
      <div className="search-line">
        <Segments label={t("usage.by")} value={by} options={groups} onChange={setBy} />
        <Field label={t("usage.since")}>
          {(id) => <input id={id} type="date" value={since} max={until} onChange={(event) => setSince(event.target.value)} />}
        </Field>
        <Field label={t("usage.until")}>
          {(id) => <input id={id} type="date" value={until} min={since} onChange={(event) => setUntil(event.target.value)} />}
        </Field>
        {may.administer && by !== "subject" && (
          <label className="check">
            <input type="checkbox" checked={everybody} onChange={(event) => setEverybody(event.target.checked)} /> {t("usage.everybody")}
          </label>
        )}
      </div>
      <Failure>{error?.message}</Failure>
      {isPending && <p className="loading">{t("common.loading")}</p>}
      {data && (
        <dl className="numbers">
          <Figure name={t("usage.runs")} value={format.number(data.total.runs)} />
          <Figure name={t("usage.tokens")} value={format.number(data.total.prompt_tokens + data.total.completion_tokens)} />
          <Figure name={t("usage.cost")} value={format.dollars(data.total.cost_usd ?? 0)} />
        </dl>
      )}
      {data && !rows.length && (
        <Empty icon="gauge" title={t("usage.none")}>
          {t("usage.noneHint")}
        </Empty>
      )}
      {data?.by === "day" && rows.length > 1 && (
        <Later>
          <Chart
            chart={{
              form: "bar",
              unit: "",
              labels: rows.map((each) => each.key),
              series: data?.total.cost_usd
                ? [{ name: t("usage.cost"), values: rows.map((each) => each.cost_usd) }]
                : [{ name: t("usage.tokens"), values: rows.map((each) => each.prompt_tokens + each.completion_tokens) }],
            }}
          />
        </Later>
      )}
      {rows.length > 0 && (
        <Table>
          <thead>
            <tr>
              <th scope="col">{t(`usage.by_${data?.by ?? by}`)}</th>
              <th scope="col">{t("usage.runs")}</th>
              <th scope="col">{t("usage.read")}</th>
              <th scope="col">{t("usage.written")}</th>
              <th scope="col">{t("usage.cost")}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((each) => (
              <tr key={each.key}>
                <td dir="auto">{(data?.by === "day" && each.key ? format.day(each.key) : each.key) || t("usage.noModel")}</td>
                <td className="tight">{format.number(each.runs)}</td>
                <td className="tight">{format.number(each.prompt_tokens)}</td>
                <td className="tight">{format.number(each.completion_tokens)}</td>
                <td className="tight">{format.dollars(each.cost_usd ?? 0)}</td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </section>
  );
}
