// Files on their way to the server: a few at once, each with its progress, and what was not taken with its reason.

import { useSyncExternalStore } from "react";
import { Problem, lost } from "../../api/client";
import { askForKey, keyHeaders } from "../../api/key";
import { holdWhile } from "../../shell/unsaved";
import { putDocument } from "./feed";

const AT_ONCE = 3;
/** Files dropped together from which on they are an import, which keeps no single upload waiting. */
const BULK_FROM = 21;
const ATTEMPTS = 6;
const LONGEST_WAIT_S = 30;

/** A file with the path that it is uploaded under. */
export interface NamedFile {
  file: File;
  name: string;
}

export interface Upload extends NamedFile {
  id: number;
  collection: string;
  lane: "bulk" | "interactive";
  state: "waiting" | "sending" | "taken" | "failed";
  share: number;
  problem: string;
}

export interface Uploads {
  all: Upload[];
  pending: number;
  failed: Upload[];
  taken: number;
  sentBytes: number;
  totalBytes: number;
  beganAt: number;
}

const NONE: Uploads = { all: [], pending: 0, failed: [], taken: 0, sentBytes: 0, totalBytes: 0, beganAt: 0 };
const listeners = new Set<() => void>();
let uploads: Upload[] = [];
let beganAt = 0;
let view = NONE;
let isTelling = false;
let ids = 0;

/** Who leaves the page while files are on their way is asked first. */
window.addEventListener("beforeunload", (event) => uploads.some(isPending) && event.preventDefault());
holdWhile(() => uploads.some(isPending));

/** Sends these files into a collection. */
export function upload(files: NamedFile[], collection: string): void {
  const lane = files.length >= BULK_FROM ? "bulk" : "interactive";
  if (!uploads.some(isPending)) beganAt = Date.now();
  uploads = [
    ...uploads,
    ...files.map((each) => ({ ...each, id: ++ids, collection, lane, state: "waiting", share: 0, problem: "" }) satisfies Upload),
  ];
  tell();
  next();
}

/** Sends those that failed again. */
export function retryFailed(id?: number): void {
  uploads = uploads.map((each) =>
    each.state === "failed" && (!id || each.id === id) ? { ...each, state: "waiting", share: 0, problem: "" } : each,
  );
  beganAt = Date.now();
  tell();
  next();
}

/** Forgets what has ended. */
export function clearEnded(id?: number): void {
  uploads = uploads.filter((each) => isPending(each) || (id ? each.id !== id : false));
  tell();
}

export function useUploads(): Uploads {
  return useSyncExternalStore(
    (heard) => {
      listeners.add(heard);
      return () => listeners.delete(heard);
    },
    () => view,
  );
}

function isPending({ state }: Upload): boolean {
  return state === "waiting" || state === "sending";
}

function next(): void {
  for (;;) {
    const sending = uploads.filter((each) => each.state === "sending").length;
    const waiting = uploads.find((each) => each.state === "waiting");
    if (!waiting || sending >= AT_ONCE) return;
    change(waiting.id, { state: "sending" });
    send(waiting).finally(next);
  }
}

function change(id: number, by: Partial<Upload>): void {
  uploads = uploads.map((each) => (each.id === id ? { ...each, ...by } : each));
  tell();
}

/** Sends a file, again after a while where the server is away or busy: a file that it has already stays the same document. */
async function send(upload: Upload): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const shown = keyHeaders();
    const { status, body, waitS } = await post(upload);
    if (status === 202) {
      change(upload.id, { state: "taken", share: 1 });
      putDocument(body.document);
      return;
    }
    const problem = status ? new Problem(body, status) : undefined;
    if (problem?.isAboutKey && (await askForKey(shown, problem.message))) continue;
    const mayPass = problem ? problem.retryable && waitS <= LONGEST_WAIT_S : true;
    if (!mayPass || attempt >= ATTEMPTS) {
      change(upload.id, { state: "failed", problem: problem?.message ?? "connection" });
      return;
    }
    change(upload.id, { share: 0 });
    await new Promise((resolve) => setTimeout(resolve, 1000 * (waitS || Math.min(8, 2 ** (attempt - 1)))));
  }
}

interface Reply {
  /** 0: the connection was lost. */
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a proxy's answer has no type of ours, only a status
  body: any;
  /** How long the server asks to wait. */
  waitS: number;
}

// XMLHttpRequest, because fetch does not tell how much of a request has been sent.
function post({ id, file, name, collection, lane }: Upload): Promise<Reply> {
  return new Promise((resolve) => {
    const form = new FormData();
    form.append("lane", lane);
    form.append("file", file, name);
    const request = new XMLHttpRequest();
    request.open("POST", `/v1/collections/${encodeURIComponent(collection)}/documents`);
    for (const [header, value] of Object.entries(keyHeaders())) request.setRequestHeader(header, value);
    request.upload.addEventListener("progress", (event) => event.lengthComputable && change(id, { share: event.loaded / event.total }));
    request.addEventListener("error", lost);
    request.addEventListener("loadend", () =>
      resolve({
        status: request.status,
        body: parsed(request.responseText),
        waitS: Number(request.getResponseHeader("Retry-After")) || 0,
      }),
    );
    request.send(form);
  });
}

// biome-ignore lint/suspicious/noExplicitAny: a proxy's answer has no type of ours, only a status
function parsed(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function tell(): void {
  if (isTelling) return;
  isTelling = true;
  requestAnimationFrame(() => {
    isTelling = false;
    view = {
      all: uploads,
      pending: uploads.filter(isPending).length,
      failed: uploads.filter((each) => each.state === "failed"),
      taken: uploads.filter((each) => each.state === "taken").length,
      sentBytes: uploads.reduce((sum, { file, share }) => sum + file.size * share, 0),
      totalBytes: uploads.reduce((sum, { file }) => sum + file.size, 0),
      beganAt,
    };
    for (const heard of listeners) heard();
  });
}
