import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { defaultPathSerializer } from "openapi-fetch";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { api, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { ActionMenu, Button, Confirm, Dialog, Failure, Field, IconButton } from "../../parts";
import { Table } from "../../parts/Table";
import { useMay } from "../../shell/caller";

type Limit = Schemas["Limit"];
type Rule = Schemas["LimitRule"];
const IN_ALL: Limit["what"][] = ["credits", "storage", "stored_documents"];
const COUNTED: Limit["what"][] = ["requests", "runs", "research_runs", "tokens", "dollars", "tool_calls", "seconds", "documents"];
const THINGS = [...COUNTED, ...IN_ALL];
const WINDOWS: Limit["per"][] = ["second", "minute", "hour", "day", "month", "ever"];
const FIRST: Limit = { what: "tokens", amount: 200_000, per: "day" };

/** Credits and what is stored have no window; all else is counted anew in each. */
const windowsOf = (what: Limit["what"]) => WINDOWS.filter((per) => (per === "ever") === IN_ALL.includes(what));
const MOST_LIMITS = THINGS.flatMap(windowsOf).length;

/** What the caller may use and has used; for those who may, the rules about others. */
export function Limits() {
  const { t } = useTranslation();
  const may = useMay();
  const format = useFormat();
  const amount = useAmount();
  const { data, error } = useQuery({ queryKey: ["limits"], queryFn: () => dataOf(api.GET("/v1/limits")) });
  const limits = data?.limits ?? [];
  return (
    <section className="stack">
      <Failure>{error?.message}</Failure>
      {data?.missing?.map((service) => (
        <p key={service} className="hint" role="status" data-testid="limits-missing">
          {t(`limits.missing_${service}`)}
        </p>
      ))}
      {data && !limits.length && !data.missing?.length && <p className="hint">{t("limits.none")}</p>}
      {limits.length > 0 && (
        <ul className="stack" data-testid="limits">
          {limits.map(({ whose, limit, used, free_at }) => (
            <li key={`${whose} ${limit.what} ${limit.per}`} className="card limit">
              <p>
                {t(`limits.whose_${whose.split(":")[0] as "all" | "tenant" | "group" | "subject" | "key"}`, { name: groupOf(whose) })}:{" "}
                {t(`limits.what_${limit.what}`)} {t(`limits.per_${limit.per}`)}
              </p>
              {used !== null && used !== undefined && (
                <progress max={limit.amount || 1} value={used} aria-label={t(`limits.what_${limit.what}`)} />
              )}
              <p className="hint">
                {used === null || used === undefined
                  ? amount(limit)
                  : t("limits.used", { used: amount({ ...limit, amount: used }), amount: amount(limit) })}{" "}
                {"·"}{" "}
                {free_at
                  ? t("limits.freeAt", { moment: format.moment(free_at) })
                  : t(limit.what === "credits" ? "limits.untilGranted" : "limits.untilDeleted")}
              </p>
            </li>
          ))}
        </ul>
      )}
      {may.administer && <Rules />}
    </section>
  );
}

/** The server takes the slashes of a group's name as they are. */
const keepSlashes: typeof defaultPathSerializer = (...path) => defaultPathSerializer(...path).replaceAll("%2F", "/");
const groupOf = (whose: string) => whose.slice(whose.indexOf(":") + 1);

function useAmount() {
  const format = useFormat();
  return ({ what, amount }: Limit) => (what === "dollars" ? format.dollars(amount) : format.number(amount));
}

function Rules() {
  const { t } = useTranslation();
  const amount = useAmount();
  const queries = useQueryClient();
  const may = useMay();
  const [edited, edit] = useState<Rule | null>(null);
  const [removed, remove] = useState<Rule | null>(null);
  const { data, error } = useQuery({
    queryKey: ["limits", "rules"],
    queryFn: async () => (await dataOf(api.GET("/v1/limits/rules"))).rules,
    retry: false,
  });
  const isChangeable = ({ whose, tenant_id: tenant }: Rule) =>
    /^(group|subject|key):/.test(whose) ? !tenant || tenant === may.tenant : may.operate;
  const save = async (rule: Rule) => {
    const request = { params: { path: { whose: rule.whose } }, body: { limits: rule.limits }, pathSerializer: keepSlashes };
    await dataOf(api.PUT("/v1/limits/rules/{whose}", request));
    await queries.invalidateQueries({ queryKey: ["limits"] });
  };
  return (
    <>
      <h2>{t("limits.rules")}</h2>
      <p className="hint">{t("limits.rulesHint")}</p>
      <Failure>{error?.message}</Failure>
      <div className="actions start">
        <Button icon="add" look="primary" onPress={() => edit({ whose: "subject:*", limits: [FIRST] })} data-testid="new-rule">
          {t("limits.new")}
        </Button>
      </div>
      {data && data.length > 0 && (
        <Table data-testid="limit-rules">
          <thead>
            <tr>
              <th scope="col">{t("limits.whose")}</th>
              <th scope="col">{t("limits.limits")}</th>
              <th scope="col">
                <span className="visually-hidden">{t("answer.more")}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.map((rule) => (
              <tr key={`${rule.tenant_id} ${rule.whose}`}>
                <td dir="ltr">{rule.whose}</td>
                <td>
                  <ul>
                    {rule.limits.map((each) => (
                      <li key={`${each.what} ${each.per}`}>
                        {t(`limits.what_${each.what}`)}: {amount(each)} {t(`limits.per_${each.per}`)}
                      </li>
                    ))}
                  </ul>
                </td>
                <td className="row-actions">
                  {isChangeable(rule) && (
                    <ActionMenu
                      label={t("limits.actions", { whose: rule.whose })}
                      choices={[
                        { id: "edit", label: t("limits.edit"), icon: "edit", act: () => edit(rule) },
                        { id: "remove", label: t("limits.remove"), icon: "trash", isDanger: true, act: () => remove(rule) },
                      ]}
                    />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {edited && <RuleDialog rule={edited} onClose={() => edit(null)} onSave={save} />}
      <Confirm
        title={t("limits.removeTitle", { whose: removed?.whose ?? "" })}
        action={t("limits.remove")}
        isOpen={removed !== null}
        onClose={() => remove(null)}
        onConfirm={async () => {
          if (removed) await save({ ...removed, limits: [] });
        }}
      >
        <p>{t("limits.removeHint")}</p>
      </Confirm>
    </>
  );
}

function RuleDialog({ rule, onClose, onSave }: { rule: Rule; onClose: () => void; onSave: (rule: Rule) => Promise<void> }) {
  const { t } = useTranslation();
  const [whose, setWhose] = useState(rule.whose);
  const [limits, setLimits] = useState(rule.limits);
  const save = useMutation({ mutationFn: () => onSave({ whose: whose.trim(), limits }), onSuccess: onClose });
  const change = (index: number, by: Partial<Limit>) => setLimits(limits.map((each, at) => (at === index ? { ...each, ...by } : each)));
  const changeWhat = (index: number, what: Limit["what"]) => {
    const windows = windowsOf(what);
    const { per } = limits[index] ?? FIRST;
    change(index, { what, per: windows.includes(per) ? per : (windows.at(-1) ?? per) });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Dialog title={t("limits.rule")} isOpen onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <Field label={t("limits.whose")} hint={t("limits.whoseHint")}>
          {(id) => <input id={id} value={whose} onChange={(event) => setWhose(event.target.value)} dir="ltr" data-testid="rule-whose" />}
        </Field>
        {limits.map((each, index) => (
          <div key={`${index} of ${limits.length}`} className="search-line">
            <Field label={t("limits.amount")}>
              {(id) => (
                <input
                  id={id}
                  type="number"
                  min={0}
                  step="any"
                  required
                  value={Number.isNaN(each.amount) ? "" : each.amount}
                  onChange={(event) => change(index, { amount: event.target.valueAsNumber })}
                  data-testid="rule-amount"
                />
              )}
            </Field>
            <Field label={t("limits.what")}>
              {(id) => (
                <select id={id} value={each.what} onChange={(event) => changeWhat(index, event.target.value as Limit["what"])}>
                  {THINGS.map((what) => (
                    <option key={what} value={what}>
                      {t(`limits.what_${what}`)}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            <Field label={t("limits.per")}>
              {(id) => (
                <select id={id} value={each.per} onChange={(event) => change(index, { per: event.target.value as Limit["per"] })}>
                  {windowsOf(each.what).map((per) => (
                    <option key={per} value={per}>
                      {t(`limits.per_${per}`)}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            {limits.length > 1 && (
              <IconButton label={t("limits.removeLimit")} icon="close" onPress={() => setLimits(limits.filter((_, at) => at !== index))} />
            )}
          </div>
        ))}
        <div className="actions start">
          <Button icon="add" onPress={() => setLimits([...limits, FIRST])} isDisabled={limits.length >= MOST_LIMITS}>
            {t("limits.add")}
          </Button>
        </div>
        <Failure>{save.error?.message}</Failure>
        <div className="actions">
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" type="submit" isDisabled={!whose.trim() || save.isPending} data-testid="rule-save">
            {t("common.save")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
