// All documents as the server knows them, followed from its event stream: the present states first, then every change.

import { useEffect, useSyncExternalStore } from "react";
import { followForever, type ReadEvent } from "../../api/sse";
import type { Document } from "../../api/types";

interface Feed {
  documents: Document[];
  /** Whether everything that there was at the beginning has come. */
  isComplete: boolean;
}

const known = new Map<string, Document>();
const leaving = new Set<string>();
const listeners = new Set<() => void>();
let snapshot: Set<string> | null = null;
let feed: Feed = { documents: [], isComplete: false };
let isTelling = false;
let isStarted = false;

/** Follows the documents from now on. */
export function useDocumentFeed(): void {
  useEffect(() => {
    if (isStarted) return;
    isStarted = true;
    followForever("/v1/events", take);
  }, []);
}

export function useDocuments(): Feed {
  return useSyncExternalStore(
    (heard) => {
      listeners.add(heard);
      return () => listeners.delete(heard);
    },
    () => feed,
  );
}

/** Takes a document that an answer told of, if nothing newer is known. */
export function putDocument(document: Document): void {
  snapshot?.add(document.id); // it may be newer than the states that are still coming
  put(document);
  tell();
}

/** Keeps the row of a document until its deletion is answered: the event comes earlier than no search finds it any more. */
export async function whileLeaving(id: string, remove: () => Promise<unknown>): Promise<void> {
  leaving.add(id);
  try {
    await remove();
    known.delete(id);
  } finally {
    leaving.delete(id);
    tell();
  }
}

function take({ event, data }: ReadEvent): void {
  if (event === "snapshot_begin") snapshot = new Set();
  else if (event === "snapshot_complete") {
    if (snapshot) for (const id of known.keys()) if (!snapshot.has(id)) known.delete(id);
    snapshot = null;
    feed = { ...feed, isComplete: true };
  } else if (event === "document") {
    snapshot?.add((data as Document).id);
    put(data as Document);
  }
  tell();
}

function put(document: Document): void {
  if (document.status === "deleted") {
    if (!leaving.has(document.id)) known.delete(document.id);
    return;
  }
  const before = known.get(document.id);
  if (!before || (before.updated_at ?? "") <= (document.updated_at ?? "")) known.set(document.id, document);
}

/** Many events come in one go; one drawing a frame is enough. */
function tell(): void {
  if (isTelling) return;
  isTelling = true;
  requestAnimationFrame(() => {
    isTelling = false;
    const documents = [...known.values()].sort((one, other) => ((one.created_at ?? "") < (other.created_at ?? "") ? 1 : -1));
    feed = { ...feed, documents };
    for (const heard of listeners) heard();
  });
}
