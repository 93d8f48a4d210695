// What a tool's result says: its own English summary, which is folded away in other languages.

import i18next from "i18next";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { initReactI18next } from "react-i18next";
import { beforeAll, expect, test } from "vitest";
import de from "../../src/i18n/de.json";
import en from "../../src/i18n/en.json";
import { Result } from "../../src/pages/conversation/Trace";
import type { Step } from "../../src/run/trace";

beforeAll(() => i18next.use(initReactI18next).init({ resources: { en: { translation: en }, de: { translation: de } } }));

const drawn = (result: object | undefined, state: Step["state"] = "ok") =>
  renderToStaticMarkup(createElement(Result, { step: { key: "1", event: {}, result, state } as Step }));
const SUMMARY = "2 passages from 1 document.";

test("the summary is read at once in English, and in German when it is opened", async () => {
  await i18next.changeLanguage("en");
  expect(drawn({ ok: true, summary: SUMMARY })).toMatch(/^<p [^>]*>2 passages from 1 document\.<\/p>$/);
  await i18next.changeLanguage("de");
  expect(drawn({ ok: true, summary: SUMMARY })).toMatch(/^<details [^>]*><summary>Erledigt<\/summary><p [^>]*lang="en">2 passages/);
});

test("what has no summary is done, under way, not ended or failed", async () => {
  await i18next.changeLanguage("de");
  const said = [
    drawn({ ok: true, summary: "" }),
    drawn(undefined, "running"),
    drawn(undefined, "failed"),
    drawn({ ok: false, summary: "", error: null }),
  ];
  const { done, running, unfinished, failed } = de.trace;
  expect(said.map((each) => each.replace(/<[^>]*>/g, ""))).toEqual([done, running, unfinished, failed]);
});
