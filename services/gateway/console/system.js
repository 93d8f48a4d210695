// How the system is: a line at the top as soon as something is wrong, and a list of all services on request.

import { byId, make, setText } from "./dom.js";
import { forgetRefusedDownload, keyHeaders } from "./key.js";
import { whenLost } from "./sse.js";

const WELL_MS = 15000;
const UNWELL_MS = 1500;
const WAIT_MS = 5000; // an answer that takes longer is none
const dialog = byId("state");
const line = byId("system");
let wake = () => {};

/** Watches from now on. Whatever loses the server, or the network, has it looked at once. */
export function startSystem() {
  for (const event of ["offline", "online"]) window.addEventListener(event, () => wake());
  whenLost(() => wake());
  byId("state-open").addEventListener("click", () => {
    dialog.showModal();
    wake();
  });
  byId("state-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // the backdrop
  });
  watch();
}

async function watch() {
  let wasWell = true;
  for (;;) {
    const woken = new Promise((resolve) => (wake = resolve)); // also while the question is under way
    const isWell = await look();
    if (isWell && !wasWell) forgetRefusedDownload();
    wasWell = isWell;
    await Promise.race([woken, new Promise((resolve) => setTimeout(resolve, isWell ? WELL_MS : UNWELL_MS))]);
    if (!isWell) await new Promise((resolve) => setTimeout(resolve, UNWELL_MS / 3)); // what fails again and again asks no faster
  }
}

async function look() {
  try {
    const response = await fetch("/readyz", { headers: keyHeaders(), signal: AbortSignal.timeout(WAIT_MS) });
    const { services } = await response.json();
    show(response.ok, services);
    return response.ok;
  } catch {
    tell(navigator.onLine ? "The server does not answer" : "You are offline, and the server does not answer");
    setText(byId("state-word"), line.textContent);
    return false;
  }
}

function show(isReady, services) {
  const waiting = Object.keys(services).filter((name) => services[name].state !== "serving");
  const details = Object.values(services).flatMap(({ detail }) => detail ?? []);
  tell(isReady ? details.join("; ") : `Waiting for ${waiting.join(", ")}`);
  setText(byId("state-word"), isReady ? "Everything serves." : line.textContent);
  const rows = Object.keys(services)
    .sort()
    .map((name) => row(name, services[name]));
  byId("state-list").replaceChildren(...rows);
}

function row(name, { state, detail }) {
  return make(
    "li",
    { className: "row", dataset: { status: state === "serving" ? "ready" : "processing" } },
    make("div", { className: "row-head" }, make("span", { className: "name" }, name), make("span", { className: "status" }, state)),
    detail ? make("p", { className: "hint" }, detail) : "",
  );
}

function tell(text) {
  setText(line, text);
  line.hidden = !text;
}
