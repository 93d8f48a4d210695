// The chosen collection: which there are, whose documents are shown and asked, and who else reads them.

import { byId, make, setText } from "./dom.js";
import { call } from "./sse.js";

const DEFAULT = /^default(-[0-9a-f]{8})?$/;
const select = byId("collection");
const shared = byId("shared");
let known = new Map();
let ownDefault = "default"; // another id for each user
let matters = true;
let asked = null; // the one request for the list that is under way
const sought = new Set(); // ids that the list was asked for; some, such as that of the tools' notes, it never has
let heard = { onChange: () => {}, onMove: () => {} };
let told = ""; // the collection that was chosen when it was last looked

/** The id of the collection that is chosen. */
export const collection = () => select.value || "default";

/** Whether a document of that collection is to be shown: all are while every collection is read, or none is known. */
export const isShown = (id) => !matters || !known.size || id === collection();

/** The id of the caller's own collection of that name; undefined when there is none. */
export const ownNamed = (name) => {
  const owner = known.get(ownDefault)?.owner;
  return [...known.values()].find((each) => each.name === name && each.owner === owner)?.id;
};

/** The name of the chosen collection where there are others, which a question to it does not ask; "" where there are none. */
export const askedAlone = () => (select.options.length > 1 ? select.selectedOptions[0].textContent : "");

/**
 * Lists the collections; without a list everything goes to the default one. `onChange` hears whenever other documents may be shown than
 * before, `onMove` when another collection is chosen.
 */
export async function startCollections(given) {
  heard = given;
  select.addEventListener("change", choose);
  shared.addEventListener("change", changeSharing);
  await listCollections();
}

/** Lists them anew, and chooses that one, or keeps what is chosen. */
export async function listCollections(chosen = "") {
  try {
    asked ||= list().finally(() => (asked = null));
    await asked;
  } catch {
    return; // the list comes with the next visit
  }
  if (known.has(chosen)) select.value = chosen;
  choose();
}

/** Chooses the collection of a run that is shown again, which is no move to another one. */
export function returnTo(id) {
  if (!known.has(id)) return;
  told = select.value = id;
  choose();
}

/** Has a collection that is not listed yet appear in the list. */
export function noticeCollection(id) {
  if (!known.size || known.has(id) || sought.has(id)) return;
  sought.add(id);
  listCollections();
}

async function list() {
  const { collections } = await (await call("/v1/collections")).json();
  ownDefault = await defaultAmong(collections);
  known = new Map(collections.map((each) => [each.id, each]));
  const options = collections.map(({ id, name }) => make("option", { value: id, attributes: { dir: "auto" } }, name || id));
  const kept = select.value; // now: it may have been chosen while the list was under way
  select.replaceChildren(...options);
  select.value = known.has(kept) ? kept : ownDefault;
}

function choose() {
  showSharing();
  showCollections(matters);
  const before = told;
  told = select.value;
  if (before && before !== told) heard.onMove();
}

/** Shows the choice where it matters, and where there is one. */
export function showCollections(matter) {
  matters = matter;
  byId("collection-bar").hidden = !matters || select.options.length < 2;
  byId("all-collections").hidden = matters || select.options.length < 2;
  heard.onChange();
}

/** The id of the user's own default collection. Who sees all sees those of others too, also where there is none of their own. */
async function defaultAmong(collections) {
  const ids = collections.map(({ id }) => id).filter((id) => DEFAULT.test(id));
  return ids.includes("default") ? "default" : (await (await call("/v1/collections/default")).json()).id;
}

function showSharing() {
  const chosen = known.get(select.value);
  byId("shared-label").hidden = !chosen || chosen.id === ownDefault || !isOwn(chosen);
  shared.checked = chosen?.visibility === "tenant";
  setText(byId("shared-problem"), "");
}

/** Whether its sharing is the caller's to set: theirs, or nobody's. */
const isOwn = ({ owner }) => !owner || owner === known.get(ownDefault)?.owner;

async function changeSharing() {
  const id = select.value;
  const name = known.get(id)?.name || id;
  if (shared.checked && !window.confirm(`Share “${name}”? Everyone who uses this Groundwork then reads all of its documents.`)) {
    showSharing();
    return;
  }
  shared.disabled = true;
  try {
    const body = JSON.stringify({ visibility: shared.checked ? "tenant" : "private" });
    const headers = { "Content-Type": "application/json" };
    const answer = await call(`/v1/collections/${encodeURIComponent(id)}`, { method: "PATCH", headers, body });
    known.set(id, await answer.json());
    showSharing();
  } catch (error) {
    showSharing();
    setText(byId("shared-problem"), error.message);
  } finally {
    shared.disabled = false;
  }
}
