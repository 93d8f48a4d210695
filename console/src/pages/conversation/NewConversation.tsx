// The first page: a question to begin with, samples where there is nothing yet, and questions that they answer.

import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { RunStore } from "../../run/store";
import { Status } from "../../parts";
import { Later } from "../../shell/Later";
import { holdWhile } from "../../shell/unsaved";
import { askingNow, sendQuestion, useAsking } from "./asking";
import { Composer } from "./Composer";
import { Samples } from "./Samples";

const Turn = lazy(async () => ({ default: (await import("./Turn")).Turn }));

export function NewConversation() {
  const { t } = useTranslation();
  const { way } = useAsking();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const { question } = useSearch({ from: "/" });
  const [draft] = useState(question ? { text: question, at: 0 } : undefined);
  /** Runs without a thread: where conversations cannot be kept at the moment. */
  const [unkept, setUnkept] = useState<RunStore[]>([]);
  const isUnkept = unkept.length > 0;
  useEffect(() => holdWhile(() => isUnkept), [isUnkept]);
  const ask = async (text: string) => {
    const { store, threadId } = await sendQuestion(text, "", askingNow());
    queries.invalidateQueries({ queryKey: ["threads"] });
    if (threadId) await navigate({ to: "/conversations/$threadId", params: { threadId } });
    else setUnkept((before) => [...before, store]);
  };
  return (
    <div className="column new-conversation">
      {!isUnkept && (
        <header className="welcome">
          <h1>{t(`ask.title_${way}`)}</h1>
          <p className="lead">{t(`ask.about_${way}`)}</p>
        </header>
      )}
      {unkept.map((store) => (
        <Later key={store.runId}>
          <Turn store={store} isLast />
        </Later>
      ))}
      {isUnkept && <Status className="notice">{t("ask.forgetful")}</Status>}
      <Composer onAsk={ask} isBusy={false} draft={draft} isFirst />
      <Samples onAsk={ask} />
    </div>
  );
}
