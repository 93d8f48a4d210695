"""What a tool that searches documents for one query is asked, and what it answers with."""

from collections.abc import Mapping
from typing import Any

from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.models import ToolOutput
from services.tools.passages.rendering import all_described, citable, counted, degradations, fitted, quoted, sentences
from services.tools.passages.retrieval import Found

QUERY: Mapping[str, Any] = {
    "type": "string",
    "description": "What to look for, in plain words.",
    "minLength": 1,
    "maxLength": 2000,
}
TOP_K: Mapping[str, Any] = {
    "type": "integer",
    "description": "Most passages to return. Default: 5.",
    "minimum": 1,
    "maximum": 20,
}


def check_query(query_text: str) -> None:
    """Raises ToolError."""
    if not query_text.strip():
        raise ToolError("the query is empty; say what to look for", reason="QUERY_EMPTY")


def findings(context: ToolContext, query_text: str, found: Found, where: str = "") -> ToolOutput:
    """The passages, numbered, with what the search had to do without. `where` names what was searched, for the person."""
    passages = fitted(found.passages, context.settings.tools_text_tokens)
    content: dict[str, Any] = {"passages": all_described(passages), **degradations(found.degraded)}
    said = f"{counted(passages) if passages else 'Nothing'} found for {quoted(query_text)}{where}."
    if not passages:
        content["message"] = "Nothing was found. Try other words; rag_list shows which documents there are."
    return ToolOutput(content, sentences(said, degraded=found.degraded), citable(passages))
