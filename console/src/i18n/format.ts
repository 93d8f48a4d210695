// Numbers, sizes, times and moments as the chosen language writes them.

import i18next from "i18next";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";

export interface Format {
  number: (value: number, digits?: number) => string;
  percent: (share: number) => string;
  size: (bytes: number) => string;
  duration: (seconds: number) => string;
  dollars: (amount: number) => string;
  moment: (iso: string) => string;
  day: (iso: string) => string;
  ago: (iso: string) => string;
  list: (words: string[]) => string;
}

/** Formats of a language. */
export function formatOf(language: string): Format {
  const number = (options: Intl.NumberFormatOptions) => new Intl.NumberFormat(language, options);
  const unit = (value: number, name: string, digits: number, unitDisplay: "short" | "long" = "short") =>
    number({ style: "unit", unit: name, unitDisplay, maximumFractionDigits: digits }).format(value);
  return {
    number: (value, digits = 0) => number({ maximumFractionDigits: digits }).format(value),
    percent: (share) => number({ style: "percent", maximumFractionDigits: 0 }).format(share),
    size: (bytes) => {
      if (bytes < 1000) return unit(bytes, "byte", 0, "long");
      if (bytes < 1e6) return unit(bytes / 1000, "kilobyte", bytes < 1e4 ? 1 : 0);
      return bytes < 1e9 ? unit(bytes / 1e6, "megabyte", bytes < 1e7 ? 1 : 0) : unit(bytes / 1e9, "gigabyte", 1);
    },
    duration: (seconds) => {
      if (seconds < 0.95) return unit(Math.max(1, Math.round(seconds * 1000)), "millisecond", 0);
      if (seconds < 90) return unit(seconds, "second", seconds < 10 ? 1 : 0);
      return seconds < 5400 ? unit(seconds / 60, "minute", 0) : unit(seconds / 3600, "hour", 1);
    },
    dollars: (amount) => number({ style: "currency", currency: "USD", maximumFractionDigits: amount < 1 ? 4 : 2 }).format(amount),
    moment: (iso) => new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(new Date(iso)),
    day: (iso) => new Intl.DateTimeFormat(language, { dateStyle: "medium" }).format(new Date(iso)),
    ago: (iso) => ago(language, new Date(iso)),
    list: (words) => new Intl.ListFormat(language, { type: "conjunction" }).format(words),
  };
}

function ago(language: string, moment: Date): string {
  const seconds = (moment.getTime() - Date.now()) / 1000;
  const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
  const steps: [number, Intl.RelativeTimeFormatUnit][] = [
    [60, "second"],
    [3600, "minute"],
    [86_400, "hour"],
    [30 * 86_400, "day"],
  ];
  let length = 1;
  for (const [limit, unit] of steps) {
    if (Math.abs(seconds) < limit) return relative.format(Math.round(seconds / length), unit);
    length = limit;
  }
  return new Intl.DateTimeFormat(language, { dateStyle: "medium" }).format(moment);
}

/** Formats of the chosen language. */
export function useFormat(): Format {
  const { i18n } = useTranslation();
  return useMemo(() => formatOf(i18n.language), [i18n.language]);
}

/** The direction of the chosen language. */
export function isRightToLeft(): boolean {
  return i18next.dir() === "rtl";
}
