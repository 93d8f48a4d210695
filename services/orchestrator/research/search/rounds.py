"""The rounds of a research run: search, fuse, measure, refine. Nothing here writes to a log: the mode records each round."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kit.errors import DeadlineExceeded, GroundworkError, Internal, ResourceExhausted, Unavailable
from kit.queries.shape import LEXICAL
from services.orchestrator.log.events import Coverage, Degradation, Evidence
from services.orchestrator.models import SearchQuery
from services.orchestrator.ports import Searcher
from services.orchestrator.research.coverage import ENOUGH
from services.orchestrator.research.models import Effort, PlannedSearch, Purpose, RankedPassages, RoundFound

OUTAGES = (Unavailable, DeadlineExceeded, ResourceExhausted, Internal)
"""Search is away, hangs, is overloaded or broken. Any other error is the question's."""
_LITTLE = 0.05
"""A round that adds less coverage has brought nothing (the seed's stop rule)."""
_MOST_FRUITLESS = 2
_NARROW_TOP_K = 3
"""Passages of a search whose best one counts."""


@dataclass(frozen=True)
class EffortLimits:
    """What an effort may take."""

    rounds: int
    searches: int
    passages: int
    """Of the evidence set, as a multiple of the setting in eighths: 8 is the setting itself."""


LIMITS = {
    Effort.LOW: EffortLimits(1, 4, 8),
    Effort.MEDIUM: EffortLimits(2, 8, 8),
    Effort.HIGH: EffortLimits(4, 24, 12),
}


def is_done(coverages: Sequence[Coverage], limits: EffortLimits, searches: int) -> str:
    """Why no further round follows; empty where one does."""
    if not coverages:
        return ""
    if coverages[-1].share >= ENOUGH:
        return "covered"
    if len(coverages) >= limits.rounds:
        return "rounds"
    if searches >= limits.searches:
        return "searches"
    gains = [after.share - before.share for before, after in pairwise(coverages)]
    if len(gains) >= _MOST_FRUITLESS and max(gains[-_MOST_FRUITLESS:]) < _LITTLE:
        return "fruitless"
    return ""


async def search_all(
    searcher: Searcher, base: SearchQuery, searches: Sequence[PlannedSearch], route: str, *, at_once: int
) -> RoundFound:
    """What the searches find, side by side. A search that fails becomes a degradation. Raises what the first raises when all
    fail, and any error that is no outage."""
    slots = asyncio.Semaphore(at_once)

    async def search(planned: PlannedSearch) -> tuple[RankedPassages, RoundFound] | GroundworkError:
        async with slots:
            try:
                return await _search(searcher, base, planned, route)
            except OUTAGES as error:
                return error

    ended = await asyncio.gather(*map(search, searches))
    errors = [each for each in ended if isinstance(each, GroundworkError)]
    found = [each for each in ended if not isinstance(each, GroundworkError)]
    if errors and not found:
        raise errors[0]
    passages: dict[str, Evidence] = {}
    for _, each in found:
        for passage in each.passages:
            passages.setdefault(passage.chunk_id, passage)
    failed = [Degradation("search", each.reason, f"A search did not answer: {each.message}") for each in errors[:1]]
    degraded = [degradation for _, each in found for degradation in each.degraded]
    return RoundFound(
        tuple(each for each, _ in found),
        tuple(passages.values()),
        tuple(dict.fromkeys([*failed, *degraded])),
        _slowest(found),
        found[0][1].strategy,
    )


async def _search(
    searcher: Searcher, base: SearchQuery, planned: PlannedSearch, route: str
) -> tuple[RankedPassages, RoundFound]:
    is_narrow = planned.purpose in (Purpose.SUBJECT, Purpose.NAME, Purpose.PHRASE)
    strategy = planned.strategy or route
    query = replace(
        base,
        queries=(planned.text,),
        top_k=min(_NARROW_TOP_K, base.top_k) if is_narrow else base.top_k,
        strategy=strategy,
        must_phrases=planned.must_phrases,
        explain=True,
        reranks=not (is_narrow and strategy == LEXICAL),
    )
    retrieval = await searcher.search(query.narrowed_to(planned.filter))
    ranked = RankedPassages(
        planned,
        tuple(each.chunk_id for each in retrieval.evidence),
        {each.chunk_id: tuple(each.ranks) for each in retrieval.evidence},
        tuple(retrieval.dropped),
    )
    plain = tuple(replace(each, ranks=(), number=0) for each in retrieval.evidence)
    return ranked, RoundFound((), plain, tuple(retrieval.degraded), retrieval.timings_ms, retrieval.strategy)


def _slowest(found: Sequence[tuple[RankedPassages, RoundFound]]) -> dict[str, float]:
    """Milliseconds by stage, of the slowest search in each: they ran side by side."""
    slowest: dict[str, float] = {}
    for _, each in found:
        for stage, milliseconds in each.timings_ms.items():
            slowest[stage] = max(slowest.get(stage, 0.0), milliseconds)
    return slowest
