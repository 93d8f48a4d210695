// The conversations: searched by their titles and by what was said in them, renamed, deleted.

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useEffect, useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { api, dataOf } from "../../api/client";
import type { Thread } from "../../api/types";
import { ActionMenu, Button, Confirm, Dialog, Failure, Icon } from "../../parts";
import { TextField } from "../../parts/fields";

const PAGE = 60;
const FOUND = 20;
const ROLE = /^(User|Assistant): (.*)$/s;
const SEARCH_AFTER_MS = 300;

export function ConversationList() {
  const { t } = useTranslation();
  const [words, setWords] = useState("");
  const threads = useInfiniteQuery({
    queryKey: ["threads"],
    queryFn: ({ pageParam }) => dataOf(api.GET("/v1/threads", { params: { query: { page_size: PAGE, page_token: pageParam } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_page_token ?? undefined,
    refetchInterval: 30_000,
  });
  const all = threads.data?.pages.flatMap((page) => page.threads) ?? [];
  const lowered = words.trim().toLowerCase();
  const shown = all.filter((each) => each.message_count && each.title.toLowerCase().includes(lowered));
  return (
    <section className="conversations" aria-labelledby="conversations-title" data-testid="conversations">
      <h2 id="conversations-title">{t("conversations.title")}</h2>
      <label className="find">
        <Icon name="search" />
        <span className="visually-hidden">{t("conversations.find")}</span>
        <input
          type="search"
          value={words}
          onChange={(event) => setWords(event.target.value)}
          placeholder={t("conversations.find")}
          dir="auto"
          data-testid="find-conversation"
        />
      </label>
      <div className="conversation-scroll">
        <ul>
          {shown.map((thread) => (
            <Item key={thread.id} thread={thread} />
          ))}
        </ul>
        {threads.hasNextPage && !lowered && (
          <Button look="link" onPress={() => threads.fetchNextPage()}>
            {t("common.more")}
          </Button>
        )}
        {threads.isSuccess && !shown.length && <p className="hint">{lowered ? t("conversations.noTitle") : t("conversations.none")}</p>}
        {lowered.length > 2 && <FoundMessages words={words} />}
      </div>
    </section>
  );
}

function Item({ thread }: { thread: Thread }) {
  const { t } = useTranslation();
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const title = thread.title || t("conversations.untitled");
  const close = () => setDialog(null);
  return (
    <li className="conversation-item" data-testid="conversation-item">
      <Link to="/conversations/$threadId" params={{ threadId: thread.id }} title={title} dir="auto">
        {title}
      </Link>
      <ActionMenu
        label={t("conversations.actions", { title })}
        testId="conversation-actions"
        choices={[
          { id: "rename", label: t("common.rename"), icon: "edit", act: () => setDialog("rename") },
          { id: "delete", label: t("common.delete"), icon: "trash", isDanger: true, act: () => setDialog("delete") },
        ]}
      />
      {dialog === "rename" && <Rename thread={thread} onClose={close} />}
      {dialog === "delete" && <Delete thread={thread} onClose={close} />}
    </li>
  );
}

function Rename({ thread, onClose }: { thread: Thread; onClose: () => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [title, setTitle] = useState(thread.title);
  const [problem, setProblem] = useState("");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await api.PATCH("/v1/threads/{thread_id}", { params: { path: { thread_id: thread.id } }, body: { title } });
      await queries.invalidateQueries({ queryKey: ["threads"] });
      queries.invalidateQueries({ queryKey: ["thread", thread.id] });
      onClose();
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  return (
    <Dialog title={t("conversations.rename")} isOpen onClose={onClose} className="small">
      <form onSubmit={submit} className="stack">
        <TextField label={t("conversations.newTitle")} value={title} onChange={setTitle} maxLength={200} autoFocus testId="title-input" />
        <Failure>{problem}</Failure>
        <div className="actions">
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" type="submit" isDisabled={!title.trim()}>
            {t("common.save")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function Delete({ thread, onClose }: { thread: Thread; onClose: () => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { threadId: shown } = useParams({ strict: false });
  const [isForgotten, setForgotten] = useState(false);
  const remove = async () => {
    await api.DELETE("/v1/threads/{thread_id}", { params: { path: { thread_id: thread.id }, query: { forget: isForgotten } } });
    if (shown === thread.id) navigate({ to: "/" });
    await queries.invalidateQueries({ queryKey: ["threads"] });
  };
  return (
    <Confirm title={t("conversations.delete")} action={t("common.delete")} isOpen onClose={onClose} onConfirm={remove}>
      <p dir="auto">{thread.title || t("conversations.untitled")}</p>
      <p>{t("conversations.deleteHint")}</p>
      <label className="check">
        <input type="checkbox" checked={isForgotten} onChange={(event) => setForgotten(event.target.checked)} /> {t("conversations.forget")}
      </label>
    </Confirm>
  );
}

/** Messages that fit the words, of conversations of any title. */
function FoundMessages({ words }: { words: string }) {
  const { t } = useTranslation();
  const query = useLater(words.trim());
  const found = useQuery({
    queryKey: ["messages", query],
    queryFn: () => dataOf(api.POST("/v1/memory/search", { body: { query, source: "message", top_k: FOUND } })),
    enabled: query.length > 2,
    retry: false,
  });
  const said = (text: string) => {
    const [, role, words] = ROLE.exec(text) ?? [];
    return `${role ? `${t(role === "User" ? "conversations.you" : "conversations.answer")}: ` : ""}${(words ?? text).slice(0, 120)}`;
  };
  const hits = (found.data?.hits ?? []).filter((each) => each.thread_id);
  if (!hits.length) return null;
  return (
    <>
      <h3 className="hint">{t("conversations.inMessages")}</h3>
      <ul>
        {hits.map((hit) => (
          <li key={hit.message_id ?? hit.text} className="conversation-item found">
            <Link to="/conversations/$threadId" params={{ threadId: hit.thread_id ?? "" }} dir="auto">
              {said(hit.text)}
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

function useLater(value: string): string {
  const [later, setLater] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return later;
}
