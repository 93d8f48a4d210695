import { expect, test, vi } from "vitest";

const { askForKey, pendingQuestion } = await import("../../src/api/key");

/** Asks as a refused request does, and answers. */
async function enter(key: string, shown: Record<string, string>): Promise<void> {
  const asked = askForKey(shown, "expired");
  pendingQuestion()?.answer(key);
  await asked;
}

test("drafts go when another key is entered, and stay with the same", async () => {
  const kept = { "groundwork.api-key": "gw_anna", "groundwork.draft./": "My question", other: "stays" };
  Object.defineProperties(kept, {
    getItem: { value: (name: keyof typeof kept) => kept[name] ?? null },
    setItem: { value: (name: keyof typeof kept, value: string) => (kept[name] = value) },
    removeItem: { value: (name: keyof typeof kept) => delete kept[name] },
  });
  vi.stubGlobal("sessionStorage", kept);
  await enter("gw_anna", { Authorization: "Bearer gw_anna" });
  expect(kept["groundwork.draft./"]).toBe("My question");
  await enter("gw_boris", { Authorization: "Bearer gw_anna" });
  expect(Object.keys(kept).sort()).toEqual(["groundwork.api-key", "other"]);
});
