// Changes of a document's access list. The server takes it as a whole, so that each change is made to the list as it is by then: a page
// that has been open for long must not let in again whom somebody else took out.

import { api, bodyOf, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";

export type Access = Schemas["DocumentAccess"];
export type Kind = "subjects" | "groups";

/** A name let in or taken out. */
export interface Change {
  kind: Kind;
  name: string;
  isIn: boolean;
}

const PATH = "/v1/documents/{document_id}/access";

export function loadAccess(documentId: string): Promise<Access> {
  return dataOf(api.GET(PATH, { params: { path: { document_id: documentId } }, cache: "no-store" }));
}

/** Makes one change. A document whose list was removed meanwhile stays open: a list of one name would shut everybody else out. */
export async function changeAccess(documentId: string, { kind, name, isIn }: Change): Promise<Access> {
  const now = await loadAccess(documentId);
  const listed = now[kind] ?? [];
  if (!now.restricted || listed.includes(name) === isIn) return now;
  const names = isIn ? [...listed, name] : listed.filter((each) => each !== name);
  return put(documentId, { subjects: now.subjects, groups: now.groups, [kind]: names });
}

/** Begins an empty list; one that somebody else has begun stays. */
export async function restrictAccess(documentId: string): Promise<Access> {
  const now = await loadAccess(documentId);
  return now.restricted ? now : put(documentId, { subjects: [], groups: [] });
}

export function openAccess(documentId: string): Promise<Access> {
  return dataOf(api.DELETE(PATH, { params: { path: { document_id: documentId } } }));
}

function put(documentId: string, list: Pick<Access, Kind>): Promise<Access> {
  const params = { path: { document_id: documentId } };
  return dataOf(api.PUT(PATH, { params, body: bodyOf<Schemas["NewDocumentAccess"]>(list) }));
}
