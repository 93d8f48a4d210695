// The runs that this page follows. A run stays in here when its conversation is left, so that coming back shows it as it is by then.

import { useSyncExternalStore } from "react";
import type { RunEvent } from "../api/types";
import { followRun } from "../api/sse";
import { NEW_VIEW, addEvent, type RunView } from "./trace";

/** A followed run: its view, and how following it goes. */
export interface Followed extends RunView {
  question: string;
  isLost: boolean;
  problem: string;
  isOver: boolean;
}

/** Follows one run and tells listeners of each change, at most once a frame. */
export class RunStore {
  #state: Followed;
  #listeners = new Set<() => void>();
  #drawing = 0;
  #leaving = new AbortController();
  runId = "";
  threadId = "";
  /** Resolves with the run's id once the server has it; rejects where it refuses the question. */
  readonly began: Promise<string>;

  constructor(given: {
    question: string;
    start?: (signal: AbortSignal) => Promise<Response>;
    runId?: string;
    onEvent?: (event: RunEvent) => void;
  }) {
    this.#state = { ...NEW_VIEW, question: given.question, isLost: false, problem: "", isOver: false };
    this.runId = given.runId ?? "";
    this.began = new Promise((resolve, reject) => {
      this.#follow(given, resolve, reject);
    });
    this.began.catch(() => {}); // who waits for it hears of it; the view has its words
  }

  get state(): Followed {
    return this.#state;
  }

  subscribe = (heard: () => void): (() => void) => {
    this.#listeners.add(heard);
    return () => this.#listeners.delete(heard);
  };

  async #follow(
    { start, runId, onEvent }: { start?: (signal: AbortSignal) => Promise<Response>; runId?: string; onEvent?: (event: RunEvent) => void },
    resolve: (runId: string) => void,
    reject: (error: unknown) => void,
  ): Promise<void> {
    try {
      await followRun({
        start,
        runId,
        signal: this.#leaving.signal,
        onRun: (id) => {
          this.runId = id;
          runs.set(id, this);
          resolve(id);
        },
        onEvent: (read) => {
          const event = read as unknown as RunEvent;
          this.#set(addEvent(this.#state, event), event.event !== "token");
          onEvent?.(event);
        },
        onTrouble: (isLost) => this.#set({ isLost }),
      });
    } catch (error) {
      this.#set({ problem: (error as Error).message });
      reject(error);
    }
    this.#set({ isOver: true, isLost: false });
  }

  #set(change: Partial<Followed>, now = true): void {
    this.#state = { ...this.#state, ...change };
    if (now) this.#tell();
    else this.#drawing ||= requestAnimationFrame(() => this.#tell());
  }

  #tell(): void {
    cancelAnimationFrame(this.#drawing);
    this.#drawing = 0;
    for (const heard of this.#listeners) heard();
  }
}

const runs = new Map<string, RunStore>();

/** Follows a run that is known by its id; the same store for the same run. */
export function attachRun(runId: string, question = ""): RunStore {
  const known = runs.get(runId);
  if (known) return known;
  const store = new RunStore({ question, runId });
  runs.set(runId, store);
  return store;
}

/** The store of a run that is followed already. */
export function knownRun(runId: string): RunStore | undefined {
  return runs.get(runId);
}

/** The runs of a thread that are followed. */
export function runsOf(threadId: string): RunStore[] {
  return [...runs.values()].filter((each) => (each.state.run.thread_id ?? each.threadId) === threadId);
}

const NONE: Followed = { ...NEW_VIEW, question: "", isLost: false, problem: "", isOver: true };
const nothing = () => () => {};

/** A followed run as it is now; an empty one without a store. */
export function useRun(store: RunStore | undefined): Followed {
  return useSyncExternalStore(store?.subscribe ?? nothing, () => store?.state ?? NONE);
}
