"""A claim beside its passage, as the rules see both: clauses, which of them deny, and which words stand for which."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from services.reranker.judging.clauses import Clauses
from services.reranker.judging.features import Alignment, Flags
from services.reranker.judging.reading import Word
from services.reranker.models import Float32

_NEAR, _NEAR_ACROSS = 0.55, 0.3
"""Cosines from which on a word of the passage stands for one of the claim, in one language and across languages: there the nearest
word is mostly the right one, and far from as near."""


class Pair:
    """What a rule is asked about."""

    def __init__(self, alignment: Alignment) -> None:
        self.alignment = alignment
        self.claim: Sequence[Word] = alignment.claim.words
        self.passage: Sequence[Word] = alignment.passage.words
        self.is_across = self._language(self.claim) != self._language(self.passage)
        """Whether claim and passage are written in different languages."""

    @staticmethod
    def _language(words: Sequence[Word]) -> str:
        return words[0].language

    @property
    def claim_clauses(self) -> Clauses:
        return self.alignment.claim.clauses

    @property
    def passage_clauses(self) -> Clauses:
        return self.alignment.passage.clauses

    @cached_property
    def window(self) -> Sequence[int]:
        """Positions of the passage's words in the units that carry most of the claim."""
        return np.flatnonzero(self.alignment.in_window).tolist()

    @cached_property
    def content(self) -> Sequence[int]:
        """Positions of the claim's words that say something themselves."""
        return [i for i, word in enumerate(self.claim) if self.alignment.content[i] and not word.cues]

    @cached_property
    def place(self) -> Sequence[int]:
        """Of each word of the claim: the word of the window that stands for it."""
        window = self.window
        return [window[j] for j in self.alignment.where.tolist()]

    @property
    def best(self) -> Float32:
        """How near each word of the claim is to the word that stands for it."""
        best: Float32 = self.alignment.best
        return best

    @property
    def exact(self) -> Flags:
        """Whether the window has the very word."""
        return self.alignment.exact_match

    def is_found(self, position: int) -> bool:
        """Whether the window has a word that stands for this one of the claim."""
        return bool(self.exact[position] or self.best[position] >= (_NEAR_ACROSS if self.is_across else _NEAR))

    @cached_property
    def counterpart(self) -> dict[int, int]:
        """By clause of the claim: the clause of the passage that carries most of it."""
        found: dict[int, dict[int, float]] = {}
        for i in self.content:
            if self.is_found(i):
                own = found.setdefault(self.claim_clauses.number[i], {})
                there = self.passage_clauses.number[self.place[i]]
                own[there] = own.get(there, 0.0) + float(self.alignment.weights[i])
        return {number: max(own, key=own.__getitem__) for number, own in found.items()}

    def cues(self, clause: int) -> frozenset[str]:
        """The categories of words that a clause of the claim has."""
        return frozenset[str]().union(*(self.claim[i].cues for i in self.claim_clauses.words(clause)))

    def cues_there(self, clause: int) -> frozenset[str]:
        """The same of a clause of the passage."""
        return frozenset[str]().union(*(self.passage[j].cues for j in self.passage_clauses.words(clause)))
