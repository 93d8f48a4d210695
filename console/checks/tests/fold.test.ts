import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { NEW_RUN, foldEvent } from "../../src/run/fold";

interface Case {
  case: string;
  events: Parameters<typeof foldEvent>[1][];
  result: unknown;
}

const cases: Case[] = JSON.parse(readFileSync(new URL("../../../tests/data/run_folds.json", import.meta.url), "utf-8"));

describe("events add up to the same as in the gateway and on the command line", () => {
  test.each(cases)("$case", ({ events, result }) => {
    expect(events.reduce(foldEvent, NEW_RUN)).toEqual(result);
  });
});
