"""The sentences that carry a section, without a model: LexRank over words (Erkan and Radev 2004, doi:10.1613/jair.1523), biased to
a focus where there is one (Otterbacher et al. 2005), chosen by maximal marginal relevance (Carbonell and Goldstein 1998)."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kit.language.anaphora import starts_with_anaphor
from kit.language.sentences import UnitKind, split_units
from kit.language.terms import tokens

_DAMPING = 0.85
_ROUNDS = 30
_LEAST_SIMILARITY = 0.1
"""Threshold of continuous LexRank's graph, from the paper."""
_DIVERSITY = 0.3
_MOST_CANDIDATES = 160
"""Sentences of one section that are compared with each other: the rest is spread over the section and left out."""
_LEAST_WORDS = 5
_MOST_CHARS = 400
_POINTER = re.compile(
    r"^\W*(?:for other (?:uses|meanings)|main articles?:|see also|further (?:information|reading)|siehe auch)"
    r"|^\W*\d*\.?\s*\^|\b(?:doi|isbn|issn)\b ?:?",
    re.IGNORECASE,
)
"""Sentences that only point elsewhere, and references."""
_FOCUS_SHARE = 0.7
_ANAPHOR = 0.6
"""Worth of a sentence that leans on the one before it: alone it says less."""
_FIRST = 1.15
"""Worth of the first sentence of a section, which often says what it is about."""

Vector = Mapping[str, float]


class Numbered(Protocol):
    """A passage."""

    @property
    def number(self) -> int: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class Sentence:
    """A sentence and its place in its passage."""

    text: str
    source: int
    """Number of the passage."""
    start: int
    end: int


def carrying_sentences(passages: Sequence[Numbered], count: int, focus: str = "") -> Sequence[Sentence]:
    """So many sentences of the passages, in reading order; fewer where there are no more."""
    candidates = _candidates(passages)
    if not candidates:
        return []
    vectors = _vectors([each.text for each in candidates])
    similar = [[_cosine(one, other) for other in vectors] for one in vectors]
    ranks = _ranks(similar, _bias(vectors, focus))
    worth = [
        rank * (_ANAPHOR if starts_with_anaphor(each.text) else 1.0) * (_FIRST if number == 0 else 1.0)
        for number, (rank, each) in enumerate(zip(ranks, candidates, strict=True))
    ]
    return [candidates[index] for index in sorted(_chosen(worth, similar, count))]


def _candidates(passages: Sequence[Numbered]) -> Sequence[Sentence]:
    """Whole sentences, each text once; where there is none, whatever the section has."""
    found: dict[str, Sentence] = {}
    others: dict[str, Sentence] = {}
    for passage in passages:
        for unit in split_units(passage.text):
            kept = found if _is_whole(unit.text, unit.kind) else others
            if unit.kind is not UnitKind.LIST and unit.text.strip():
                kept.setdefault(unit.text, Sentence(unit.text, passage.number, unit.start, unit.end))
    sentences = list((found or others).values())
    step = max(1, math.ceil(len(sentences) / _MOST_CANDIDATES))
    return sentences[::step]


def _is_whole(text: str, kind: UnitKind) -> bool:
    if _POINTER.search(text):
        return False
    return kind in (UnitKind.PROSE, UnitKind.ITEM) and len(tokens(text)) >= _LEAST_WORDS and len(text) <= _MOST_CHARS


def _vectors(texts: Sequence[str]) -> Sequence[Vector]:
    """Weights of stems, tf × idf within the section, of length 1."""
    counts = [Counter(token.stem for token in tokens(text) if not token.is_stopword) for text in texts]
    documents = Counter(stem for count in counts for stem in count)
    total = len(texts)
    vectors = []
    for count in counts:
        vector = {stem: number * math.log(1 + total / documents[stem]) for stem, number in count.items()}
        length = math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0
        vectors.append({stem: weight / length for stem, weight in vector.items()})
    return vectors


def _cosine(one: Vector, other: Vector) -> float:
    if len(one) > len(other):
        one, other = other, one
    return sum(weight * other[stem] for stem, weight in one.items() if stem in other)


def _bias(vectors: Sequence[Vector], focus: str) -> Sequence[float]:
    """Where the random walk begins: anywhere, or rather at sentences with words of the focus. Sums to 1."""
    total = len(vectors)
    wanted = {token.stem for token in tokens(focus) if not token.is_stopword}
    near = [sum(vector.get(stem, 0.0) for stem in wanted) for vector in vectors]
    if not any(near):
        return [1 / total] * total
    return [(1 - _FOCUS_SHARE) / total + _FOCUS_SHARE * each / sum(near) for each in near]


def _ranks(similar: Sequence[Sequence[float]], bias: Sequence[float]) -> Sequence[float]:
    """The stationary distribution of a random walk between similar sentences."""
    edges = [[value if value >= _LEAST_SIMILARITY else 0.0 for value in row] for row in similar]
    sums = [sum(row) or 1.0 for row in edges]
    ranks = list(bias)
    for _ in range(_ROUNDS):
        shares = [rank / total for rank, total in zip(ranks, sums, strict=True)]
        ranks = [
            (1 - _DAMPING) * start + _DAMPING * sum(map(float.__mul__, row, shares))
            for start, row in zip(bias, edges, strict=True)
        ]
    return ranks


def _chosen(worth: Sequence[float], similar: Sequence[Sequence[float]], count: int) -> Sequence[int]:
    best = max(worth)
    chosen: list[int] = []
    left = set(range(len(worth)))
    while left and len(chosen) < count:
        index = max(
            sorted(left),
            key=lambda each: (
                (1 - _DIVERSITY) * worth[each] / best
                - _DIVERSITY * max((similar[each][other] for other in chosen), default=0.0)
            ),
        )
        chosen.append(index)
        left.remove(index)
    return chosen
