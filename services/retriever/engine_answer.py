"""Asking one engine: within its time, wide enough that what is not visible does not crowd out what is, and never failing the
search: a failure becomes a degradation."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import structlog

from kit.deadline import bounded_timeout_s
from kit.errors import GroundworkError
from services.retriever.models import Degradation
from services.retriever.stored_chunk import Candidate, StoredChunk

_log = structlog.get_logger()
_WIDENING = 4
_MAX_LIMIT = 4000
"""Candidates that an engine is asked for at most: four thousand take it 20 ms."""


@dataclass(frozen=True)
class EngineAnswer:
    """Candidates, one list a query, or why there are none."""

    lists: Sequence[Sequence[Candidate]] = ()
    degradation: Degradation | None = None
    timings_ms: dict[str, float] = field(default_factory=dict)


EngineSearch = Callable[[int], Awaitable[list[list[Candidate]]]]
"""Searches with a limit per query."""


async def candidates(search: EngineSearch, is_visible: Callable[[StoredChunk], bool], limit: int) -> EngineAnswer:
    """The best `limit` candidates a query, and more when over half of a full list is not visible.

    The invisible ones stay in: what is visible is decided once for both engines, after both have answered.
    """
    while True:
        lists = await search(limit)
        crowded_out = any(
            len(hits) >= limit and sum(is_visible(hit.stored) for hit in hits) < limit // 2 for hits in lists
        )
        if not crowded_out or limit >= _MAX_LIMIT:
            return EngineAnswer(lists)
        limit = min(limit * _WIDENING, _MAX_LIMIT)


async def within(call: Awaitable[EngineAnswer], part: str, timeout_s: float) -> EngineAnswer:
    """The engine's answer, or a degradation of `part` when it fails or takes longer than it may."""
    try:
        async with asyncio.timeout(bounded_timeout_s(timeout_s)):
            return await call
    except TimeoutError:
        return _degraded(part, f"{part.upper()}_TIMEOUT", f"the {part} search did not answer in time and was left out")
    except GroundworkError as error:
        _log.warning("search_degraded", part=part, reason=error.reason, error=repr(error.__cause__ or error))
        return _degraded(part, error.reason, f"the {part} search failed and was left out: {error.message}")
    except Exception as error:
        # An engine's defect must not take down the half of the search that works; it is logged as the defect it is.
        _log.error("search_degraded", part=part, exc_info=error)
        return _degraded(part, f"{part.upper()}_FAILED", f"the {part} search failed and was left out")


def _degraded(part: str, reason: str, message: str) -> EngineAnswer:
    return EngineAnswer(degradation=Degradation(part, reason, message))


class Stopwatch:
    """Milliseconds since it was made or last read."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def lap_ms(self) -> float:
        now = time.perf_counter()
        elapsed_ms = (now - self._start) * 1000
        self._start = now
        return elapsed_ms
