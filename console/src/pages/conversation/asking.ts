// Asking: what a question is asked of and how, and sending it on the thread of its conversation.

import { useSyncExternalStore } from "react";
import { Problem, api, call, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { RunStore } from "../../run/store";

export type Way = "documents" | "research" | "chat";
export type Effort = "auto" | "low" | "medium" | "high";

/** How the next question is asked. */
export interface Asking {
  way: Way;
  /** Empty until one is chosen or found to be meant. */
  collection: string;
  agent: string;
  effort: Effort;
  isReport: boolean;
  /** Names of the tools that may be used; null: all. */
  tools: string[] | null;
  model: Schemas["BroughtModel"] | null;
}

const STORED = "groundwork.asking";
const DEFAULT: Asking = {
  way: "documents",
  collection: "",
  agent: "auto",
  effort: "auto",
  isReport: false,
  tools: null,
  model: null,
};
const listeners = new Set<() => void>();
let current: Asking = stored();

function stored(): Asking {
  try {
    return { ...DEFAULT, ...JSON.parse(sessionStorage.getItem(STORED) ?? "{}") };
  } catch {
    return DEFAULT;
  }
}

export function useAsking(): Asking {
  return useSyncExternalStore(
    (heard) => {
      listeners.add(heard);
      return () => listeners.delete(heard);
    },
    () => current,
  );
}

/** Asks so from now on, until the tab is closed. */
export function changeAsking(change: Partial<Asking>): void {
  current = { ...current, ...change };
  sessionStorage.setItem(STORED, JSON.stringify(current));
  for (const heard of listeners) heard();
}

export function askingNow(): Asking {
  return current;
}

/** What was not understood or will not be, of a question that was sent: keys of texts. */
export type SendNote = "forgotten" | "forgetful";

export interface Sent {
  store: RunStore;
  /** Empty where conversations cannot be kept at the moment. */
  threadId: string;
  note?: SendNote;
}

const notes = new Map<string, SendNote>();

/** What was said of the question with which that conversation began, for its page. */
export function noteOf(threadId: string): SendNote | undefined {
  return notes.get(threadId);
}

/**
 * Sends a question on a thread, and makes one where there is none or where it is gone. Without its service a conversation begins
 * without a thread. Throws what the server says of a question that it refuses; a thread that was made for it is removed then.
 */
export async function sendQuestion(text: string, threadId: string, asking: Asking): Promise<Sent> {
  if (threadId) {
    try {
      return { threadId, store: await begin(text, threadId, asking) };
    } catch (error) {
      if (!(error instanceof Problem) || error.reason !== "THREAD_NOT_FOUND") throw error;
    }
  }
  const made = await makeThread();
  try {
    const store = await begin(text, made, asking);
    if (threadId && made) notes.set(made, "forgotten");
    return { threadId: made, store, note: threadId ? "forgotten" : made ? undefined : "forgetful" };
  } catch (error) {
    if (made) api.DELETE("/v1/threads/{thread_id}", { params: { path: { thread_id: made } } }).catch(() => {});
    throw error;
  }
}

async function makeThread(): Promise<string> {
  try {
    return (await dataOf(api.POST("/v1/threads", { body: { title: "" } }))).id;
  } catch (error) {
    if (!(error instanceof Problem && error.retryable && error.status >= 500)) throw error;
    return "";
  }
}

async function begin(text: string, threadId: string, asking: Asking): Promise<RunStore> {
  const { path, body } = requestOf(text, threadId, asking);
  const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
  const start = (signal: AbortSignal) => call(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  const store = new RunStore({ question: text, start });
  store.threadId = threadId;
  await store.began;
  return store;
}

function requestOf(
  text: string,
  threadId: string,
  { way, collection, agent, effort, isReport, tools, model }: Asking,
): { path: string; body: object } {
  const thread = { thread_id: threadId || null, ...(model ? { model } : {}) };
  if (way === "chat") return { path: "/v1/chat", body: { message: text, ...thread, ...(tools ? { tools } : {}) } };
  if (way === "research") {
    const answer = isReport ? "report" : "short";
    return { path: "/v1/agent", body: { question: text, collection_ids: [collection || "default"], effort, answer, ...thread } };
  }
  const path = `/v1/collections/${encodeURIComponent(collection || "default")}/chat`;
  return { path, body: { message: text, ...(agent === "auto" ? {} : { agent }), ...thread } };
}
