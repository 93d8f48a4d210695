// Server-sent events over fetch. EventSource cannot POST, and stops for good at the first answer that is not 200.

/** Takes an event stream's text in any pieces and gives its events: {event, data, id}. WHATWG HTML, section 9.2.6. */
export class EventParser {
  #rest = "";
  #event = "";
  #data = [];
  #id;

  push(text) {
    const events = [];
    this.#rest += text;
    // A "\r" at the very end may be half of "\r\n": it waits for what follows.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) this.#line(line, events);
    return events;
  }

  #line(line, events) {
    if (line === "") {
      if (this.#data.length) events.push({ event: this.#event || "message", data: this.#data.join("\n"), id: this.#id });
      this.#event = "";
      this.#data = [];
      this.#id = undefined;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment keeps the connection alive
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id") this.#id = value;
  }
}

/** What the server refused, as it explains it (application/problem+json). */
export class Problem extends Error {
  constructor(body, status) {
    super(body.detail || `The server answered ${status}.`);
    this.status = status;
    this.reason = body.reason || "";
    this.retryable = Boolean(body.retryable);
    this.traceId = body.trace_id || "";
    this.isAboutKey = status === 401 || this.reason === "TOO_MANY_WRONG_API_KEYS";
  }

  static async of(response) {
    const body = await response.json().catch(() => ({}));
    return new Problem(body, response.status);
  }
}

/** Nobody answers at the server's address. */
export class Away extends Error {
  constructor() {
    super("The server does not answer.");
  }
}

/** Tells that the server was lost in the middle of something. */
export let lost = () => {};

/** Has `heard` called whenever the server is lost. */
export function whenLost(heard) {
  lost = heard;
}

let keys = { headers: () => ({}), another: () => false };

/** Has every request show a key: `headers()` has it, `another(shown, problem)` says whether there is another after a refusal. */
export function useKeys(given) {
  keys = given;
}

/** fetch that throws a Problem unless the answer is a success. Repeated with another key when the one that it showed is refused. */
export async function call(path, options = {}) {
  for (;;) {
    const shown = keys.headers();
    const response = await reached(path, { ...options, headers: { ...options.headers, ...shown } });
    if (response.ok) return response;
    const problem = await Problem.of(response);
    if (!problem.isAboutKey || !(await keys.another(shown, problem))) throw problem;
  }
}

async function reached(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    lost();
    throw new Away();
  }
}

/** The events of one answer, data parsed, as they arrive. */
export async function* readEvents(response) {
  const parser = new EventParser();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (const event of parser.push(value)) yield { ...event, data: JSON.parse(event.data) };
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const ATTEMPTS = 12;
const SOUND_MS = 60000; // a stream that lived that long was sound, although its run, which waits for a person, said nothing

/**
 * Follows a run to its last event across dropped connections: `start` opens the first stream (null: attach at once), every
 * later one reads on after the last event seen. Each event is handed to `onEvent` once, in order. `signal` ends it, not the run.
 */
export async function followRun({ start, runId = "", onEvent, onRun = () => {}, onTrouble = () => {}, signal }) {
  let last = 0;
  let failures = 0;
  let open = start || (() => attach(runId, last, signal));
  for (;;) {
    const opened = Date.now();
    try {
      const response = await open();
      if (response.status === 204) return;
      runId = response.headers.get("X-Run-Id") || runId;
      onRun(runId);
      for await (const event of readEvents(response)) {
        if (event.id === undefined) continue; // the gateway's own word that it lost the stream: reading on is what helps
        const seq = Number(event.id);
        if (seq <= last) continue;
        last = seq;
        failures = 0;
        onTrouble(false);
        onEvent(event);
        if (event.event === "done") return;
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!runId || (error instanceof Problem && !error.retryable)) throw error;
      lost();
    }
    if (!runId) throw new Error("The connection was lost before the answer began. Ask again.");
    if (Date.now() - opened > SOUND_MS) failures = 0;
    failures += 1;
    if (failures > ATTEMPTS) throw new Error("The connection is lost. The answer may still be in the making: reload this page.");
    onTrouble(true);
    await pause(Math.min(5000, 250 * 2 ** failures));
    if (signal?.aborted) return;
    open = () => attach(runId, last, signal);
  }
}

function attach(runId, after, signal) {
  const headers = { Accept: "text/event-stream", "Last-Event-ID": String(after) };
  return call(`/v1/runs/${encodeURIComponent(runId)}/events?after=${after}`, { headers, signal });
}

/** Follows a stream without end, opening it again whenever it ends. */
export async function followForever(path, onEvent, onConnected = () => {}) {
  for (let failures = 0; ; failures += 1) {
    try {
      const response = await call(path, { headers: { Accept: "text/event-stream" } });
      onConnected(true);
      for await (const event of readEvents(response)) {
        failures = 0;
        onEvent(event);
      }
    } catch {
      // whatever it was, the next attempt will tell
    }
    lost();
    onConnected(false);
    await pause(Math.min(5000, 300 * 2 ** Math.min(failures, 6)));
  }
}
