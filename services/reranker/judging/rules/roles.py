"""Rules about who does what: two names around one verb, and names with the words that follow them."""

from services.reranker.judging.rules.exact import names_a_time
from services.reranker.judging.rules.pair import Pair

_SAME, _SAME_ACROSS = 0.62, 0.4
_ALMOST = 0.8
"""Of the words of a clause: so many must stand in one clause of the passage."""
_BETWEEN = 6


def names_swapped(pair: Pair) -> bool:
    """Whether two names stand around the same word in the claim and, in the other order, in the passage, both in the active voice
    or both in the passive."""
    names = _names(pair)
    for first in names:
        for second in names:
            if first < second and _is_swapped(pair, first, second):
                return True
    return False


def _names(pair: Pair) -> list[int]:
    """Names of the claim that the window has."""
    return [
        i
        for i, word in enumerate(pair.claim)
        if not word.value and not word.is_stop and _is_same(pair, i) and _is_named(pair, pair.place[i])
        if not pair.passage[pair.place[i]].value
    ]


def _is_same(pair: Pair, position: int) -> bool:
    return bool(pair.exact[position] or pair.best[position] >= (_SAME_ACROSS if pair.is_across else _SAME))


def _is_named(pair: Pair, place: int) -> bool:
    """Whether a word of the passage is a name: one that begins a sentence is, if it is one elsewhere or no other word."""
    word = pair.passage[place]
    if names_a_time(word):
        return False
    return word.is_name or (word.is_first and word.surface[0].isupper() and not word.is_stop and not word.cues)


def _is_swapped(pair: Pair, first: int, second: int) -> bool:
    places = pair.place[first], pair.place[second]
    left, right = sorted(places)
    if left == right or pair.claim[first].stem == pair.claim[second].stem:
        return False
    if pair.passage[left].unit != pair.passage[right].unit or right - left > 2 * _BETWEEN:
        return False
    verbs = [
        i
        for i in pair.content
        if i not in (first, second)
        and not pair.claim[i].is_name
        and (pair.is_found(i) if pair.is_across else _is_same(pair, i))
    ]
    if not any(first < i < second and left < pair.place[i] < right for i in verbs):
        return False
    passive = any("agent" in word.cues for word in pair.claim[first:second])
    passive_there = any("agent" in word.cues for word in pair.passage[left:right])
    return (places[1] < places[0]) != (passive != passive_there)


def names_of_others(pair: Pair) -> bool:
    """Whether a clause of the claim says of its names, in the very words, what a clause of the passage says of others alone."""
    names = _names(pair)
    return any(
        _is_of_others(pair, clause, [i for i in names if pair.claim_clauses.number[i] == clause])
        for clause in pair.counterpart
    )


def _is_of_others(pair: Pair, clause: int, names: list[int]) -> bool:
    said = [
        i
        for i in pair.content
        if pair.claim_clauses.number[i] == clause and i not in names and not pair.claim[i].is_name
    ]
    by_clause: dict[int, int] = {}
    for i in said:
        if pair.exact[i]:
            there = pair.passage_clauses.number[pair.place[i]]
            by_clause[there] = by_clause.get(there, 0) + 1
    if not names or not by_clause:
        return False
    there = max(by_clause, key=by_clause.__getitem__)
    named = {pair.passage[j].stem for j in pair.passage_clauses.words(there) if _is_named(pair, j)}
    own = {pair.passage[pair.place[i]].stem for i in names}
    return (
        by_clause[there] >= _ALMOST * len(said)
        and bool(named - {pair.passage[pair.place[i]].stem for i in said})
        and not own & named
    )
