// What is said of answers, claims and steps, in English.

import i18next from "i18next";
import { beforeAll, expect, test } from "vitest";
import type { Citation } from "../../src/api/types";
import { formatOf } from "../../src/i18n/format";
import en from "../../src/i18n/en.json";
import { agentInWords, stepInWords } from "../../src/parts/names";
import { confidenceWords, judgeWords, supportWords, verdictWords } from "../../src/passage/verdicts";
import { NEW_RUN, type FoldedRun } from "../../src/run/fold";

beforeAll(() => i18next.init({ lng: "en", resources: { en: { translation: en } }, interpolation: { escapeValue: false } }));

const { t } = i18next;
const format = formatOf("en");
const cited = [{ number: 1 } as Citation];
const by = { name: "alignment/1", measured: false, false_passed: 0.17, true_failed: 0.31, claims: 210 };
const judged = (status: string, checked_by: object | null, more = {}): FoldedRun =>
  ({
    ...NEW_RUN,
    support_status: status,
    method: "model",
    citations: cited,
    verification: { sentences: [], checked_by, ...more },
  }) as FoldedRun;

test("steps and agents are said in words", () => {
  expect(stepInWords("round1/model")).toBe("Round 1: words of the model");
  expect(stepInWords("forced2/model")).toBe("Last answer 2: words of the model");
  expect(stepInWords("draft")).toBe("The answer");
  expect(stepInWords("joined/retrieve")).toBe("Investigations joined: the search");
  expect(stepInWords("odd_step3")).toBe("Odd step");
  expect(agentInWords("quiz", "model")).toBe("Agent: a quiz (the model chose it)");
  expect(agentInWords("tax_advice", "explicit")).toBe("Agent: tax advice (you chose it)");
  expect(agentInWords("reasoning", "default")).toBe("");
});

test("a verdict is two statements, and a refusal makes neither", () => {
  const quoted = { ...NEW_RUN, support_status: "supported", method: "extractive", citations: cited };
  const uncertain = { ...quoted, answer_status: "uncertain", answer_confidence: 0.554 };
  expect(supportWords(uncertain, t)).toMatch(/word for word/);
  expect(confidenceWords(uncertain, t, format)).toMatch(/^May answer your question.*\(55%\)\.$/);
  const refused = { ...NEW_RUN, support_status: "insufficient", method: "extractive", answer_status: "unlikely", closest: cited };
  expect([supportWords(refused, t), confidenceWords(refused, t, format)]).toEqual(["", ""]);
});

test("what is said of claims is what their judge has earned", () => {
  expect(supportWords(judged("similar_wording", by), t)).toMatch(/similar.*not checked/);
  expect(supportWords(judged("supported", { name: "model/m", claims: 0 }), t)).not.toMatch(/^Every sentence is carried/);
  expect(supportWords(judged("supported", { ...by, measured: true }), t)).toMatch(/^Every sentence is carried/);
  expect(supportWords(judged("", null, { verify: "off" }), t)).toMatch(/Nothing was checked/);
  expect(supportWords(judged("partial", by, { removed: 2 }), t)).toMatch(/2 sentences were left out/);
  expect(judgeWords(judged("partial", by).verification, t, format)).toMatch(/alignment\/1: 17% of false claims.*31%.*210/);
  expect(verdictWords({ verdict: "contradicted", is_action: true }, t).words).toBe("did not happen");
});
