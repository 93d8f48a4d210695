// Tools, agents and steps in words. The command line has the same (`cli/display/tool_names.py`).

const TOOLS = {
  "compose_context": "put sources together",
  "crawl_website": "read a web site",
  "dedup_diversify": "drop repetitions",
  "describe_db": "look at a database's tables",
  "document_compare": "compare documents",
  "fetch_docs": "read passages whole",
  "get_project_details": "look up a project",
  "http_get": "read a web address",
  "http_request": "call another system",
  "math_eval": "calculate",
  "memory_search": "look up what is remembered",
  "multi_query_rewrite": "find other wordings",
  "portfolio": "list projects",
  "query_db": "ask a database",
  "query_local_kb": "search the knowledge base",
  "query_plan": "plan a search",
  "quote_finder": "find quotes",
  "rag_forget": "delete a document",
  "rag_index": "keep a text",
  "rag_list": "list documents",
  "rag_search": "search documents and notes",
  "rerank": "order passages",
  "router_select": "choose how to search",
  "run_summary": "summarise a document",
  "search": "search the documents",
  "search_projects": "search projects",
  "send_email": "send an e-mail",
  "structured_extraction": "read out fields",
  "temporal_normalize": "work out dates",
  "time_now": "look at the clock",
  "verify": "check a claim",
  "web_fetch": "read a web page",
  "web_search": "search the web"
};

const AGENTS = {
  "extraction": "reading out fields",
  "quiz": "a quiz",
  "reasoning": "answering",
  "research": "research",
  "summary": "a summary",
  "visualisation": "drawing"
};

const CHOSEN_BY = { "explicit": "you chose it", "model": "the model chose it", "classified": "chosen by the words of the question" };

// What a step is called behind its last "/", without its number.
const STEPS = {
  "agent": "choice of the agent",
  "answer": "the answer",
  "call": "call of a tool",
  "clarify": "question to you",
  "coverage": "what is covered",
  "draft": "the answer",
  "effort": "choice of the effort",
  "evidence": "passages",
  "model": "words of the model",
  "plan": "the plan",
  "replan": "a new plan",
  "retrieve": "the search",
  "search": "the search",
  "talk": "the answer",
  "verify": "check of the answer"
};
const AROUND = { "forced": "Last answer", "joined": "Investigations joined", "round": "Round" };

/** A tool as a person calls it: in its words, or its name without signs. `git__git_log` of the server `git` is "git log". */
export function inWords(name) {
  const [server, ...rest] = String(name).split("__");
  const tool = rest.join("__");
  const said = ["_", "-"].some((sign) => tool.startsWith(server + sign)) ? tool : String(name);
  return TOOLS[name] || said.replaceAll(/[_-]+/g, " ").trim();
}

/** `Agent: a quiz (the model chose it)`; empty for the one that answers where nobody chose. */
export const agentInWords = (name, chosenBy) => (CHOSEN_BY[chosenBy] ? `Agent: ${AGENTS[name] || inWords(name)} (${CHOSEN_BY[chosenBy]})` : "");

/** `Round 1: words of the model` of "round1/model": a step that has no line of its own. */
export function stepInWords(step) {
  const parts = String(step).split("/").map((part) => part.match(/^(.*?)(\d*)$/));
  const words = parts.map(([, name, number], place) => {
    const said = (place < parts.length - 1 ? AROUND[name] : STEPS[name]) || inWords(name);
    return number && place < parts.length - 1 ? `${said} ${number}` : said;
  });
  const line = words.join(": ");
  return line.charAt(0).toUpperCase() + line.slice(1);
}
