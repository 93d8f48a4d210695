"""What carries a claim for certain: the passage says it, word for word."""

from services.reranker.judging.features import Alignment

_LEAST_WORDS = 3
_CHANGES = frozenset({"negation", "condition", "limiting", "partial", "planned", "cause"})
"""Small words of the rest of a sentence that may change what a part of it says: "Nobody said that …", "…, unless it rains"."""


def stands_word_for_word(alignment: Alignment) -> bool:
    """Whether the claim is whole clauses of one sentence of the passage, whose other words leave its meaning as it is."""
    claim = [word.lower for word in alignment.claim.words]
    passage = alignment.passage.words
    if len(claim) < _LEAST_WORDS or not alignment.exact_match.all():
        return False
    surfaces = [word.lower for word in passage]
    return any(
        surfaces[start : start + len(claim)] == claim and _is_whole(alignment, start, start + len(claim))
        for start in range(len(passage) - len(claim) + 1)
    )


def _is_whole(alignment: Alignment, start: int, stop: int) -> bool:
    """Whether the words from `start` to `stop` begin and end where clauses do, within one sentence, and nothing changes them."""
    passage, clauses = alignment.passage.words, alignment.passage.clauses.number
    unit = passage[start].unit
    if unit == 0 or passage[stop - 1].unit != unit:
        return False
    begins = start == 0 or clauses[start - 1] != clauses[start] or "joins" in passage[start - 1].cues
    ends = stop == len(passage) or clauses[stop - 1] != clauses[stop]
    rest = [word for place, word in enumerate(passage) if word.unit == unit and not start <= place < stop]
    return begins and ends and not any(word.cues & _CHANGES for word in rest)
