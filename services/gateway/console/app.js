// The page: asks, follows, stops.

import { AnswerView } from "./answer.js";
import { startApprovals } from "./approvals.js";
import { collection, noticeCollection, isShown, showCollections, startCollections } from "./collections.js";
import { send, showEarlier, useThread } from "./conversation.js";
import { redrawDocuments, startLibrary } from "./documents.js";
import { byId, setText } from "./dom.js";
import { startKeys } from "./key.js";
import { offerSamples, startSamples } from "./samples.js";
import { call, followRun } from "./sse.js";
import { startSystem } from "./system.js";

const RUN_KEY = "groundwork.run";
const MODE_KEY = "groundwork.mode";
const THEME_KEY = "groundwork.theme";

const form = byId("ask");
const question = byId("question");
const stop = byId("stop");
let current = null; // the run in the card, while it goes on

const isChat = () => byId("mode-chat").checked;

/** Shows a run in the card: a new one that `start` begins, or the one that is known. The run before is left; it goes on. */
async function follow(view, start, known = "") {
  current?.leaving.abort();
  const mine = { view, leaving: new AbortController(), runId: known };
  current = mine;
  byId("ask-button").disabled = true;
  stop.hidden = false;
  stop.disabled = !known;
  const { signal } = mine.leaving;
  try {
    await followRun({
      start: start && (() => start(signal)),
      runId: known,
      signal,
      onRun: (id) => {
        mine.runId = id;
        if (current !== mine) return;
        stop.disabled = false;
        sessionStorage.setItem(RUN_KEY, id); // a reload of the page reads on
      },
      onEvent: (event) => current === mine && take(mine, event),
      onTrouble: (lost) => lost && current === mine && view.say("The connection was lost; reading on …"),
    });
    if (current === mine) view.end(byId("progress").textContent);
  } catch (error) {
    if (current === mine) view.fail(error.message);
  }
  if (current !== mine) return;
  current = null;
  sessionStorage.removeItem(RUN_KEY);
  stop.hidden = true;
  byId("ask-button").disabled = false;
}

function take({ view, runId }, event) {
  if (event.event === "run" && event.data.mode === "chat") {
    choose("chat");
    useThread(event.data.thread_id);
    showEarlier(runId);
  }
  view.take(event);
  byId("ask-button").disabled = !view.isWaiting;
}

function ask() {
  const text = question.value.trim();
  if (!text || (current && !current.view.isWaiting)) {
    question.focus();
    return;
  }
  if (isChat()) {
    question.value = "";
    follow(new AnswerView(text), (signal) => send(text, signal));
    return;
  }
  const body = JSON.stringify({ question: text, collection_ids: [collection()] });
  const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
  follow(new AnswerView(text), (signal) => call("/v1/qa", { method: "POST", headers, body, signal }));
}

const HEADS = {
  documents: ["Ask your documents", "Every sentence of the answer carries its source. When the documents do not say, so will the answer."],
  chat: ["Chat with all tools", "Each step is shown as it comes, and what would change something outside is asked about first."],
};

/** Documents or all tools; remembered until the tab is closed. */
function choose(mode) {
  sessionStorage.setItem(MODE_KEY, mode);
  const [title, lead] = HEADS[mode];
  setText(byId("ask-title"), title);
  setText(byId("lead"), lead);
  byId(mode === "chat" ? "mode-chat" : "mode-documents").checked = true;
  showCollections(!isChat());
  if (!isChat()) byId("earlier").hidden = true;
}

function startModes() {
  for (const each of document.querySelectorAll("input[name=mode]")) {
    each.addEventListener("change", () => {
      choose(each.value);
      if (isChat()) showEarlier(current?.runId);
    });
  }
  byId("new-conversation").addEventListener("click", () => {
    useThread("");
    showEarlier();
    question.focus();
  });
  choose(sessionStorage.getItem(MODE_KEY) === "chat" ? "chat" : "documents");
  if (isChat()) showEarlier(sessionStorage.getItem(RUN_KEY) || "");
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask();
  }
});
stop.addEventListener("click", async () => {
  stop.disabled = true;
  try {
    await call(`/v1/runs/${encodeURIComponent(current.runId)}/cancel`, { method: "POST" });
  } catch (error) {
    stop.disabled = false;
    setText(byId("progress"), error.message);
  }
});

function startTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = byId("theme");
  const apply = () => {
    const chosen = localStorage.getItem(THEME_KEY);
    const dark = chosen ? chosen === "dark" : system.matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", String(dark));
  };
  button.addEventListener("click", () => {
    localStorage.setItem(THEME_KEY, document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

startTheme();
startKeys();
startLibrary({ collection, isShown, onUnknown: noticeCollection, onDrawn: (drawn) => offerSamples({ ...drawn, isAsked: !isChat() }) });
startSamples((text) => {
  question.value = text;
  ask();
}, redrawDocuments);
startModes();
startApprovals((runId) => current?.runId !== runId && follow(new AnswerView(""), null, runId));
startCollections(redrawDocuments);
startSystem();
const unfinished = sessionStorage.getItem(RUN_KEY);
if (unfinished) follow(new AnswerView(""), null, unfinished);
