"""Asking one engine: within its time, wide enough that what is not visible does not crowd out what is, and never failing the
search: a failure becomes a degradation."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog

from kit.deadline import bounded_timeout_s
from kit.errors import GroundworkError
from services.retriever.indexes.stored_chunk import Candidate, StoredChunk
from services.retriever.models import Degradation

T = TypeVar("T")

_log = structlog.get_logger()
_WIDENING = 4
_MAX_LIMIT = 4000
"""Candidates that an engine is asked for at most: four thousand take it 20 ms."""

Lists = Sequence[Sequence[Candidate]]
"""One list a query, best first."""

EngineSearch = Callable[[int], Awaitable[list[list[Candidate]]]]
"""Searches with a limit per query."""


async def candidates(search: EngineSearch, is_visible: Callable[[StoredChunk], bool], limit: int) -> Lists:
    """The best `limit` candidates a query, and more when over half of a full list is not visible.

    The invisible ones stay in: what is visible is decided once for both engines, after both have answered.
    """
    while True:
        lists = await search(limit)
        crowded_out = any(
            len(hits) >= limit and sum(is_visible(hit.stored) for hit in hits) < limit // 2 for hits in lists
        )
        if not crowded_out or limit >= _MAX_LIMIT:
            return lists
        limit = min(limit * _WIDENING, _MAX_LIMIT)


@dataclass(frozen=True)
class Part:
    """A part of the search that it can do without. `instead` ends the sentence that begins with what happened."""

    name: str
    subject: str
    instead: str


DENSE = Part("dense", "the dense search", "was left out")
LEXICAL = Part("lexical", "the lexical search", "was left out")
RERANK = Part("rerank", "the reranker", "was left out; hits are in fused order")
COSINES = Part("cosines", "comparing vectors", "was left out; hits that words alone found have no similarity")
DIVERSITY = Part("diversity", "choosing diverse hits", "was left out; hits are in order of relevance")
NEIGHBOURS = Part("neighbours", "reading neighbours", "was left out; hits come without them")


async def within(call: Awaitable[T], part: Part, timeout_s: float) -> T | Degradation:
    """The part's answer, or a degradation when it fails or takes longer than it may."""
    try:
        async with asyncio.timeout(bounded_timeout_s(timeout_s)):
            return await call
    except TimeoutError:
        reason, what = f"{part.name.upper()}_TIMEOUT", "did not answer in time and"
    except GroundworkError as error:
        _log.warning("search_degraded", part=part.name, reason=error.reason, error=repr(error.__cause__ or error))
        reason, what = error.reason, f"failed ({error.message}) and"
    except Exception as error:
        # A part's defect must not take down what works; it is logged as the defect it is.
        _log.error("search_degraded", part=part.name, exc_info=error)
        reason, what = f"{part.name.upper()}_FAILED", "failed and"
    return Degradation(part.name, reason, f"{part.subject} {what} {part.instead}")


class Stopwatch:
    """Milliseconds since it was made or last read."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def lap_ms(self) -> float:
        now = time.perf_counter()
        elapsed_ms = (now - self._start) * 1000
        self._start = now
        return elapsed_ms
