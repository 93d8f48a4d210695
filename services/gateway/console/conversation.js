// The chat's thread: made with its first message, kept over a reload, and shown below the answer.

import { mark } from "./citations.js";
import { byId, make } from "./dom.js";
import { Problem, call } from "./sse.js";
import { pieces } from "./text.js";

const THREAD_KEY = "groundwork.thread";
const SHOWN = 40;
const JSON_BODY = { "Content-Type": "application/json" };

/** The thread in use; empty for none. */
export const threadId = () => sessionStorage.getItem(THREAD_KEY) || "";

/** Continues that thread from now on. */
export const useThread = (id) => (id ? sessionStorage.setItem(THREAD_KEY, id) : sessionStorage.removeItem(THREAD_KEY));

/** Sends a message on the thread, and makes one where there is none, or where it is gone. Returns the stream's response. */
export async function send(message, signal) {
  try {
    return await sendOn(threadId() || (await newThread()), message, signal);
  } catch (error) {
    if (!(error instanceof Problem) || error.reason !== "THREAD_NOT_FOUND") throw error;
    return sendOn(await newThread(), message, signal);
  }
}

async function newThread() {
  const { id } = await (await call("/v1/threads", { method: "POST", headers: JSON_BODY, body: "{}" })).json();
  useThread(id);
  return id;
}

function sendOn(thread, message, signal) {
  const body = JSON.stringify({ message, thread_id: thread });
  return call("/v1/chat", { method: "POST", headers: { ...JSON_BODY, Accept: "text/event-stream" }, body, signal });
}

/** Shows what was said before on the thread, newest first, without the run that the card shows. */
export async function showEarlier(exceptRun = "") {
  const thread = threadId();
  let messages = [];
  try {
    if (thread) ({ messages } = await (await call(`/v1/threads/${encodeURIComponent(thread)}?limit=${SHOWN}`)).json());
  } catch {
    // without its history the conversation goes on all the same
  }
  if (thread !== threadId()) return;
  const shown = messages.filter((each) => !exceptRun || each.run_id !== exceptRun).reverse();
  byId("messages").replaceChildren(...shown.map(line));
  byId("earlier").hidden = !shown.length;
}

function line({ role, text, citations }) {
  const cited = new Map(citations.map((each) => [each.number, each]));
  const drawn = pieces(text, (number) => cited.has(number)).map((piece) => piece.text ?? mark(cited.get(piece.number)));
  return make("li", { className: "message", dataset: { testid: "message", role: role || "" }, attributes: { dir: "auto" } }, ...drawn);
}
