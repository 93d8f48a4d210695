import { beforeEach, expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://localhost", pathname: "/" });
vi.stubGlobal("sessionStorage", { getItem: () => null });
const { changeAccess, openAccess, restrictAccess, wasChanged } = await import("../../src/pages/documents/access");

interface List {
  restricted: boolean;
  subjects: string[];
  groups: string[];
}
let kept: List;
let puts: number;
/** What somebody else does between this page's reading and its writing, once. */
let meanwhile: (() => void) | null;

const etag = () => JSON.stringify(JSON.stringify(kept));

beforeEach(() => {
  puts = 0;
  meanwhile = null;
  vi.stubGlobal("fetch", async (request: Request) => {
    if (request.method !== "GET") {
      meanwhile?.();
      meanwhile = null;
      if (request.headers.get("If-Match") !== etag())
        return new Response(JSON.stringify({ reason: "ACCESS_CHANGED", detail: "changed" }), { status: 412 });
    }
    if (request.method === "PUT") {
      puts += 1;
      kept = { restricted: true, ...(await request.json()) };
    }
    if (request.method === "DELETE") kept = { restricted: false, subjects: [], groups: [] };
    return new Response(JSON.stringify(kept), { headers: { "Content-Type": "application/json", ETag: etag() } });
  });
});

test("two who change the list at once undo nothing of each other", async () => {
  kept = { restricted: true, subjects: ["anna"], groups: [] };
  meanwhile = () => kept.subjects.push("bob");
  const added = await changeAccess("d1", { kind: "subjects", name: "carol", isIn: true });
  expect(added.list.subjects).toEqual(["anna", "bob", "carol"]);
  meanwhile = () => kept.subjects.push("dora");
  const refusal = await openAccess("d1", added.etag).catch((error: unknown) => error);
  expect([wasChanged(refusal), kept.restricted, kept.subjects.length]).toEqual([true, true, 4]);
});

test("a change is made to the list as the server has it by then", async () => {
  kept = { restricted: true, subjects: ["anna"], groups: ["staff"] }; // bob was taken out after this page had read the list
  const added = await changeAccess("d1", { kind: "subjects", name: "carol", isIn: true });
  expect(added.list).toEqual({ restricted: true, subjects: ["anna", "carol"], groups: ["staff"] });
  await changeAccess("d1", { kind: "groups", name: "staff", isIn: false });
  expect(kept).toEqual({ restricted: true, subjects: ["anna", "carol"], groups: [] });
});

test("what somebody else has done already is not sent again, and a list that was taken away stays away", async () => {
  kept = { restricted: true, subjects: ["anna"], groups: [] };
  await changeAccess("d1", { kind: "subjects", name: "anna", isIn: true });
  await changeAccess("d1", { kind: "subjects", name: "bob", isIn: false });
  expect((await restrictAccess("d1")).list).toEqual(kept);
  kept = { restricted: false, subjects: [], groups: [] };
  expect((await changeAccess("d1", { kind: "subjects", name: "bob", isIn: false })).list).toEqual(kept);
  expect(puts).toBe(0);
  await restrictAccess("d1");
  expect([kept.restricted, puts]).toEqual([true, 1]);
});
