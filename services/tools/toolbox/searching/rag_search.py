"""Searches the tenant's documents, those that rag_index kept among them, for one query."""

from collections.abc import Sequence

from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.passages.findings import QUERY, TOP_K, check_query, findings
from services.tools.passages.retrieval import SearchQuery
from services.tools.passages.scope import search_readable

SCHEMA = {
    "type": "function",
    "function": {
        "name": "rag_search",
        "description": (
            "Searches the documents, the agent's own notes among them, by meaning and by words, and returns the passages that fit "
            "best, each with its document."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": QUERY,
                "top_k": TOP_K,
                "collection_ids": {
                    "type": "array",
                    "description": "Collections to search. Default: all that may be read.",
                    "items": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"},
                    "maxItems": 64,
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(timeout_s=5.0, other_name_of="search")


async def rag_search(
    query: str, context: ToolContext, top_k: int = 5, collection_ids: Sequence[str] = ()
) -> ToolOutput:
    """Passages, best first."""
    check_query(query)
    return findings(context, query, await search_readable(context, SearchQuery([query], collection_ids, top_k)))
