"""What a call may read: the collections that it is bound to, else all of its tenant's. The tenant is bound by the token."""

from collections.abc import Sequence
from dataclasses import replace

from kit.ranking.fusion import RankedList, reciprocal_rank_fusion
from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.models import Passage
from services.tools.retrieval import Found, SearchQuery

COLLECTIONS_AT_ONCE = 64
"""The search takes no more in one request."""
_REQUESTS = 4
"""Beyond that many requests a search would take longer than a person waits."""


class CollectionUnreadable(ToolError):
    """The call is bound to other collections, or there is none of that name: it is not told which."""

    reason = "COLLECTION_NOT_READABLE"


class TooManyCollections(ToolError):
    """More than can be searched while a person waits."""

    reason = "TOO_MANY_COLLECTIONS"


async def readable(context: ToolContext, asked: Sequence[str] = ()) -> Sequence[str]:
    """The collections that are meant: `asked`, else all that the call may read.

    Raises CollectionUnreadable when one of `asked` is not among those.
    """
    allowed = context.collection_ids or tuple(await context.services.documents.collection_ids())
    unreadable = [collection_id for collection_id in asked if collection_id not in allowed]
    if unreadable:
        raise CollectionUnreadable(
            f"{', '.join(map(repr, unreadable))[:200]} cannot be read here; there are: {', '.join(allowed)[:2000] or 'none'}"
        )
    return tuple(dict.fromkeys(asked)) or allowed


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
