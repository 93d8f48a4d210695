// Where the browser of an administrator ends who logs in at an MCP server: the login is finished in the name of who has begun it.

import { byId, setText } from "./dom.js";
import { startKeys } from "./key.js";
import { call } from "./sse.js";

const given = new URLSearchParams(location.search);
history.replaceState(null, "", location.pathname); // the code stays in no history
startKeys();
finish();

async function finish() {
  const state = given.get("state") || "";
  const server = state.split(".")[0];
  try {
    if (!server) throw new Error("This page is where a login ends. Begin one with: groundwork tool-servers login NAME");
    await call(`/v1/tool-servers/${encodeURIComponent(server)}/login/answer`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ state, code: given.get("code") || "", iss: given.get("iss") }),
    });
    setText(byId("said"), `You are logged in at ${server}. Approve its tools with: groundwork tool-servers list. You can close this page.`);
  } catch (error) {
    setText(byId("said"), error.message);
  }
}
