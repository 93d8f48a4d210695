"""Looks up what is remembered of the user: facts, notes, and what was said in earlier conversations."""

from typing import Any

from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.models import Policy, Quoted, ToolOutput

SCHEMA = {
    "type": "function",
    "function": {
        "name": "memory_search",
        "description": (
            "Searches what is remembered of the user: what they have said of themself, earlier conversations with them, and notes. "
            "It is no source: never cite it."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "What to look for, in the user's words.",
                    "minLength": 1,
                    "maxLength": 2000,
                },
                "top_k": {
                    "type": "integer",
                    "description": "Most hits to return. Default: 10.",
                    "minimum": 1,
                    "maximum": 50,
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=5.0,
    on_request=True,
    called_for_by=(
        r"\bremember|did i (?:say|tell|mention)|i (?:said|told you)|we (?:talked|spoke|discussed)|about me\b|last time",
        r"erinner|hab(?:e)? ich (?:dir )?(?:gesagt|erzählt)|über mich|letztes mal",
        r"\brecuerd|te dije|sobre mí|la última vez",
        r"souvien|rappel|t'ai dit|sur moi|la dernière fois",
        r"ricord|ti ho detto|su di me|l'ultima volta",
        r"lembra|te disse|sobre mim|da última vez",
        r"herinner|heb ik (?:je )?(?:gezegd|verteld)|over mij|vorige keer",
    ),
)


async def memory_search(query: str, context: ToolContext, top_k: int = 10) -> ToolOutput:
    """Hits, best first, each with where it comes from and when it was said."""
    if context.services.memory is None:
        raise ToolError("nothing is remembered here", reason="MEMORY_OFF")
    hits = await context.services.memory.search(query, top_k)
    shown = [
        {"from": hit.source, "text": hit.text, "said_at": hit.said_at, "thread_id": hit.thread_id}
        | ({"note": hit.document_name, "document_id": hit.document_id} if hit.document_id else {})
        for hit in hits
    ]
    content: dict[str, Any] = {"hits": shown}
    quotes = [Quoted(hit.fact_id, hit.document_id, hit.thread_id, hit.message_id) for hit in hits]
    return ToolOutput(content, quotes=tuple(quotes))
