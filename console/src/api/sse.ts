// Server-sent events over fetch. EventSource cannot POST, and stops for good at the first answer that is not 200.

import i18next from "i18next";
import { Problem, call, lost } from "./client";

export interface ServerEvent {
  event: string;
  data: string;
  id: string | undefined;
}

/** Takes an event stream's text in any pieces and gives its events. WHATWG HTML, section 9.2.6. */
export class EventParser {
  #rest = "";
  #event = "";
  #data: string[] = [];
  #id: string | undefined;

  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    this.#rest += text;
    // A "\r" at the very end may be half of "\r\n": it waits for what follows.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#line(line, events);
    return events;
  }

  #line(line: string, events: ServerEvent[]): void {
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

export interface ReadEvent {
  event: string;
  data: unknown;
  id: string | undefined;
}

/** The events of one answer, data parsed, as they arrive. */
export async function* readEvents(response: Response): AsyncGenerator<ReadEvent> {
  if (!response.body) return;
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

const ATTEMPTS = 12;
const SOUND_MS = 60_000; // a stream that lived that long was sound, although its run, which waits for a person, said nothing

export interface RunFollowing {
  /** Opens the first stream; without it the run that is known is attached to at once. */
  start?: (signal: AbortSignal) => Promise<Response>;
  runId?: string;
  signal: AbortSignal;
  onRun: (runId: string) => void;
  onEvent: (event: ReadEvent) => void;
  onTrouble: (lost: boolean) => void;
}

/**
 * Follows a run to its last event across dropped connections: each stream after the first reads on after the last event that was
 * seen. Each event is handed on once, in order. `signal` ends it, not the run.
 */
export async function followRun({ start, runId = "", signal, onRun, onEvent, onTrouble }: RunFollowing): Promise<void> {
  let last = 0;
  let failures = 0;
  let open = start ? () => start(signal) : () => attach(runId, last, signal);
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
      if (signal.aborted) return;
      if (!runId || (error instanceof Problem && !error.retryable)) throw error;
      lost();
    }
    if (!runId) throw new Error(i18next.t("problem.lostEarly"));
    if (Date.now() - opened > SOUND_MS) failures = 0;
    failures += 1;
    if (failures > ATTEMPTS) throw new Error(i18next.t("problem.lost"));
    onTrouble(true);
    await pause(Math.min(5000, 250 * 2 ** failures));
    if (signal.aborted) return;
    open = () => attach(runId, last, signal);
  }
}

function attach(runId: string, after: number, signal: AbortSignal): Promise<Response> {
  const headers = { Accept: "text/event-stream", "Last-Event-ID": String(after) };
  return call(`/v1/runs/${encodeURIComponent(runId)}/events?after=${after}`, { headers, signal });
}

/** Follows a stream without end, opening it again whenever it ends. */
export async function followForever(path: string, onEvent: (event: ReadEvent) => void): Promise<never> {
  for (let failures = 0; ; failures += 1) {
    try {
      const response = await call(path, { headers: { Accept: "text/event-stream" } });
      for await (const event of readEvents(response)) {
        failures = 0;
        onEvent(event);
      }
    } catch {
      // whatever it was, the next attempt will tell
    }
    lost();
    await pause(Math.min(5000, 300 * 2 ** Math.min(failures, 6)));
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
