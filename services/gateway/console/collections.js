// The chosen collection: which there are, whose documents are asked, and who else reads them.

import { byId, make, setText } from "./dom.js";
import { call } from "./sse.js";

const DEFAULT = /^default(-[0-9a-f]{8})?$/;
const select = byId("collection");
const shared = byId("shared");
let known = new Map();
let ownDefault = "default"; // another id for each user

/** The id of the collection that is chosen. */
export const collection = () => select.value || "default";

/** Lists the collections; without a list everything goes to the default one. */
export async function startCollections() {
  select.addEventListener("change", showSharing);
  shared.addEventListener("change", changeSharing);
  try {
    const { collections } = await (await call("/v1/collections")).json();
    ownDefault = await defaultAmong(collections);
    known = new Map(collections.map((each) => [each.id, each]));
    select.replaceChildren(...collections.map(({ id, name }) => make("option", { value: id }, name || id)));
    select.value = ownDefault;
    showSharing();
  } catch {
    // the list comes with the next visit
  }
}

/** Shows the choice where it matters, and where there is one. */
export function showCollections(matters) {
  byId("collection-bar").hidden = !matters || select.options.length < 2;
}

/** The id of the user's own default collection. Who sees all sees those of others too. */
async function defaultAmong(collections) {
  const ids = collections.map(({ id }) => id).filter((id) => DEFAULT.test(id));
  return ids.length === 1 ? ids[0] : (await (await call("/v1/collections/default")).json()).id;
}

function showSharing() {
  const chosen = known.get(select.value);
  byId("shared-label").hidden = !chosen || chosen.id === ownDefault;
  shared.checked = chosen?.visibility === "tenant";
  setText(byId("shared-problem"), "");
}

async function changeSharing() {
  const id = select.value;
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
