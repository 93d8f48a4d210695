import { beforeEach, expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://localhost", pathname: "/" });
vi.stubGlobal("sessionStorage", { getItem: () => null });
const { changeAccess, restrictAccess } = await import("../../src/pages/documents/access");

interface List {
  restricted: boolean;
  subjects: string[];
  groups: string[];
}
let kept: List;
let puts: number;

beforeEach(() => {
  puts = 0;
  vi.stubGlobal("fetch", async (request: Request) => {
    if (request.method === "PUT") {
      puts += 1;
      kept = { restricted: true, ...(await request.json()) };
    }
    return new Response(JSON.stringify(kept), { headers: { "Content-Type": "application/json" } });
  });
});

test("a change is made to the list as the server has it by then", async () => {
  kept = { restricted: true, subjects: ["anna"], groups: ["staff"] }; // bob was taken out after this page had read the list
  const added = await changeAccess("d1", { kind: "subjects", name: "carol", isIn: true });
  expect(added).toEqual({ restricted: true, subjects: ["anna", "carol"], groups: ["staff"] });
  await changeAccess("d1", { kind: "groups", name: "staff", isIn: false });
  expect(kept).toEqual({ restricted: true, subjects: ["anna", "carol"], groups: [] });
});

test("what somebody else has done already is not sent again, and a list that was taken away stays away", async () => {
  kept = { restricted: true, subjects: ["anna"], groups: [] };
  await changeAccess("d1", { kind: "subjects", name: "anna", isIn: true });
  await changeAccess("d1", { kind: "subjects", name: "bob", isIn: false });
  expect(await restrictAccess("d1")).toEqual(kept);
  kept = { restricted: false, subjects: [], groups: [] };
  expect(await changeAccess("d1", { kind: "subjects", name: "bob", isIn: false })).toEqual(kept);
  expect(puts).toBe(0);
  await restrictAccess("d1");
  expect([kept.restricted, puts]).toEqual([true, 1]);
});
