"""The second search of a question that takes two steps ("Where was the founder of Acme born?"): with the name that the first has
found. A question of one step, nearly all of them, is searched for once."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from kit.errors import DeadlineExceeded, Internal, ResourceExhausted, Unavailable
from services.orchestrator.answering.drafting import passage_of
from services.orchestrator.answering.extractive import find_bridge, read_two_steps
from services.orchestrator.log.events import Degradation, Evidence, Retrieval
from services.orchestrator.models import SearchQuery
from services.orchestrator.ports import Searcher

PART = "second search"
_OUTAGES = (Unavailable, DeadlineExceeded, ResourceExhausted, Internal)


async def search_in_two_steps(searcher: Searcher, query: SearchQuery, question: str) -> Retrieval:
    """Evidence for `question`: `query.top_k` passages of one search, or of two, the passage with the name first. A second search
    that fails is told as a degradation of the first. Raises what the first search raises."""
    first = await searcher.search(query)
    steps = read_two_steps(question)
    bridge = find_bridge(steps, [passage_of(each) for each in first.evidence]) if steps else None
    if steps is None or bridge is None:
        return first
    try:
        second = await searcher.search(replace(query, queries=(steps.second(bridge.name),)))
    except _OUTAGES as error:
        told = Degradation(PART, error.reason, f"The search for {bridge.name} did not answer.")
        return replace(first, degraded=(*first.degraded, told))
    named = [each for each in first.evidence if each.number == bridge.candidate.passage.number]
    others = chain.from_iterable(zip_longest(second.evidence, first.evidence))
    return replace(
        first,
        evidence=_first_of_each((*named, *others), query.top_k),
        degraded=tuple(dict.fromkeys((*first.degraded, *second.degraded))),
        timings_ms={
            part: first.timings_ms.get(part, 0.0) + second.timings_ms.get(part, 0.0)
            for part in {**first.timings_ms, **second.timings_ms}
        },
    )


def _first_of_each(evidence: Iterable[Evidence | None], count: int) -> Sequence[Evidence]:
    """Each chunk once, numbered anew."""
    chunks: dict[str, Evidence] = {}
    for each in evidence:
        if each is not None:
            chunks.setdefault(each.chunk_id, each)
    return tuple(replace(each, number=number) for number, each in enumerate(list(chunks.values())[:count], start=1))
