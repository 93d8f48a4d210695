"""What a call may read: the collections that it is bound to, else all that its caller may. The caller is bound by the token."""

from collections.abc import Sequence
from dataclasses import replace

from kit.ranking.fusion import RankedList, reciprocal_rank_fusion
from services.tools.context import ToolContext
from services.tools.documents import CollectionMissing, CollectionNotAllowed
from services.tools.errors import ToolError
from services.tools.models import Passage
from services.tools.passages.retrieval import Found, SearchQuery

COLLECTIONS_AT_ONCE = 64
"""The search takes no more in one request."""
_REQUESTS = 4
"""Beyond that many requests a search would take longer than a person waits."""


class TooManyCollections(ToolError):
    """More than can be searched while a person waits."""

    reason = "TOO_MANY_COLLECTIONS"


def permitted(allowed: Sequence[str], collection_id: str) -> str:
    """`collection_id` when the call may touch it; `allowed` empty means all of the tenant's. Raises CollectionNotAllowed."""
    if allowed and collection_id not in allowed:
        raise CollectionNotAllowed(
            f"collection {collection_id!r:.80} is not one that this conversation may use; it may use: {', '.join(allowed)}"
        )
    return collection_id


async def readable(context: ToolContext, asked: Sequence[str] = ()) -> Sequence[str]:
    """The collections to use: `asked`, else all that may be read. Raises CollectionNotAllowed or CollectionMissing."""
    asked = [context.resolve_collection_id(each) for each in asked]
    for collection_id in asked:
        permitted(context.collection_ids, collection_id)
    if context.collection_ids:
        return tuple(dict.fromkeys(asked)) or context.collection_ids
    there = await context.services.documents.collection_ids()
    missing = [collection_id for collection_id in asked if collection_id not in there]
    if missing:
        raise CollectionMissing(
            f"there is no collection {', '.join(map(repr, missing))[:200]}; there are: {', '.join(there)[:2000]}"
        )
    return tuple(dict.fromkeys(asked)) or there


def is_readable(context: ToolContext, passage: Passage) -> bool:
    """Whether the call may read the passage, which is of its tenant."""
    return not context.collection_ids or passage.collection_id in context.collection_ids


async def search_readable(context: ToolContext, query: SearchQuery) -> Found:
    """Searches the query's collections, or all that the call may read where it names none. Many are searched in several requests,
    whose rankings are fused: scores are comparable within one only."""
    collection_ids = await readable(context, query.collection_ids)
    if not collection_ids:
        return Found(())
    if len(collection_ids) > _REQUESTS * COLLECTIONS_AT_ONCE:
        raise TooManyCollections(
            f"there are {len(collection_ids)} collections, too many to search at once; name up to "
            f"{_REQUESTS * COLLECTIONS_AT_ONCE} in collection_ids, for example {', '.join(collection_ids[:20])}"
        )
    parts = [
        collection_ids[start : start + COLLECTIONS_AT_ONCE]
        for start in range(0, len(collection_ids), COLLECTIONS_AT_ONCE)
    ]
    return _fused(
        [await context.services.retriever.search(replace(query, collection_ids=part)) for part in parts], query.top_k
    )


def _fused(found: Sequence[Found], top_k: int) -> Found:
    if len(found) == 1:
        return found[0]
    passages = {passage.chunk_id: passage for each in found for passage in each.passages}
    rankings = [RankedList([p.chunk_id for p in each.passages], [p.score for p in each.passages]) for each in found]
    fused = list(reciprocal_rank_fusion(rankings).items())[:top_k]
    degraded = {(each.part, each.reason): each for part in found for each in part.degraded}
    return Found(
        tuple(replace(passages[chunk_id], score=score) for chunk_id, score in fused),
        tuple(degraded.values()),
        found[0].strategy,
    )
