// The API key, where the server asks for one: asked for once, kept until the tab is closed, shown with every request.

import { byId, make, setText } from "./dom.js";
import { Problem, call, useKeys } from "./sse.js";

const STORED = "groundwork.api-key";
let asking = null; // the one question that all refused requests wait for
let isPassing = false; // whether the download that was refused last may be served once the system is well

/** The header that shows the key; none where there is no key. */
export function keyHeaders() {
  const key = sessionStorage.getItem(STORED);
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** Has every request show the key, and asks for one when the server does. */
export function startKeys() {
  useKeys({ headers: keyHeaders, another });
  const signOut = byId("sign-out");
  signOut.hidden = !sessionStorage.getItem(STORED);
  signOut.addEventListener("click", leave);
  offerLogins();
  document.addEventListener("click", download);
}

/** Lets people log in where the operator lists issuers, by a cookie that the browser shows by itself. */
async function offerLogins() {
  const { issuers } = await fetch("/oidc/issuers").then((response) => response.json()).catch(() => ({ issuers: [] }));
  if (!issuers.length) return;
  byId("sign-out").hidden = false;
  const to = encodeURIComponent(location.pathname + location.search + location.hash);
  const links = issuers.map(({ issuer, name }) =>
    make("a", { href: `/oidc/login?issuer=${encodeURIComponent(issuer)}&to=${to}`, textContent: `Sign in with ${name}` })
  );
  byId("key-issuers").replaceChildren(...links);
  byId("key-issuers").hidden = false;
}

async function leave() {
  const hadKey = sessionStorage.getItem(STORED);
  sessionStorage.clear(); // the run and the thread in hand are that caller's too
  const ended = hadKey ? {} : await fetch("/oidc/logout", { method: "POST" }).then((response) => response.json()).catch(() => ({}));
  if (ended.then) location.assign(ended.then);
  else location.reload();
}

/** Whether there is another key than a refused request showed: entered meanwhile, or asked for now. */
function another(shown, problem) {
  if (keyHeaders().Authorization !== shown.Authorization) return true;
  asking ||= ask(shown.Authorization ? problem.message : "").finally(() => (asking = null));
  return asking;
}

function ask(refusal) {
  sessionStorage.removeItem(STORED);
  byId("sign-out").hidden = true;
  const dialog = byId("key-dialog");
  const input = byId("key-input");
  setText(byId("key-refused"), refusal && `The key was refused: ${refusal}`);
  byId("key-refused").hidden = !refusal;
  input.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const stay = (event) => event.preventDefault(); // without a key there is nothing behind the dialog
    const submit = (event) => {
      event.preventDefault();
      const key = input.value.trim();
      if (!key || /[^!-~]/.test(key)) {
        setText(byId("key-refused"), "That is no API key: it begins with gw_ and has no spaces.");
        byId("key-refused").hidden = false;
        return;
      }
      byId("key-form").removeEventListener("submit", submit);
      dialog.removeEventListener("cancel", stay);
      input.value = "";
      sessionStorage.setItem(STORED, key);
      byId("sign-out").hidden = false;
      dialog.close();
      resolve(true);
    };
    byId("key-form").addEventListener("submit", submit);
    dialog.addEventListener("cancel", stay);
  });
}

/** A link to a file shows no key by itself, and would lead to a page of JSON where the file is refused: it is fetched and then saved. */
async function download(event) {
  const link = event.target.closest?.('a[href^="/v1/"]');
  if (!link) return;
  event.preventDefault();
  const refused = byId("download-refused");
  refused.hidden = true;
  isPassing = false;
  try {
    const response = await call(link.getAttribute("href"));
    const href = URL.createObjectURL(await response.blob());
    make("a", { href, download: fileName(response) }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60000);
  } catch (error) {
    isPassing = !(error instanceof Problem) || error.retryable;
    // That the server does not answer stands beside it.
    setText(refused, error instanceof Problem ? error.message : "The download was interrupted: press it again later.");
    refused.hidden = false;
  }
}

/** The system is well again: what was said of a download that it did not serve meanwhile is out of date. */
export function forgetRefusedDownload() {
  if (isPassing) byId("download-refused").hidden = true;
}

/** As the server names it (RFC 6266). */
function fileName(response) {
  const disposition = response.headers.get("Content-Disposition") || "";
  const encoded = /filename\*=utf-8''([^;]+)/i.exec(disposition);
  return encoded ? decodeURIComponent(encoded[1]) : /filename="([^"]+)"/i.exec(disposition)?.[1] || "document";
}
