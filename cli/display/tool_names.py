"""Tools and agents in words. The console has the same (`console/src/i18n/en.json`)."""

from __future__ import annotations

import re

TOOLS = {
    "architecture_lookup": "look up how this system works",
    "compose_context": "put sources together",
    "browser_submit": "submit a form of a web page",
    "browser_task": "read pages in a browser",
    "crawl_website": "read a web site",
    "dedup_diversify": "drop repetitions",
    "describe_db": "look at a database's tables",
    "document_compare": "compare documents",
    "document_search": "find documents",
    "drive_read": "read a file of Google Drive",
    "drive_search": "look into Google Drive",
    "fetch_docs": "read passages whole",
    "get_project_details": "look up a project",
    "github_comment": "comment on GitHub",
    "github_create_issue": "open an issue on GitHub",
    "github_read_file": "read a file on GitHub",
    "github_read_issue": "read an issue on GitHub",
    "github_search": "search GitHub",
    "http_get": "read a web address",
    "http_request": "call another system",
    "mail_read": "read an e-mail",
    "mail_search": "search the mailbox",
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
    "web_search": "search the web",
}
AGENTS = {
    "extraction": "reading out fields",
    "quiz": "a quiz",
    "reasoning": "answering",
    "research": "research",
    "summary": "a summary",
    "visualisation": "drawing",
}
CHOSEN_BY = {
    "explicit": "you chose it",
    "model": "the model chose it",
    "classified": "chosen by the words of the question",
}
_SIGNS = re.compile(r"[_-]+")


def in_words(name: str) -> str:
    """A tool as a person calls it: in its words, or its name without signs. `git__git_log` of the server `git` is "git log"."""
    server, _, tool = name.partition("__")
    said = tool if re.match(rf"{re.escape(server)}[_-]", tool) else name
    return TOOLS.get(name) or _SIGNS.sub(" ", said).strip()


def agent_in_words(name: str, chosen_by: str) -> str:
    """`Agent: a quiz (the model chose it)`; empty for the one that answers where nobody chose."""
    by = CHOSEN_BY.get(chosen_by, "")
    return f"Agent: {AGENTS.get(name) or _SIGNS.sub(' ', name).strip()} ({by})" if by else ""
