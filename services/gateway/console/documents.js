// The library: uploads on their way and documents as the server knows them.

import { mayChange } from "./caller.js";
import { byId, make, setText } from "./dom.js";
import { keyHeaders } from "./key.js";
import { Problem, call, followForever, lost } from "./sse.js";
import { size, startAndEnd } from "./text.js";

const SHOWN = 200;
const AT_ONCE = 3;
/** Files dropped together from which on they are an import, which keeps no single upload waiting. */
const BULK_FROM = 21;
const ARMED_MS = 5000;
const WORDS = { queued: "Waiting", processing: "Reading", ready: "Ready", failed: "Failed" };
const STAGES = { parse: "Reading", clean: "Cleaning", chunk: "Splitting", embed: "Understanding", index: "Indexing", activate: "Finishing" };

// Reasons of a failure that stays the same whenever that file is read; what helps is another file.
const FINAL = new Set([
  "ARCHIVE_BOMB", "EMPTY_FILE", "FILE_DAMAGED", "FILE_ENCRYPTED", "FILE_LOST", "IMAGE_BROKEN", "IMAGE_TOO_LARGE", "MAIL_BROKEN",
  "NO_TEXT", "OCR_SCRIPT_UNSUPPORTED", "PARSE_CRASHED", "PARSE_TIMEOUT", "PARSE_TOO_LARGE", "PDF_BROKEN", "PDF_ENCRYPTED",
  "TOO_MANY_PAGES", "UNSAFE_XML", "UNSUPPORTED_TYPE",
]);

const documents = new Map();
const leaving = new Set(); // whose deletion was asked for here and is not answered yet
const rows = new Map();
let snapshot = null;
let isComplete = false;
let drawing = 0;
let around = {};

/**
 * Starts following the server and taking files. `collection()` names where uploads go, `isShown(id)` says whose documents are listed;
 * `onUnknown(id)` hears of each collection that has documents, `onDrawn({total, shown})` of what is listed.
 */
export function startLibrary(given) {
  around = given;
  const { collection } = given;
  followForever("/v1/events", take);
  const input = byId("file-input");
  input.addEventListener("change", () => {
    upload([...input.files], collection());
    input.value = "";
  });
  const drop = byId("drop");
  const lit = (event, on) => {
    if (!mayChange() || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    drop.classList.toggle("over", on);
  };
  // The whole page takes files: nobody should lose the page by missing the box.
  document.addEventListener("dragover", (event) => lit(event, true));
  document.addEventListener("dragleave", (event) => event.relatedTarget === null && lit(event, false));
  document.addEventListener("drop", (event) => {
    lit(event, false);
    if (mayChange() && event.dataTransfer?.files.length) upload([...event.dataTransfer.files], collection());
  });
}

function take({ event, data }) {
  if (event === "snapshot_begin") snapshot = new Set();
  else if (event === "snapshot_complete") {
    if (snapshot) for (const id of [...documents.keys()]) if (!snapshot.has(id)) documents.delete(id);
    snapshot = null;
    isComplete = true;
  } else if (event === "document") {
    snapshot?.add(data.id);
    put(data);
  }
  redrawDocuments();
}

function put(document_) {
  const known = documents.get(document_.id);
  if (document_.status === "deleted") {
    if (!leaving.has(document_.id)) documents.delete(document_.id);
    return;
  }
  around.onUnknown(document_.collection_id);
  if (!known || known.updated_at <= document_.updated_at) documents.set(document_.id, document_);
}

/** Draws the list anew. Many events come in one go; one drawing a frame is enough. */
export function redrawDocuments() {
  if (drawing) return;
  drawing = setTimeout(() => {
    drawing = 0;
    drawNow();
  }, 30);
}

function drawNow() {
  const newest = [...documents.values()].filter((each) => around.isShown(each.collection_id));
  newest.sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
  const shown = newest.slice(0, SHOWN);
  const list = byId("documents");
  for (const [id, row] of [...rows]) {
    if (!documents.has(id)) {
      row.element.remove();
      rows.delete(id);
    }
  }
  shown.forEach((each, index) => {
    const row = rows.get(each.id) || newRow(each.id);
    row.update(each);
    if (list.children[index] !== row.element) list.insertBefore(row.element, list.children[index] || null);
  });
  while (list.children.length > shown.length) {
    rows.delete(list.lastElementChild.dataset.id);
    list.lastElementChild.remove();
  }
  const more = byId("documents-more");
  more.hidden = newest.length <= SHOWN;
  setText(more, `and ${newest.length - SHOWN} more`);
  summarise(newest);
  if (isComplete) around.onDrawn({ total: documents.size + running + waiting.length, shown: newest });
}

function summarise(all) {
  const ready = all.filter((each) => each.status === "ready").length;
  const none = documents.size ? "None in this collection" : "None yet";
  const summary = all.length === 0 ? none : ready === all.length ? `${ready} ready` : `${ready} of ${all.length} ready`;
  setText(byId("library-summary"), summary);
}

function newRow(id) {
  const name = nameBox();
  const status = make("span", { className: "status" });
  const detail = make("p", { className: "hint detail" });
  const bar = make("progress", { max: 1, attributes: { "aria-label": "Progress" } });
  const failure = make("p", { className: "failure", attributes: { dir: "auto" } });
  const retry = make("button", { type: "button", className: "link changes" }, "Try again");
  const download = make("a", { className: "link", download: "", href: `/v1/documents/${encodeURIComponent(id)}/content` }, "Download");
  const remove = make("button", { type: "button", className: "link danger changes" }, "Delete");
  retry.addEventListener("click", () => act(failure, () => call(`/v1/documents/${encodeURIComponent(id)}/reindex`, { method: "POST" })));
  const named = confirmed(remove, () => act(failure, () => deleted(id)));
  const element = make(
    "li",
    { className: "row", dataset: { testid: "document-row", id } },
    make("div", { className: "row-head" }, name, status),
    bar,
    detail,
    failure,
    make("div", { className: "row-actions" }, retry, download, remove),
  );
  const update = (each) => {
    element.dataset.status = each.status;
    showName(name, each.name);
    setText(status, each.status === "processing" ? STAGES[each.stage] || WORDS.processing : WORDS[each.status]);
    bar.hidden = each.status !== "processing";
    bar.value = each.progress;
    setText(detail, describe(each));
    setText(failure, each.error ? each.error.message : "");
    failure.hidden = !each.error;
    retry.hidden = FINAL.has(each.error?.reason) || (each.status !== "failed" && !each.error);
    named(each.name);
    download.setAttribute("aria-label", `Download ${each.name}`);
  };
  const row = { element, update };
  rows.set(id, row);
  return row;
}

const nameBox = () => make("span", { className: "name", attributes: { dir: "auto" } });

/** Shows a name that is cut in its middle where it is too long, and whole when it is pointed at. */
function showName(box, name) {
  if (box.title === name) return;
  box.title = name;
  const [start, end] = startAndEnd(name);
  box.replaceChildren(make("span", { className: "name-start" }, start), make("span", { className: "name-end" }, end));
}

function describe({ status, report, size_bytes: bytes }) {
  const parts = [size(bytes)];
  if (report.page_count) parts.push(`${report.page_count} page${report.page_count > 1 ? "s" : ""}`);
  if (status === "ready") parts.push(`${report.chunk_count} passage${report.chunk_count === 1 ? "" : "s"}`);
  if (report.warnings.length) parts.push(report.warnings[0]);
  return parts.join(" · ");
}

/**
 * A second press within a few seconds is the confirmation: no dialog in the way. What the button says, also to screen readers, is what
 * the next press does. Returns what tells it the name of the thing.
 */
function confirmed(button, action) {
  let timer = 0;
  let name = "";
  const say = () => {
    const words = timer ? "Press again to delete" : "Delete";
    setText(button, timer ? `${words} ${name}` : words);
    button.setAttribute("aria-label", `${words} ${name}`);
    button.classList.toggle("armed", Boolean(timer));
  };
  const calm = () => {
    clearTimeout(timer);
    timer = 0;
    say();
  };
  button.addEventListener("click", () => {
    const isArmed = Boolean(timer);
    calm();
    if (isArmed) return action();
    timer = setTimeout(calm, ARMED_MS);
    return say();
  });
  button.addEventListener("blur", () => timer && calm());
  return (given) => {
    name = given;
    say();
  };
}

/** Its row goes once no search finds it any more: the event of its deletion comes earlier. */
async function deleted(id) {
  leaving.add(id);
  try {
    await call(`/v1/documents/${encodeURIComponent(id)}`, { method: "DELETE" });
    documents.delete(id);
  } finally {
    leaving.delete(id);
    redrawDocuments();
  }
}

async function act(failure, action) {
  try {
    await action();
  } catch (error) {
    setText(failure, error.message);
    failure.hidden = false;
  }
}

const waiting = [];
let running = 0;

/** Sends these files into a collection. */
export function upload(files, collection) {
  const lane = files.length >= BULK_FROM ? "bulk" : "interactive";
  for (const file of files) {
    const line = uploadLine(file);
    byId("uploads").append(line.element);
    waiting.push(() => send(file, collection, lane, line));
  }
  next();
}

function next() {
  while (running < AT_ONCE && waiting.length) {
    running += 1;
    waiting.shift()().finally(() => {
      running -= 1;
      next();
    });
  }
}

function uploadLine(file) {
  const bar = make("progress", { max: 1, value: 0, attributes: { "aria-label": `Uploading ${file.name}` } });
  const status = make("span", { className: "status" }, "Sending");
  const failure = make("p", { className: "failure", hidden: true, attributes: { role: "alert" } });
  const dismiss = make("button", { type: "button", className: "link", hidden: true }, "Dismiss");
  const name = nameBox();
  showName(name, file.name);
  const head = make("div", { className: "row-head" }, name, status);
  const element = make("li", { className: "row", dataset: { testid: "upload-row", status: "sending" } }, head, bar, failure, dismiss);
  dismiss.addEventListener("click", () => element.remove());
  const fail = (message) => {
    element.dataset.status = "failed";
    status.textContent = "Not taken";
    bar.hidden = true;
    failure.textContent = message;
    failure.hidden = dismiss.hidden = false;
  };
  return { element, fail, progress: (share) => (bar.value = share) };
}

// XMLHttpRequest, because fetch does not tell how much of a request has been sent.
function send(file, collection, lane, line) {
  return new Promise((resolve) => {
    const form = new FormData();
    form.append("lane", lane);
    form.append("file", file);
    const request = new XMLHttpRequest();
    request.open("POST", `/v1/collections/${encodeURIComponent(collection)}/documents`);
    for (const [name, value] of Object.entries(keyHeaders())) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => event.lengthComputable && line.progress(event.loaded / event.total));
    request.addEventListener("error", () => {
      lost();
      line.fail("The connection was lost. Drop the file again.");
    });
    request.addEventListener("load", () => {
      let body = {};
      try {
        body = JSON.parse(request.responseText);
      } catch {
        // an answer that is not ours is told by its status
      }
      if (request.status === 202) {
        line.element.remove();
        put(body.document);
        redrawDocuments();
      } else line.fail(new Problem(body, request.status).message);
    });
    request.addEventListener("loadend", resolve);
    request.send(form);
  });
}
