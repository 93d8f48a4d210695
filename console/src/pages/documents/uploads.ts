// Files on their way to the server: a few at once, each with its progress, and what was not taken with its reason.

import { useSyncExternalStore } from "react";
import { Problem, lost } from "../../api/client";
import { keyHeaders } from "../../api/key";
import { putDocument } from "./feed";

const AT_ONCE = 3;
/** Files dropped together from which on they are an import, which keeps no single upload waiting. */
const BULK_FROM = 21;

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

// XMLHttpRequest, because fetch does not tell how much of a request has been sent.
function send({ id, file, name, collection, lane }: Upload): Promise<void> {
  return new Promise((resolve) => {
    const form = new FormData();
    form.append("lane", lane);
    form.append("file", file, name);
    const request = new XMLHttpRequest();
    request.open("POST", `/v1/collections/${encodeURIComponent(collection)}/documents`);
    for (const [header, value] of Object.entries(keyHeaders())) request.setRequestHeader(header, value);
    request.upload.addEventListener("progress", (event) => event.lengthComputable && change(id, { share: event.loaded / event.total }));
    request.addEventListener("error", () => {
      lost();
      change(id, { state: "failed", problem: "connection" });
    });
    request.addEventListener("load", () => {
      const body = parsed(request.responseText);
      if (request.status === 202) {
        change(id, { state: "taken", share: 1 });
        putDocument(body.document);
      } else change(id, { state: "failed", problem: new Problem(body, request.status).message });
    });
    request.addEventListener("loadend", () => resolve());
    request.send(form);
  });
}

// biome-ignore lint/suspicious/noExplicitAny: an answer that is not ours is told by its status
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
