import { beforeEach, expect, test, vi } from "vitest";

const { askForKey, identity, noteIdentity, pendingQuestion } = await import("../../src/api/key");

const anna = { tenant: "acme", subject: "anna" };
const boris = { tenant: "acme", subject: "boris" };
const assign = vi.fn();
let kept: Map<string, string>;

beforeEach(() => {
  kept = new Map([["groundwork.api-key", "gw_anna"]]);
  vi.stubGlobal("sessionStorage", {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => kept.set(name, value),
    removeItem: (name: string) => kept.delete(name),
  });
  assign.mockClear();
  vi.stubGlobal("location", { assign });
});

/** Asks as a refused request does, and answers with a key of `caller`. */
function enter(key: string, caller: object): Promise<boolean> | boolean {
  vi.stubGlobal("fetch", async () => new Response(JSON.stringify(caller)));
  const asked = askForKey({ Authorization: "Bearer gw_anna" }, "expired");
  pendingQuestion()?.answer(key);
  return asked;
}

test("another key of the same person lets the page go on", async () => {
  noteIdentity(anna);
  expect(await enter("gw_new", anna)).toBe(true);
  expect(assign).not.toHaveBeenCalled();
  expect(kept.get("groundwork.api-key")).toBe("gw_new");
});

test("the key of somebody else begins the page anew, and what the page had asked is not asked in their name", async () => {
  noteIdentity(anna);
  const asked = enter("gw_boris", boris);
  await vi.waitFor(() => expect(assign).toHaveBeenCalledWith("/"));
  expect(identity()).toBe("acme/boris");
  const isAnswered = await Promise.race([asked, new Promise((resolve) => setTimeout(() => resolve("never"), 10))]);
  expect(isAnswered).toBe("never");
});
