"""A rule about what the claim has and the passage has not: a cause."""

from services.reranker.judging.rules.pair import Pair

_REST = 0.55


def cause_added(pair: Pair) -> bool:
    """Whether the claim gives a reason where the passage gives none, with words that the passage does not have."""
    places = [i for i, word in enumerate(pair.claim) if "cause" in word.cues]
    if not places or any("cause" in pair.passage[j].cues for j in pair.window):
        return False
    clause = pair.claim_clauses.number[places[0]]
    own = [i for i in pair.content if pair.claim_clauses.number[i] == clause and i > places[0]]
    return bool(own) and sum(not pair.exact[i] and pair.best[i] < _REST for i in own) > len(own) / 2
