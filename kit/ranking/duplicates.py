"""Chunks that say the same: the same words, or nearly. One of them is shown.

Nearly the same is a Jaccard similarity of 0.85 over runs of three words (Broder: "On the resemblance and containment of
documents", 1997) with the same names and numbers: two rows of a table, two years' reports, or two people's contracts differ in
nothing else. Two that differ in a word of the question are not the same to who asked. A forward says where it comes from as well,
so it need only contain the other. An original stands for its forwards, wherever it ranks.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Protocol

from kit.language.phrases import numbers_in, phrase_tokens

_SIMILARITY = 0.85
_LEAST_LENGTH = 0.7
"""Of the longer text, below which two cannot be that similar: words are of different lengths, so this is not 0.85."""
_CONTAINMENT = 0.95
_SHINGLE_WORDS = 3
_WORD = re.compile(r"\w+")
_FORWARD_FIELDS = ("forward_of", "forwarded_from")
"""Metadata that the parsers of chat exports give to what was forwarded."""


class Chunk(Protocol):
    """What is compared."""

    @property
    def text(self) -> str: ...

    @property
    def metadata(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Duplicate:
    """A chunk that is left out, for one that is kept. `stage` is "duplicate" or "near_duplicate"."""

    chunk_id: str
    kept_id: str
    stage: str


class _Wording:
    """What is compared of a text, each part worked out when a comparison gets as far as that: most fail at the marks."""

    def __init__(self, chunk: Chunk, asked: Collection[str] = ()) -> None:
        self.text = chunk.text
        self._asked = asked
        self.is_forward = _is_forward(chunk)

    @cached_property
    def marks(self) -> frozenset[str]:
        """The digits and capital letters of the particulars: quick to find, and mostly enough to tell two texts apart."""
        letters = filter(str.isalnum, set(self.text))
        return frozenset(letter for letter in letters if letter.isdecimal() or letter != letter.lower())

    @cached_property
    def particulars(self) -> frozenset[str]:
        """Words with a digit or a capital letter, and those of the question: where one differs, the text may state another fact."""
        words = set(_WORD.findall(self.text))
        return numbers_in(words) | {word for word in words if word != word.lower() or word in self._asked}

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        words = phrase_tokens(self.text)
        return frozenset(zip(*(words[start:] for start in range(_SHINGLE_WORDS)), strict=False))

    def is_like(self, other: "_Wording") -> bool:
        if self.is_forward == other.is_forward and self.marks != other.marks:
            return False
        small, large = sorted((self, other), key=lambda wording: len(wording.text))
        if self.is_forward != other.is_forward:
            return large.is_forward and large.contains(small)
        if len(small.text) < _LEAST_LENGTH * len(large.text) or small.particulars != large.particulars:
            return False
        shared = len(small.shingles & large.shingles)
        return shared > 0 and shared >= _SIMILARITY * len(small.shingles | large.shingles)

    def contains(self, other: "_Wording") -> bool:
        """Whether nearly all of the other is in this one."""
        if not other.shingles or not other.particulars <= self.particulars:
            return False
        return len(self.shingles & other.shingles) >= _CONTAINMENT * len(other.shingles)


class Duplicates:
    """The groups of one ranking."""

    def __init__(
        self, text_hash: Callable[[str], str], chunk: Callable[[str], Chunk], queries: Sequence[str] = ()
    ) -> None:
        """`text_hash` and `chunk` give what belongs to a chunk id; the second is dear and asked for a few only. `queries` are what
        the ranking answers."""
        self._asked = frozenset(word for query_text in queries for word in _WORD.findall(query_text.lower()))
        self._text_hash = text_hash
        self._chunk = chunk

    def remove(self, ranked: Mapping[str, float], depth: int) -> tuple[dict[str, float], list[Duplicate]]:
        """The ranking with one chunk a group, at the place and with the score of the group's best, and what was left out.

        Near duplicates are looked for among the best `depth` only.
        """
        groups = self._same(ranked)
        stages = {member: "duplicate" for members in groups.values() for member in members[1:]}
        for leader, other in self._near(islice(groups, depth)):
            stages[other] = "near_duplicate"
            groups[leader] += groups.pop(other)
        kept: dict[str, float] = {}
        removed = []
        for leader, members in groups.items():
            shown = self._original(members)
            kept[shown] = ranked[leader]
            stage = stages.get(shown, "duplicate")
            removed += [Duplicate(each, shown, stages.get(each, stage)) for each in members if each != shown]
        return kept, removed

    def _same(self, ranked: Iterable[str]) -> dict[str, list[str]]:
        """Members of each group by its best, all in ranked order."""
        leaders: dict[str, str] = {}
        groups: dict[str, list[str]] = {}
        for chunk_id in ranked:
            leader = leaders.setdefault(self._text_hash(chunk_id), chunk_id)
            groups.setdefault(leader, []).append(chunk_id)
        return groups

    def _near(self, leaders: Iterable[str]) -> list[tuple[str, str]]:
        """Pairs of a leader and a lower one that says nearly the same."""
        kept: dict[str, _Wording] = {}
        pairs = []
        for leader in leaders:
            wording = _Wording(self._chunk(leader), self._asked)
            alike = next((other for other, known in kept.items() if known.is_like(wording)), None)
            if alike is None:
                kept[leader] = wording
            else:
                pairs.append((alike, leader))
        return pairs

    def _original(self, members: list[str]) -> str:
        if len(members) == 1:
            return members[0]
        return next((each for each in members if not _is_forward(self._chunk(each))), members[0])


def _is_forward(chunk: Chunk) -> bool:
    return any(chunk.metadata.get(field) for field in _FORWARD_FIELDS)
