"""Searches the knowledge base: one collection of curated documents, set aside from what people upload."""

from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.models import Policy, ToolOutput
from services.tools.passages.findings import QUERY, TOP_K, check_query, findings
from services.tools.passages.retrieval import SearchQuery
from services.tools.passages.scope import permitted

SCHEMA = {
    "type": "function",
    "function": {
        "name": "query_local_kb",
        "description": (
            "Searches this installation's own knowledge base, curated documents set aside from what people upload, and returns "
            "the passages that fit best, each with its document."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": QUERY,
                "top_k": TOP_K,
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(timeout_s=5.0, other_name_of="search")


async def query_local_kb(query: str, context: ToolContext, top_k: int = 5) -> ToolOutput:
    """Passages, best first. Where there is no knowledge base that is an error which says how to make one."""
    check_query(query)
    collection_id = permitted(context.collection_ids, context.settings.tools_kb_collection)
    if collection_id not in await context.services.documents.collection_ids():
        raise ToolError(
            f"there is no knowledge base here: it would be the collection {collection_id!r}, which somebody has to make and fill "
            "first; search looks in the other documents",
            reason="NO_KNOWLEDGE_BASE",
        )
    found = await context.services.retriever.search(SearchQuery([query], [collection_id], top_k))
    return findings(context, query, found, " in the knowledge base")
