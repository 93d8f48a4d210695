// Every text of the console in every language: none lacks, none is left in English, and all have the same values put in.

import { describe, expect, test } from "vitest";
import de from "../../src/i18n/de.json";
import en from "../../src/i18n/en.json";
import he from "../../src/i18n/he.json";
import ru from "../../src/i18n/ru.json";

const SUFFIX = /_(zero|one|two|few|many|other)$/;
/** Texts that are the same in another language, or names. */
const SAME: Record<string, string[]> = {
  de: ["upload.title", "search.done", "trace.agent", "ask.agent", "documents.status_ready", "passage.asText", "members.name"],
  ru: ["search.done"],
  he: ["search.done"],
};

type Texts = Record<string, Record<string, string>>;

function flat(texts: Texts): Map<string, string> {
  return new Map(
    Object.entries(texts).flatMap(([group, each]) => Object.entries(each).map(([key, text]) => [`${group}.${key}`, text] as const)),
  );
}

const base = (key: string) => key.replace(SUFFIX, "");
const values = (text: string) =>
  [...text.matchAll(/{{(\w+)}}/g)]
    .map(([, name]) => name)
    .filter((name) => name !== "count")
    .sort();
const english = flat(en);
const plurals = new Set([...english.keys()].filter((key) => SUFFIX.test(key) && english.has(`${base(key)}_other`)).map(base));

describe.each(Object.entries({ de, ru, he }))("%s", (language, texts) => {
  const known = flat(texts as Texts);

  test("has every text, with each form of a number", () => {
    const forms = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
    const wanted = [...english.keys()].flatMap((key) => (plurals.has(base(key)) ? forms.map((form) => `${base(key)}_${form}`) : [key]));
    expect([...known.keys()].sort()).toEqual([...new Set(wanted)].sort());
  });

  test("has no text in English", () => {
    const left = [...known]
      .filter(([key, text]) => text === english.get(key) && /\p{L}{3}/u.test(text.replaceAll(/{{\w+}}/g, "")))
      .map(([key]) => key);
    expect(left.filter((key) => !SAME[language]?.includes(base(key)))).toEqual([]);
  });

  test("puts the same values in", () => {
    for (const [key, text] of known) {
      const source = english.get(key) ?? english.get(`${base(key)}_other`) ?? "";
      expect(values(text), key).toEqual(values(source));
    }
  });
});
