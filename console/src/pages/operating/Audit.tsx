import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Problem, call, save } from "../../api/client";
import type { Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Button, Empty, Failure, Field, Icon } from "../../parts";
import { Table } from "../../parts/Table";
import { useMay } from "../../shell/caller";
import { dotted } from "../../text";

type Entry = Schemas["AuditEntry"];
type Chain = "tenant" | "unknown_callers";
const PAGE = 500;
const DAYS = [1, 7, 30, 365] as const;
const KNOWN = [
  "request",
  "refused",
  "login",
  "logout",
  "login_reused",
  "key_created",
  "key_rotated",
  "key_changed",
  "key_revoked",
  "user_activated",
  "user_deactivated",
  "user_deleted",
] as const;

/** The newest entries before the number `before` (0: of all) and not older than `days`: lines of JSON, as they are stored. */
async function read(chain: Chain, days: number, before: number): Promise<Entry[]> {
  const since = new Date(Date.now() - days * 86_400_000).toISOString();
  const query = new URLSearchParams({ chain, since, order: "newest", before: String(before), limit: String(PAGE) });
  const lines = await (await call(`/v1/audit?${query}`)).text();
  return lines
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** Who did what to what, newest first. */
export function Audit() {
  const { t } = useTranslation();
  const may = useMay();
  const [chain, setChain] = useState<Chain>("tenant");
  const [days, setDays] = useState<number>(7);
  const [words, setWords] = useState("");
  const { data, error, isPending, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: ["audit", chain, days],
    queryFn: ({ pageParam }) => read(chain, days, pageParam),
    initialPageParam: 0,
    getNextPageParam: (page) => (page.length === PAGE ? page.at(-1)?.number : undefined),
    retry: false,
  });
  if (error instanceof Problem && error.reason === "API_KEYS_OFF") {
    return (
      <Empty icon="book" title={t("audit.offTitle")}>
        {t("audit.off")} <code dir="ltr">GROUNDWORK_AUTH=api_keys</code>
      </Empty>
    );
  }
  const entries = data?.pages.flat() ?? [];
  const wanted = words.trim().toLowerCase();
  const shown = entries.filter((each) => JSON.stringify(each).toLowerCase().includes(wanted));
  const text = () => shown.map((each) => `${JSON.stringify(each)}\n`);
  return (
    <section className="stack" data-testid="audit">
      <p className="hint">{t("audit.lead")}</p>
      <Failure>{error?.message}</Failure>
      <div className="audit-bar">
        <Field label={t("audit.period")}>
          {(id) => (
            <select id={id} value={days} onChange={(event) => setDays(Number(event.target.value))} data-testid="audit-days">
              {DAYS.map((each) => (
                <option key={each} value={each}>
                  {t("audit.days", { count: each })}
                </option>
              ))}
            </select>
          )}
        </Field>
        {may.operate && (
          <Field label={t("audit.whose")}>
            {(id) => (
              <select id={id} value={chain} onChange={(event) => setChain(event.target.value as Chain)} data-testid="audit-chain">
                <option value="tenant">{t("audit.whose_tenant")}</option>
                <option value="unknown_callers">{t("audit.whose_unknown_callers")}</option>
              </select>
            )}
          </Field>
        )}
        <label className="find">
          <Icon name="search" />
          <span className="visually-hidden">{t("audit.find")}</span>
          <input type="search" value={words} onChange={(event) => setWords(event.target.value)} placeholder={t("audit.find")} dir="auto" />
        </label>
        <Button icon="retry" onPress={() => refetch()}>
          {t("audit.refresh")}
        </Button>
        <Button
          icon="download"
          onPress={() => save(new Blob(text(), { type: "application/x-ndjson" }), "audit.ndjson")}
          isDisabled={!shown.length}
        >
          {t("audit.save")}
        </Button>
      </div>
      {isPending && <p className="loading">{t("common.loading")}</p>}
      {data && !shown.length && (
        <Empty icon="book" title={t("audit.none")}>
          {t("audit.noneHint")}
        </Empty>
      )}
      {shown.length > 0 && <Entries entries={shown} />}
      {hasNextPage && (
        <Button look="link" onPress={() => fetchNextPage()} isDisabled={isFetchingNextPage} className="centred">
          {t("audit.earlier", { count: entries.length })}
        </Button>
      )}
    </section>
  );
}

function Entries({ entries }: { entries: Entry[] }) {
  const { t } = useTranslation();
  const format = useFormat();
  const action = (name: string) => {
    const known = KNOWN.find((each) => each === name);
    return known ? t(`audit.action_${known}`) : name;
  };
  return (
    <Table>
      <thead>
        <tr>
          <th scope="col">{t("audit.when")}</th>
          <th scope="col">{t("audit.who")}</th>
          <th scope="col">{t("audit.what")}</th>
          <th scope="col">{t("audit.about")}</th>
          <th scope="col">{t("audit.outcome")}</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((each) => (
          <tr key={each.number} data-testid="audit-entry" data-action={each.action}>
            <td className="tight">{format.moment(each.at)}</td>
            <td>
              <bdi>{each.subject || t("audit.nobody")}</bdi>
              <span className="hint block" title={each.key_id || undefined}>
                {dotted([each.key_id ? `${each.key_id.slice(0, 8)}…` : "", each.address])}
              </span>
            </td>
            <td>
              {action(each.action)}
              {each.route && (
                <code className="hint block" dir="ltr">
                  {each.method} {each.route}
                </code>
              )}
            </td>
            <td dir="auto">
              {[...Object.entries(each.about ?? {}).map(([name, id]) => `${name}: ${id}`), each.about_key_id, each.about_subject]
                .filter(Boolean)
                .join(", ")}
            </td>
            <td dir="ltr">{dotted([each.status ? String(each.status) : "", each.reason])}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
