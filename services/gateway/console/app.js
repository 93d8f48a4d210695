// The page: asks, follows, stops; says how the system is.

import { AnswerView } from "./answer.js";
import { startLibrary } from "./documents.js";
import { byId, make, setText } from "./dom.js";
import { call, followRun } from "./sse.js";

const RUN_KEY = "groundwork.run";
const THEME_KEY = "groundwork.theme";

const form = byId("ask");
const question = byId("question");
const stop = byId("stop");
let runId = "";
let busy = false;

const collection = () => byId("collection").value || "default";

async function follow(view, start, known = "") {
  busy = true;
  runId = known;
  byId("ask-button").disabled = true;
  stop.hidden = false;
  stop.disabled = !known;
  try {
    await followRun({
      start,
      runId: known,
      onRun: (id) => {
        runId = id;
        stop.disabled = false;
        sessionStorage.setItem(RUN_KEY, id); // a reload of the page reads on
      },
      onEvent: (event) => view.take(event),
      onTrouble: (lost) => lost && view.say("The connection was lost; reading on …"),
    });
    view.end(byId("progress").textContent);
  } catch (error) {
    view.fail(error.message);
  } finally {
    busy = false;
    sessionStorage.removeItem(RUN_KEY);
    stop.hidden = true;
    byId("ask-button").disabled = false;
  }
}

function ask() {
  const text = question.value.trim();
  if (!text || busy) {
    question.focus();
    return;
  }
  const body = JSON.stringify({ question: text, collection_ids: [collection()] });
  const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
  follow(new AnswerView(text), () => call("/v1/qa", { method: "POST", headers, body }));
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
    await call(`/v1/runs/${encodeURIComponent(runId)}/cancel`, { method: "POST" });
  } catch (error) {
    stop.disabled = false;
    setText(byId("progress"), error.message);
  }
});

async function watchSystem() {
  const line = byId("system");
  for (let ready = false; ; ) {
    try {
      const response = await fetch("/readyz");
      const { services } = await response.json();
      const waiting = Object.keys(services).filter((name) => services[name].state !== "serving");
      const details = Object.values(services).flatMap(({ detail }) => detail ?? []);
      ready = response.ok;
      setText(line, ready ? details.join("; ") : `Waiting for ${waiting.join(", ")}`);
    } catch {
      ready = false;
      setText(line, "The server does not answer");
    }
    line.hidden = !line.textContent;
    await new Promise((resolve) => setTimeout(resolve, ready ? 15000 : 1500));
  }
}

async function listCollections() {
  try {
    const { collections } = await (await call("/v1/collections")).json();
    byId("collection").replaceChildren(...collections.map(({ id, name }) => make("option", { value: id }, name || id)));
    byId("collection").value = "default";
    byId("collection-label").hidden = collections.length < 2;
  } catch {
    // without a list everything goes to the default collection
  }
}

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
startLibrary(collection);
listCollections();
watchSystem();
const unfinished = sessionStorage.getItem(RUN_KEY);
if (unfinished) follow(new AnswerView(""), null, unfinished);
