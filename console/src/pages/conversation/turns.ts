// The turns of a conversation: its questions with their answers, from its messages and from the runs that are followed.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useReducer } from "react";
import { api, dataOf } from "../../api/client";
import type { Message } from "../../api/types";
import { NEW_RUN, type FoldedRun } from "../../run/fold";
import { attachRun, knownRun, runsOf, type RunStore } from "../../run/store";

const SHOWN = 200;
const GOING_ON = new Set(["queued", "running", "waiting"]);
const RUNS_LOOKED_AT = 50;

export interface TurnData {
  key: string;
  runId: string;
  question: Message | null;
  answer: Message | null;
  store: RunStore | undefined;
}

/** The path of a run without a thread has its id in the place of the thread's. */
export function runIdOf(threadId: string): string {
  return threadId.startsWith("run-") ? threadId.slice(4) : "";
}

export function useTurns(threadId: string) {
  const queries = useQueryClient();
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const lone = runIdOf(threadId);
  const thread = useQuery({
    queryKey: ["thread", threadId],
    queryFn: () => dataOf(api.GET("/v1/threads/{thread_id}", { params: { path: { thread_id: threadId }, query: { limit: SHOWN } } })),
    enabled: !lone,
  });
  const running = useQuery({
    queryKey: ["running", threadId],
    queryFn: async () => {
      const { runs } = await dataOf(api.GET("/v1/runs", { params: { query: { page_size: RUNS_LOOKED_AT } } }));
      return runs.filter((each) => each.thread_id === threadId && GOING_ON.has(each.status ?? ""));
    },
    enabled: !lone,
    refetchOnWindowFocus: true,
    staleTime: 0,
  });
  useEffect(() => {
    if (lone) attachRun(lone);
    for (const run of running.data ?? []) attachRun(run.id, run.question).threadId = threadId;
    redraw();
  }, [running.data, threadId, lone]);
  const messages = thread.data?.messages;
  const alone = lone ? knownRun(lone) : undefined;
  const stores = lone ? (alone ? [alone] : []) : runsOf(threadId);
  const turns = withStores(
    useMemo(() => turnsOf(messages ?? []), [messages]),
    stores,
  );
  // Once a run has ended its thread keeps it.
  const ended = stores.filter((each) => each.state.isOver).length;
  useEffect(() => {
    if (lone) return;
    queries.invalidateQueries({ queryKey: ["thread", threadId] });
    queries.invalidateQueries({ queryKey: ["threads"] });
  }, [ended, threadId]);
  const last = turns.at(-1)?.store;
  useEffect(() => last?.subscribe(redraw), [last]);
  const isEmpty = thread.isSuccess && running.data?.length === 0 && turns.length === 0;
  return { thread, turns, isEmpty, redraw };
}

function turnsOf(messages: Message[]): TurnData[] {
  const turns: TurnData[] = [];
  for (const message of messages) {
    const runId = message.run_id ?? "";
    const isQuestion = message.role === "user";
    const last = turns.at(-1);
    if (last && !isQuestion && !last.answer && (last.runId === runId || !runId)) last.answer = message;
    else {
      turns.push({
        key: runId || message.id || String(turns.length),
        runId,
        question: isQuestion ? message : null,
        answer: isQuestion ? null : message,
        store: undefined,
      });
    }
  }
  return turns;
}

function withStores(turns: TurnData[], stores: RunStore[]): TurnData[] {
  const byRun = new Map(stores.map((each) => [each.runId, each]));
  const known = turns.map((turn) => {
    const store = byRun.get(turn.runId);
    byRun.delete(turn.runId);
    return { ...turn, store };
  });
  const others = [...byRun.values()].map((store) => ({ key: store.runId, runId: store.runId, question: null, answer: null, store }));
  return [...known, ...others];
}

/** What a message tells of its run, in the form of the fold. */
export function runOfMessage(message: Message | null, threadId: string): FoldedRun {
  if (!message) return NEW_RUN;
  return {
    ...NEW_RUN,
    run_id: message.run_id ?? "",
    thread_id: threadId,
    status: message.run_status ?? "completed",
    answer: message.text,
    method: message.method ?? "",
    support_status: message.support_status,
    answer_status: message.answer_status ?? null,
    answer_confidence: message.answer_confidence ?? null,
    citations: message.citations,
    verification: (message.verification as FoldedRun["verification"]) ?? null,
    artefacts: message.artefacts ?? [],
  };
}
