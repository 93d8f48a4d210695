// What the server says of a refusal or of a missing part, in the language of the page. The server explains in English: where the page
// is in another language, words of ours come first, and the server's stand behind them.

import i18next from "i18next";
import { formatOf } from "../i18n/format";

interface Refusal {
  reason?: string | null;
  status?: number;
  detail?: string | null;
  retryAfterS?: number;
}

export function refusalWords({ reason, status = 0, detail, retryAfterS = 0 }: Refusal): string {
  const said = detail || "";
  if (i18next.language === "en" && said) return said;
  const words = known(`problem.reason_${reason}`) || known(`problem.status_${status}`) || (status >= 500 && known("problem.status_500"));
  const wait = retryAfterS ? i18next.t("problem.wait", { time: formatOf(i18next.language).duration(retryAfterS) }) : "";
  return behind([words, wait].filter(Boolean).join(" "), said) || i18next.t("problem.status", { status });
}

/** What was done in a lesser way than asked. */
export function degradedWords({ part, message }: { part: string; message?: string | null }): string {
  if (i18next.language === "en" && message) return message;
  return behind(known(`degraded.${part}`) || i18next.t("degraded.other"), message || part);
}

function known(key: string): string {
  return i18next.exists(key) ? i18next.t(key as "degraded.other") : "";
}

/** The server's English text, which follows the page's words in its own direction. */
function behind(words: string, english: string): string {
  return words && english ? `${words} \u2068${english}\u2069` : words || english;
}
