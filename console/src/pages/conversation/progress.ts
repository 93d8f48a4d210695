// What a run is doing now, in a sentence.

import { useTranslation } from "react-i18next";
import { useFormat } from "../../i18n/format";
import { useToolName } from "../../parts/names";
import type { RunEvents, Schemas } from "../../api/types";
import type { Followed } from "../../run/store";
import { dotted } from "../../text";

/** What was planned: a search, or another way to an answer. */
export function usePlanWords(): (plan: RunEvents["plan"]) => string {
  const { t } = useTranslation();
  const format = useFormat();
  return ({ route, queries, round, investigation }) => {
    const quoted = format.list(queries.map((query) => `“${query}”`));
    if (route === "tools") return t("progress.tools");
    if (route === "math") return t("progress.math", { what: quoted });
    if (route === "time") return t("progress.time");
    if (route === "talk") return t("progress.talk");
    if (round && investigation) return t("progress.investigation", { round, investigation, what: quoted });
    return round ? t("progress.round", { round, what: quoted }) : t("progress.searching", { what: quoted });
  };
}

/** The filters of a plan: its own first, then the filter of each search that has one. */
export function useFilterWords(): (plan: RunEvents["plan"]) => string[] {
  const { t } = useTranslation();
  const format = useFormat();
  const words = ({ metadata, date_from, date_to }: Schemas["SearchFilter"]) => [
    ...metadata.map(({ key, values }) => `${key}: ${format.list(values)}`),
    date_from && `${t("search.from")} ${format.day(date_from)}`,
    date_to && `${t("search.to")} ${format.day(date_to)}`,
  ];
  return ({ filter, sub_queries }) => [
    ...(filter ? [dotted(words(filter))] : []),
    ...sub_queries.flatMap((each) => (each.filter ? [dotted([`“${each.text}”`, ...words(each.filter)])] : [])),
  ];
}

export function useProgress(): (followed: Followed) => string {
  const { t } = useTranslation();
  const tool = useToolName();
  const planned = usePlanWords();
  return ({ last, run }) => {
    if (run.status === "waiting") return run.input ? t("progress.input") : t("progress.decision");
    switch (last?.event) {
      case undefined:
        return t("progress.starting");
      case "plan":
        return planned(last.data);
      case "retrieval":
        return last.data.evidence.length ? t("progress.reading", { count: last.data.evidence.length }) : t("progress.nothing");
      case "tool":
        return t("progress.tool", { tool: tool(last.data.name) });
      case "thinking":
        return last.data.text || t("progress.thinking");
      case "claim":
      case "verification":
        return t("progress.checking");
      default:
        return run.answer ? t("progress.writing") : t("progress.thinking");
    }
  };
}
