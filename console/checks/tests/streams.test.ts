import { afterEach, beforeEach, expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://localhost", assign: () => {} });
vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => {}, removeItem: () => {}, clear: () => {} });
const { EventParser, followRun } = await import("../../src/api/sse");

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

test("events are parsed whatever pieces they come in", () => {
  const run = ': hi\n\nid: 1\nevent: run\ndata: {"a":1}\n\n';
  const stream = `${run}event: error\r\ndata: x\r\ndata: y\u2028\u2029\u0085\r\n\r\nid: 2\rdata:z\r\r\n`;
  const expected = [
    { event: "run", data: '{"a":1}', id: "1" },
    { event: "error", data: "x\ny\u2028\u2029\u0085", id: undefined },
    { event: "message", data: "z", id: "2" },
  ];
  for (let cut = 1; cut <= stream.length; cut += 1) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < stream.length; at += cut) events.push(...parser.push(stream.slice(at, at + cut)));
    expect(events, `cut every ${cut}`).toEqual(expected);
  }
});

test("a dropped run is read on after the last event, exactly once", async () => {
  const text = (seqs: number[]) => seqs.map((n) => `id: ${n}\nevent: ${n === 4 ? "done" : "token"}\ndata: {}\n\n`).join("");
  const answer = (body: string) => new Response(body, { headers: { "X-Run-Id": "r1" } });
  const asked: [string, string | null][] = [];
  vi.stubGlobal("fetch", async (path: string, options: RequestInit) => {
    asked.push([path, new Headers(options.headers).get("Last-Event-ID")]);
    if (asked.length === 1) throw new TypeError("network");
    return answer(text([2, 3, 4]));
  });
  const seen: (string | undefined)[] = [];
  const lost: boolean[] = [];
  const following = followRun({
    start: async () => answer(text([1, 2])),
    signal: new AbortController().signal,
    onRun: () => {},
    onEvent: ({ id }) => seen.push(id),
    onTrouble: (isLost) => isLost && lost.push(isLost),
  });
  await vi.runAllTimersAsync();
  await vi.advanceTimersByTimeAsync(20_000);
  await following;
  expect(seen).toEqual(["1", "2", "3", "4"]);
  expect(asked).toEqual(Array(2).fill(["/v1/runs/r1/events?after=2", "2"]));
  expect(lost).toHaveLength(2);
});

test("a refused request is repeated with another key, and given up without", async () => {
  const { Problem, call } = await import("../../src/api/client");
  const { pendingQuestion } = await import("../../src/api/key");
  const kept = new Map<string, string>();
  vi.stubGlobal("sessionStorage", {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => kept.set(name, value),
    removeItem: (name: string) => kept.delete(name),
  });
  const problem = (status: number, reason: string) => new Response(JSON.stringify({ reason, detail: reason }), { status });
  const shown: (string | null)[][] = [];
  vi.stubGlobal("fetch", async (_: string, { method, headers }: RequestInit) => {
    const given = new Headers(headers);
    shown.push([method ?? "", given.get("Accept"), given.get("Authorization")]);
    return given.get("Authorization") === "Bearer right" ? new Response("done") : problem(401, "API_KEY_INVALID");
  });
  const answer = call("/v1/qa", { method: "POST", headers: { Accept: "x" } });
  const refusals: string[] = [];
  for (const key of ["wrong", "right"]) {
    const question = await vi.waitUntil(() => pendingQuestion());
    refusals.push(question.refusal);
    question.answer(key);
  }
  expect(await (await answer).text()).toBe("done");
  expect(shown).toEqual([
    ["POST", "x", null],
    ["POST", "x", "Bearer wrong"],
    ["POST", "x", "Bearer right"],
  ]);
  expect(refusals).toEqual(["", "API_KEY_INVALID"]);
  vi.stubGlobal("fetch", async () => problem(403, "SCOPE_MISSING"));
  await expect(call("/v1/qa")).rejects.toMatchObject({ reason: "SCOPE_MISSING" });
  await expect(call("/v1/qa")).rejects.toBeInstanceOf(Problem);
  expect(pendingQuestion()).toBeNull();
});
