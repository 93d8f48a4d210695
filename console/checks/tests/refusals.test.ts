// What the server refuses or lacks is said in the language of the page.

import i18next from "i18next";
import { beforeAll, expect, test } from "vitest";
import { degradedWords, refusalWords } from "../../src/api/words";
import de from "../../src/i18n/de.json";
import en from "../../src/i18n/en.json";

beforeAll(() => i18next.init({ lng: "en", fallbackLng: "en", resources: { en: { translation: en }, de: { translation: de } } }));

test("English has the server's own words", async () => {
  await i18next.changeLanguage("en");
  expect(refusalWords({ status: 412, detail: "it expired" })).toBe("it expired");
  expect(refusalWords({ status: 429, retryAfterS: 5 })).toBe("That is too much at once. Try again a little later. Try again in 5 sec.");
  expect(degradedWords({ part: "llm", message: "it fell silent" })).toBe("it fell silent");
});

test.each([
  [{ status: 403, reason: "SCOPE_MISSING", detail: "no scope" }, "Ihr API-Schlüssel hat kein Recht dazu. \u2068no scope\u2069"],
  [{ status: 403, reason: "CROSS_ORIGIN", detail: "another site" }, "Das dürfen Sie nicht. \u2068another site\u2069"],
  [{ status: 412, reason: "APPROVAL_CLOSED", detail: "" }, "Das ist schon entschieden, oder die Zeit dafür ist um."],
  [{ status: 502, detail: "" }, "Im Server ist etwas schiefgegangen. Versuchen Sie es noch einmal."],
  [{ status: 418, detail: "" }, "Der Server antwortete mit 418."],
  [{ reason: "UNKNOWN", detail: "as it is" }, "as it is"],
])("German words come before the server's: %o", async (refusal, words) => {
  await i18next.changeLanguage("de");
  expect(refusalWords(refusal)).toBe(words);
});

test("a missing part has words, also one of a newer server", async () => {
  await i18next.changeLanguage("de");
  expect(degradedWords({ part: "lexical", message: "left out" })).toBe("Die Suche nach Wörtern fehlte. \u2068left out\u2069");
  expect(degradedWords({ part: "moon" })).toBe("Ein Teil fehlte. \u2068moon\u2069");
});
