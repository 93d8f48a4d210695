// The passage that is shown beside the answer, and the ones before and after it.

import { useSyncExternalStore } from "react";
import type { Citation, Evidence, Schemas } from "../api/types";
import type { FoldedRun } from "../run/fold";

/** A passage of a run's evidence: a citation by its number, or with `isEvidence` a found passage by its number. */
export interface Shown {
  number: number;
  run: Pick<FoldedRun, "citations" | "verification">;
  runId: string;
  evidence: Evidence[];
  dropped: Schemas["DroppedPassage"][];
  isEvidence?: boolean;
}

let shown: Shown | null = null;
const listeners = new Set<() => void>();

export function openPassage(next: Shown): void {
  set(next);
}

export function closePassage(): void {
  if (shown) set(null);
}

export function useShown(): Shown | null {
  return useSyncExternalStore(
    (heard) => {
      listeners.add(heard);
      return () => listeners.delete(heard);
    },
    () => shown,
  );
}

/** The passages that can be gone through, in order. */
export function passagesOf({ run, evidence, isEvidence }: Shown): Citation[] {
  return isEvidence || !run.citations.length ? evidence.map(asCitation) : run.citations;
}

/** The passage that is shown; undefined where its run no longer has it. */
export function passageOf(given: Shown): Citation | undefined {
  return passagesOf(given).find((each) => each.number === given.number);
}

/** Goes to the next or the previous passage, round about. */
export function goOn(given: Shown, by: 1 | -1): void {
  const all = passagesOf(given);
  const at = all.findIndex((each) => each.number === given.number);
  const next = all[(at + by + all.length) % all.length];
  if (next) set({ ...given, number: next.number });
}

function asCitation(evidence: Evidence): Citation {
  return { ...evidence, quote_start: 0, quote_end: 0 };
}

function set(next: Shown | null): void {
  shown = next;
  for (const heard of listeners) heard();
}
