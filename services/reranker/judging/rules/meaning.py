"""Rules about small words: who denies, how many there are, on which condition, more or less, planned or done."""

from services.reranker.judging.rules.pair import Pair

_MOSTLY, _CARRIED, _CARRIED_ACROSS = 0.7, 0.8, 0.6
_LEAST_WORDS = 2
_DIRECTIONS = (frozenset({"more_of", "less_of"}), frozenset({"later", "earlier"}))


def denial_differs(pair: Pair) -> bool:
    """Whether most of what a clause of the claim says is denied in the passage and not in the claim, or the other way round."""
    clauses = pair.claim_clauses
    for clause in set(clauses.number):
        own = [i for i in pair.content if clauses.number[i] == clause]
        sure = [i for i in own if (pair.is_found(i) if pair.is_across else pair.exact[i])]
        total, found = (float(sum(pair.alignment.weights[i] for i in some)) for some in (own, sure))
        if len(sure) < _LEAST_WORDS or found < (_CARRIED_ACROSS if pair.is_across else _CARRIED) * total:
            continue
        if "partial" in pair.cues(clause):  # some do, some do not
            continue
        denied = clause in clauses.denied
        other = [
            i for i in sure if (pair.passage_clauses.number[pair.place[i]] in pair.passage_clauses.denied) != denied
        ]
        if sum(pair.alignment.weights[i] for i in other) >= _MOSTLY * found:
            return True
    return False


def scope_widened(pair: Pair) -> bool:
    """Whether the claim says of all what the passage says of some, or of nobody else."""
    for clause, there in pair.counterpart.items():
        own, passage_cues = pair.cues(clause), pair.cues_there(there)
        is_of_all = "universal" in own and not own & {"partial", "limiting", "negation"}
        if is_of_all and passage_cues & {"partial", "limiting"} and "universal" not in passage_cues:
            return True
    return False


def plan_as_fact(pair: Pair) -> bool:
    """Whether the passage plans what the claim says was done."""
    for clause, there in pair.counterpart.items():
        own, passage_cues = pair.cues(clause), pair.cues_there(there)
        if "planned" in passage_cues and "planned" not in own and "done" in own and "done" not in passage_cues:
            return True
    return False


def comparison_turned(pair: Pair) -> bool:
    """Whether the claim compares the same two things the other way round: another direction, or the things swapped, not both."""
    for kinds in _DIRECTIONS:
        for i, word in enumerate(pair.claim):
            there = pair.counterpart.get(pair.claim_clauses.number[i])
            if len(word.cues & kinds) != 1 or there is None:
                continue
            others = [j for j in pair.passage_clauses.words(there) if len(pair.passage[j].cues & kinds) == 1]
            if not others:
                continue
            j = max(others, key=lambda place: float(pair.alignment.cosines[i, place]))
            turned = word.cues & kinds != pair.passage[j].cues & kinds
            if turned != _swapped_around(pair, i, j):
                return True
    return False


def _swapped_around(pair: Pair, position: int, place: int) -> bool:
    """Whether what stands before a word in the claim stands behind its counterpart in the passage, and the other way round."""
    clause = pair.claim_clauses.number[position]
    own = [i for i in pair.content if pair.claim_clauses.number[i] == clause and pair.is_found(i)]
    return any(i < position and pair.place[i] > place for i in own) and any(
        i > position and pair.place[i] < place for i in own
    )
