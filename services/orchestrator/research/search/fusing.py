"""Makes one evidence set out of what several sub-queries found: the best of each, near-duplicates once, numbers that stay."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kit.ranking.duplicates import Duplicates
from kit.ranking.fusion import RankedList, reciprocal_rank_fusion
from services.orchestrator.log.events import DroppedPassage, Evidence, StageRank
from services.orchestrator.research.models import Purpose, RankedPassages, RoundFound
from services.orchestrator.research.question.effort import takes_steps
from services.orchestrator.research.search.neighbours import neighbours_of

_WEIGHTS: Mapping[Purpose, float] = {
    Purpose.QUESTION: 1.0,
    Purpose.FILTERED: 1.0,
    Purpose.PART: 0.8,
    Purpose.REWRITE: 0.8,
    Purpose.TOOL: 0.8,
    Purpose.HYPOTHESIS: 0.6,
    Purpose.PHRASE: 0.5,
    Purpose.SUBJECT: 0.5,
    Purpose.NAME: 0.3,
}
"""How much a list counts in the fusion. A choice: what is nearer to the question counts more."""
_HAS_A_PLACE = (Purpose.FILTERED, Purpose.SUBJECT, Purpose.PART, Purpose.PHRASE, Purpose.NAME)
"""Purposes whose best passage has a place in the evidence: it stands for something that the others lack."""
_LEAD = 2
"""Passages of the question itself that no other list pushes out. Where the question takes one step these are all: other searches
fill what places are left, so that research never finds less than one search."""
_DROPPED_SHOWN = 40
FUSED = "queries"
"""Stage of the fusion over sub-queries."""


@dataclass(frozen=True)
class EvidenceSet:
    """The passages that an answer may cite, and what was left out."""

    evidence: Sequence[Evidence] = ()
    dropped: Sequence[DroppedPassage] = ()
    next_number: int = 1


def fuse(rounds: Sequence[RoundFound], question: str, top_k: int, before: EvidenceSet = EvidenceSet()) -> EvidenceSet:
    """The evidence of all rounds, at most `top_k` passages and as many messages beside those, ordered by number. A passage that was
    in the set before keeps its number; a new one gets the next."""
    lists = [each for found in rounds for each in found.lists]
    passages = {each.chunk_id: each for found in rounds for each in found.passages}
    fused = reciprocal_rank_fusion([RankedList(each.chunk_ids, (), _WEIGHTS[each.search.purpose]) for each in lists])
    lead = _LEAD if takes_steps(question) else top_k
    order = dict.fromkeys(each for each in (*_placed(lists, lead), *fused) if each in passages)
    kept, doubles = Duplicates(
        lambda chunk_id: passages[chunk_id].text, lambda chunk_id: _Compared(passages[chunk_id].text), [question]
    ).remove({each: fused[each] for each in order}, len(order))
    chosen = list(kept)[:top_k]
    places = {each: place for place, each in enumerate(fused, start=1)}
    evidence = [
        replace(
            passages[each],
            number=0,
            score=fused[each],
            ranks=(*_ranks(each, lists), StageRank(FUSED, places[each], fused[each])),
        )
        for each in chosen
    ]
    around = {message: beside for found in rounds for message, beside in found.around.items()}
    evidence += neighbours_of(evidence, around, frozenset(each.chunk_id for each in doubles), top_k)
    numbers = {each.chunk_id: each.number for each in before.evidence}
    new = [each.chunk_id for each in evidence if each.chunk_id not in numbers]
    numbers |= {each: number for number, each in enumerate(new, start=before.next_number)}
    evidence = [replace(each, number=numbers[each.chunk_id]) for each in evidence]
    dropped = [
        *(
            DroppedPassage(each.chunk_id, passages[each.chunk_id].document_name, each.stage, each.kept_id)
            for each in doubles
        ),
        *(DroppedPassage(each, passages[each].document_name, "top_k") for each in list(kept)[top_k:]),
        *(dropped for each in lists for dropped in each.dropped),
    ]
    return EvidenceSet(
        tuple(sorted(evidence, key=lambda each: each.number)),
        tuple(_first_of_each(dropped, numbers)[:_DROPPED_SHOWN]),
        before.next_number + len(new),
    )


@dataclass(frozen=True)
class _Compared:
    """A passage as duplicates are looked for; forwards are recognised by the search itself."""

    text: str
    metadata: Mapping[str, str] = field(default_factory=dict)


def _placed(lists: Sequence[RankedPassages], lead: int) -> Iterable[str]:
    """The chunks that have a place, in its order. What a tool found that the request names stands beside every search."""
    for each in lists:
        if each.search.purpose is Purpose.TOOL:
            yield from each.chunk_ids[:_LEAD]
    for each in lists:
        if each.search.purpose is Purpose.QUESTION:
            yield from each.chunk_ids[:lead]
    for purpose in _HAS_A_PLACE:
        yield from (each.chunk_ids[0] for each in lists if each.search.purpose is purpose and each.chunk_ids)


def _ranks(chunk_id: str, lists: Sequence[RankedPassages]) -> list[StageRank]:
    return [replace(rank, query=each.search.text) for each in lists for rank in each.ranks.get(chunk_id, ())]


def _first_of_each(dropped: Iterable[DroppedPassage], chosen: Container[str]) -> list[DroppedPassage]:
    first: dict[str, DroppedPassage] = {}
    for each in dropped:
        if each.chunk_id not in chosen:
            first.setdefault(each.chunk_id, each)
    return list(first.values())
