// Conversations: each has a thread, made with its first message; what was said on it before is shown below the answer.

import { artefact } from "./artefacts.js";
import { mark } from "./citations.js";
import { byId, make } from "./dom.js";
import { Problem, call } from "./sse.js";
import { pieces } from "./text.js";
import { claimItems, claimsTitle, judgeLine, support } from "./claims.js";
import { confidence } from "./verdicts.js";

const THREAD_KEY = "groundwork.thread";
const SHOWN = 40;
const ENDINGS = { cancelled: "You stopped this answer.", timeout: "This answer ran out of time.", failed: "This answer failed." };
const JSON_BODY = { "Content-Type": "application/json" };

/** With all tools: kept over a reload. */
export const withTools = {
  path: "/v1/chat",
  get thread() {
    return sessionStorage.getItem(THREAD_KEY) || "";
  },
  set thread(id) {
    if (id) sessionStorage.setItem(THREAD_KEY, id);
    else sessionStorage.removeItem(THREAD_KEY);
  },
};

/** A new one over a collection: it ends with the page. */
export const over = (collection) => ({ path: `/v1/collections/${encodeURIComponent(collection)}/chat`, thread: "", collection });

/** The same conversation, whose next question is researched. */
export const researched = (conversation) => ({
  path: "/v1/agent",
  get thread() {
    return conversation.thread;
  },
  set thread(id) {
    conversation.thread = id;
  },
  asks: (question) => ({ question, collection_ids: [conversation.collection] }),
});

const FORGOTTEN = "The conversation so far is gone: this question was read by itself.";
const FORGETFUL = "Conversations cannot be kept now: the next question will be read by itself, not as a follow-up.";

/**
 * Sends a message on the conversation's thread, and makes one where there is none, or where it is gone. Without its service a
 * conversation begins without a thread. `onNote` hears what was not understood, or will not be. Returns the stream's response.
 */
export async function send(conversation, message, { signal, onNote }) {
  if (conversation.thread) {
    try {
      return await sendOn(conversation, message, signal);
    } catch (error) {
      if (error.reason !== "THREAD_NOT_FOUND") throw error;
      onNote(FORGOTTEN);
    }
  }
  await makeThread(conversation, () => onNote(FORGETFUL));
  return sendOn(conversation, message, signal);
}

async function makeThread(conversation, onAway) {
  conversation.thread = "";
  try {
    const { id } = await (await call("/v1/threads", { method: "POST", headers: JSON_BODY, body: "{}" })).json();
    conversation.thread = id;
  } catch (error) {
    if (!(error instanceof Problem && error.retryable && error.status >= 500)) throw error;
    onAway();
  }
}

function sendOn({ path, thread, asks = (message) => ({ message }) }, message, signal) {
  const body = JSON.stringify({ ...asks(message), thread_id: thread || null });
  return call(path, { method: "POST", headers: { ...JSON_BODY, Accept: "text/event-stream" }, body, signal });
}

let drawing = 0;

/** Shows what was said before in the conversation, newest first, without the run that the card shows, and how to begin another one. */
export async function showEarlier(conversation, exceptRun = "") {
  const mine = ++drawing;
  const { thread } = conversation;
  let messages = [];
  try {
    if (thread) ({ messages } = await (await call(`/v1/threads/${encodeURIComponent(thread)}?limit=${SHOWN}`)).json());
  } catch {
    // without its history the conversation goes on all the same
  }
  if (mine !== drawing) return;
  const shown = messages.filter((each) => !exceptRun || each.run_id !== exceptRun).reverse();
  byId("messages").replaceChildren(...shown.map((each) => line(each, thread)));
  byId("earlier").hidden = !shown.length;
  byId("new-conversation").hidden = !thread;
}

function line(message, thread) {
  const { role, text, citations } = message;
  const cited = new Map(citations.map((each) => [each.number, each]));
  const drawn = pieces(text, (number) => cited.has(number)).map((piece) => piece.text ?? mark(cited.get(piece.number)));
  const said = citations.length || message.verification ? [support(message).text, confidence(message).text].filter(Boolean).join(" ") : "";
  const ending = ENDINGS[message.run_status];
  if (ending) drawn.push(make("p", { className: "hint", dataset: { testid: "message-ending" }, attributes: { dir: "ltr" } }, ending));
  if (said) drawn.push(make("p", { className: "hint", dataset: { testid: "message-verdict" }, attributes: { dir: "ltr" } }, said));
  drawn.push(...(message.artefacts ?? []).map((each) => artefact(each, thread, message.run_id)));
  const claims = message.method === "extractive" ? [] : claimItems(message.verification);
  if (claims.length) drawn.push(claimsOf(message.verification, claims));
  return make("li", { className: "message", dataset: { testid: "message", role: role || "" }, attributes: { dir: "auto" } }, ...drawn);
}

function claimsOf(verification, items) {
  const judge = make("p", { className: "hint" }, judgeLine(verification));
  return make("details", { dataset: { testid: "message-claims" }, attributes: { dir: "ltr" } }, make("summary", {}, claimsTitle(items)), make("ol", {}, ...items), judge);
}
