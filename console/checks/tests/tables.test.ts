// Tables whose columns have no name: no header cell is empty, and no button is without a name.

import i18next from "i18next";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { initReactI18next } from "react-i18next";
import { expect, test, vi } from "vitest";
import { SortedTable } from "../../src/artefacts/SortedTable";
import en from "../../src/i18n/en.json";
import Markdown from "../../src/pages/conversation/Markdown";

vi.hoisted(() => vi.stubGlobal("location", new URL("http://console.test/"))); // read when the API's client is loaded

function drawn(text: string): string {
  return renderToStaticMarkup(createElement(Markdown, { text, isLive: false, isKnown: () => false, mark: () => null }));
}

test.each(["", "&nbsp;", "![a picture](x.png)", "****"])("a header cell of %j is a plain cell, those with words are headers", (empty) => {
  const table = drawn(`| ${empty} | Terms | *2026* |\n| --- | --- | --: |\n| Notice | four weeks | 3 |`);
  const head = table.slice(0, table.indexOf("<tbody>"));
  const headers = [...head.matchAll(/<th[ >].*?<\/th>/g)].map(([cell]) => cell.replace(/<[^>]*>/g, ""));
  expect(headers.slice(-2)).toEqual(["Terms", "2026"]);
  expect(head).not.toMatch(/<th[^>]*>\s*<\/th>/);
  expect(head).toContain('<th style="text-align:right">');
  expect(table.match(/<td/g)).toHaveLength(headers.length === 2 ? 4 : 3);
});

test("a column without a name sorts by a button that has one", async () => {
  await i18next.use(initReactI18next).init({ lng: "en", resources: { en: { translation: en } } });
  const table = renderToStaticMarkup(
    createElement(SortedTable, { name: "terms", columns: ["", "Weeks"], rows: [["Notice", 4]], citedAt: () => [], onOpen: () => {} }),
  );
  const buttons = [...table.matchAll(/class="sort"[^>]*>([^<]*)</g)].map(([, name]) => name);
  expect(buttons).toEqual(["Column 1", "Weeks"]);
});
