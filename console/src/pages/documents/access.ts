// Changes of a document's access list. The server takes it as a whole, so that each change is made to the list as it is by then: a page
// that has been open for long must not let in again whom somebody else took out.

import { api, bodyOf, Problem } from "../../api/client";
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
const ATTEMPTS = 5;

/** A list with the server's name for this state of it. A change is sent with the name, so that it undoes no change of somebody else. */
export interface Listed {
  list: Access;
  etag: string;
}

/** Whether somebody else changed a list of who may do what since it was read. */
export function wasChanged(error: unknown): boolean {
  return error instanceof Problem && error.reason === "ACCESS_CHANGED";
}

/** The header that makes the server refuse a change of another state. */
export function ifMatch(etag: string): { "if-match"?: string } {
  return etag.length > 2 ? { "if-match": etag } : {}; // a service of an earlier version names none: `""`
}

export async function loadAccess(documentId: string): Promise<Listed> {
  return listed(await api.GET(PATH, { params: { path: { document_id: documentId } }, cache: "no-store" }));
}

/** Makes one change. A document whose list was removed meanwhile stays open: a list of one name would shut everybody else out. */
export function changeAccess(documentId: string, { kind, name, isIn }: Change): Promise<Listed> {
  return changed(documentId, (now) => {
    const names = now[kind] ?? [];
    if (!now.restricted || names.includes(name) === isIn) return null;
    const after = isIn ? [...names, name] : names.filter((each) => each !== name);
    return { subjects: now.subjects, groups: now.groups, [kind]: after };
  });
}

/** Begins an empty list; one that somebody else has begun stays. */
export function restrictAccess(documentId: string): Promise<Listed> {
  return changed(documentId, (now) => (now.restricted ? null : { subjects: [], groups: [] }));
}

/** Takes away the list that was read. One that somebody else has changed since stays, and the refusal is thrown. */
export async function openAccess(documentId: string, etag: string): Promise<Listed> {
  return listed(await api.DELETE(PATH, { params: { path: { document_id: documentId }, header: ifMatch(etag) } }));
}

async function changed(documentId: string, after: (now: Access) => Pick<Access, Kind> | null): Promise<Listed> {
  for (let attempt = 1; ; attempt++) {
    const now = await loadAccess(documentId);
    const list = after(now.list);
    if (list === null) return now;
    try {
      const params = { path: { document_id: documentId }, header: ifMatch(now.etag) };
      return listed(await api.PUT(PATH, { params, body: bodyOf<Schemas["NewDocumentAccess"]>(list) }));
    } catch (error) {
      if (!wasChanged(error) || attempt === ATTEMPTS) throw error; // else: it is made to the list as it is by now
    }
  }
}

function listed(answer: { data?: Access; response: Response }): Listed {
  return { list: answer.data as Access, etag: answer.response.headers.get("ETag") ?? "" };
}
