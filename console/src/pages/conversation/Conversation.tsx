// One conversation: its turns, the running one live, and the box for the next question.

import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Problem, api, dataOf, download, save } from "../../api/client";
import { closePassage } from "../../passage/shown";
import { ActionMenu, Empty, Failure, Status } from "../../parts";
import { useKey } from "../../shell/keys";
import { askingNow, changeAsking, noteOf, sendQuestion } from "./asking";
import { Composer } from "./Composer";
import { markdownOf } from "./copying";
import { Turn } from "./Turn";
import { runIdOf, useTurns, type TurnData } from "./turns";

export function Conversation() {
  const { threadId } = useParams({ from: "/conversations/$threadId" });
  return <Thread key={threadId} threadId={threadId} />;
}

function Thread({ threadId }: { threadId: string }) {
  const { t, i18n } = useTranslation();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const { answer: linked } = useSearch({ from: "/conversations/$threadId" });
  const { thread, turns, isEmpty, redraw } = useTurns(threadId);
  const [note, setNote] = useState(() => noteOf(threadId));
  const [draft, setDraft] = useState<{ text: string; at: number }>();
  const [problem, setProblem] = useState("");
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => closePassage, []);
  const lastTurn = turns.at(-1);
  useGoOnAsBefore(lastTurn);
  const last = lastTurn?.store;
  const isBusy = Boolean(last && !last.state.isOver && last.state.run.status !== "waiting");
  const ask = async (text: string) => {
    const sent = await sendQuestion(text, runIdOf(threadId) ? "" : threadId, askingNow());
    setNote(sent.note);
    if (sent.threadId && sent.threadId !== threadId)
      await navigate({ to: "/conversations/$threadId", params: { threadId: sent.threadId } });
    redraw();
    queries.invalidateQueries({ queryKey: ["threads"] });
    requestAnimationFrame(() => end.current?.scrollIntoView({ block: "end" }));
  };
  const stop = async () => {
    setProblem("");
    try {
      if (last) await api.POST("/v1/runs/{run_id}/cancel", { params: { path: { run_id: last.runId } } });
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  const title = thread.data?.title || turns[0]?.question?.text || turns[0]?.store?.state.question || "";
  const exportWord = () => {
    setProblem("");
    const path = runIdOf(threadId)
      ? `/v1/runs/${runIdOf(threadId)}/report?format=docx`
      : `/v1/threads/${threadId}/export?format=docx&language=${i18n.language}`;
    download(path, `${fileStem(title)}.docx`).catch((error: Error) => setProblem(error.message));
  };
  useKey("stop", stop, isBusy);
  if (thread.error instanceof Problem && thread.error.status === 404 && !turns.length) {
    return (
      <Empty icon="chat" title={t("conversations.gone")}>
        <Link to="/">{t("shell.toStart")}</Link>
      </Empty>
    );
  }
  return (
    <div className="conversation">
      <header className="conversation-head">
        <h1 dir="auto">{title}</h1>
        <ActionMenu
          label={t("conversations.actions", { title })}
          choices={[
            {
              id: "link",
              label: t("conversations.copyLink"),
              icon: "link",
              act: () => navigator.clipboard.writeText(`${location.origin}/conversations/${threadId}`),
            },
            { id: "export", label: t("conversations.export"), icon: "download", act: () => exported(title, turns) },
            { id: "docx", label: t("conversations.exportDocx"), icon: "download", act: exportWord },
          ]}
        />
      </header>
      <div className="turns">
        {thread.error && turns.length === 0 && <Failure>{thread.error.message}</Failure>}
        {isEmpty && (
          <Empty icon="chat" title={t("conversations.empty")}>
            {t("conversations.emptyHint")}
          </Empty>
        )}
        {turns.map((turn, index) => (
          <Turn
            key={turn.key}
            data={turn}
            store={turn.store}
            threadId={runIdOf(threadId) ? "" : threadId}
            isLast={index === turns.length - 1}
            isLinked={linked === turn.runId}
            onEdit={(text) => setDraft({ text, at: Date.now() })}
            onAskAgain={(text, change) => {
              changeAsking(change);
              ask(text).catch((error: Error) => setProblem(error.message));
            }}
          />
        ))}
        {note && <Status className="notice">{t(`ask.${note}`)}</Status>}
        <Failure>{problem}</Failure>
        <div ref={end} className="turns-end" />
      </div>
      <div className="composer-place">
        <Composer onAsk={ask} isBusy={isBusy} onStop={stop} draft={draft} />
      </div>
    </div>
  );
}

/** The next question of a conversation that is opened again is asked as the last one was. */
function useGoOnAsBefore(turn: TurnData | undefined): void {
  const hasLooked = useRef(false);
  const runId = turn?.runId;
  useEffect(() => {
    if (!runId || hasLooked.current) return;
    hasLooked.current = true;
    if (turn.store?.state.question && !turn.store.state.isOver) return; // it was asked here, just now
    dataOf(api.GET("/v1/runs/{run_id}", { params: { path: { run_id: runId } } }))
      .then(({ mode, collection_ids: [collection] }) => {
        const way = mode === "chat" ? "chat" : mode === "agent" ? "research" : "documents";
        changeAsking({ way, ...(collection ? { collection } : {}) });
      })
      .catch(() => {}); // then it is asked as the last question anywhere was
  }, [runId, turn]);
}

function exported(title: string, turns: TurnData[]): void {
  const text = turns.map((turn) => markdownOf(turn)).join("\n\n---\n\n");
  save(new Blob([`# ${title}\n\n${text}\n`], { type: "text/markdown" }), `${fileStem(title)}.md`);
}

/** The name of a file that a conversation is saved as, without its ending. */
function fileStem(title: string): string {
  const words = title.slice(0, 60).replaceAll(/[^\p{L}\p{N} -]/gu, "");
  return words.trim() || "conversation";
}
