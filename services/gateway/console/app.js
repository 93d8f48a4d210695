// The page: asks, follows, stops.

import { AnswerView } from "./answer.js";
import { startApprovals } from "./approvals.js";
import { startCaller } from "./caller.js";
import { askedAlone, collection, isShown, noticeCollection, returnTo, showCollections, startCollections } from "./collections.js";
import { over, researched, send, showEarlier, withTools } from "./conversation.js";
import { redrawDocuments, startLibrary } from "./documents.js";
import { byId, setText } from "./dom.js";
import { startMemory } from "./memory.js";
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
let shownRun = ""; // the run in the card, also when it has ended
let documents = over(collection());

const isChat = () => byId("mode-chat").checked;
const isResearch = () => byId("mode-research").checked;

/** What the next question belongs to. One that has not begun is over the collection that is chosen by then. */
function conversation() {
  if (isChat()) return withTools;
  if (!documents.thread) documents = over(collection());
  return documents;
}

/** Shows a run in the card: a new one that `start` begins, or the one that is known. The run before is left; it goes on. */
async function follow(view, start, known = "") {
  current?.leaving.abort();
  const mine = { view, leaving: new AbortController(), runId: known, isResumed: !start };
  current = mine;
  shownRun = known;
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
        shownRun = id;
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
  if (current === mine) settle();
}

/** No run goes on in the card any more. */
function settle() {
  current = null;
  sessionStorage.removeItem(RUN_KEY);
  stop.hidden = true;
  byId("ask-button").disabled = false;
}

/** Empties the card. A run in it is left; it goes on. */
function clearCard() {
  current?.leaving.abort();
  settle();
  shownRun = "";
  byId("answer-card").hidden = true;
  setText(byId("progress"), "");
}

function take({ view, runId, isResumed }, event) {
  if (event.event === "run") goOnWith(event.data, runId, isResumed);
  view.take(event);
  byId("ask-button").disabled = !view.isWaiting;
}

/** What is asked next belongs to the conversation of the run that the card shows, also when it is shown again after a reload. */
function goOnWith({ mode, thread_id: thread, collection_ids: [asked] = [] }, runId, isResumed) {
  if (mode === "chat") {
    choose("chat");
    withTools.thread = thread;
  } else if (["grounded", "agent"].includes(mode) && isResumed) {
    if (mode === "agent") choose("research");
    returnTo(asked);
    if (asked === collection()) documents = { ...over(asked), thread: thread || "" };
  }
  showEarlier(conversation(), runId);
}

function ask() {
  const text = question.value.trim();
  if (!text || (current && !current.view.isWaiting)) {
    question.focus();
    return;
  }
  const [belongs, view] = [conversation(), new AnswerView(text, isChat() ? undefined : askedAlone)];
  const asked = isResearch() ? researched(belongs) : belongs;
  question.value = "";
  follow(view, async (signal) => {
    try {
      return await send(asked, text, { signal, onNote: (note) => view.note(note) });
    } catch (error) {
      if (!signal.aborted) question.value ||= text; // to be mended, or sent again
      throw error;
    }
  });
}

/** Another conversation begins, with an empty card. */
function beginAnew() {
  if (isChat()) withTools.thread = "";
  else documents = over(collection());
  clearCard();
  showEarlier(conversation());
}

function changeCollection() {
  if (isChat()) documents = over(collection());
  else beginAnew();
}

const HEADS = {
  documents: ["Ask your documents", "Every sentence of the answer carries its source. When the documents do not say, so will the answer."],
  research: ["Research your documents", "Plans, searches in rounds, follows the names that it finds, and says what is covered and what is missing."],
  chat: ["Chat with all tools", "Each step is shown as it comes, and what would change something outside is asked about first."],
};

/** Documents or all tools; remembered until the tab is closed. */
function choose(mode) {
  sessionStorage.setItem(MODE_KEY, mode);
  const [title, lead] = HEADS[mode];
  setText(byId("ask-title"), title);
  setText(byId("lead"), lead);
  byId(`mode-${mode}`).checked = true;
  showCollections(!isChat());
}

function startModes() {
  for (const each of document.querySelectorAll("input[name=mode]")) {
    each.addEventListener("change", () => {
      choose(each.value);
      showEarlier(conversation(), shownRun);
    });
  }
  byId("new-conversation").addEventListener("click", () => {
    beginAnew();
    question.focus();
  });
  const before = sessionStorage.getItem(MODE_KEY);
  choose(before in HEADS ? before : "documents");
  showEarlier(conversation(), sessionStorage.getItem(RUN_KEY) || "");
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
startCaller();
startLibrary({ collection, isShown, onUnknown: noticeCollection, onDrawn: (drawn) => offerSamples({ ...drawn, isAsked: !isChat() }) });
startSamples((text) => {
  question.value = text;
  ask();
}, redrawDocuments);
startModes();
startMemory();
startApprovals((runId) => current?.runId !== runId && follow(new AnswerView(""), null, runId));
startSystem();
await startCollections({ onChange: redrawDocuments, onMove: changeCollection });
const unfinished = sessionStorage.getItem(RUN_KEY);
if (unfinished && !current) follow(new AnswerView(""), null, unfinished);
