// What the caller may do: what they may not is not offered.

import { call } from "./sse.js";

/** Hides what changes documents and collections from callers who may only ask. Unknown, all is offered, and the server refuses. */
export async function startCaller() {
  try {
    const { scopes } = await (await call("/v1/me")).json();
    document.body.classList.toggle("only-asks", !scopes.includes("ingest"));
  } catch {
    document.body.classList.remove("only-asks");
  }
}

/** Whether the caller may change documents and collections, as far as is known. */
export const mayChange = () => !document.body.classList.contains("only-asks");
