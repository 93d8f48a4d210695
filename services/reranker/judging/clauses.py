"""The clauses of a text, and which of them deny what they say."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.reranker.judging.reading import Word

_BREAK = re.compile(r"[,;:.!?()…–—、，；：。！？؛،]|\s-\s")


class Clauses:
    """The clauses of a text, by the position of its words."""

    def __init__(self, text: str, words: Sequence["Word"]) -> None:
        self._words = words
        self.number = _numbers(text, words)
        """Of each word."""

    @cached_property
    def denied(self) -> frozenset[int]:
        """The clauses that deny what they say: with a denial or a word that forbids, and not with both."""
        found: dict[int, set[bool]] = {}
        for word, number in zip(self._words, self.number, strict=True):
            if "negation" in word.cues:
                found.setdefault(number, set()).add("forbidding" in word.cues)
        return frozenset(number for number, kinds in found.items() if len(kinds) == 1)

    def words(self, number: int) -> list[int]:
        """Positions of a clause's words."""
        return [place for place, own in enumerate(self.number) if own == number]


def _numbers(text: str, words: Sequence["Word"]) -> list[int]:
    found: list[int] = []
    last: Word | None = None
    number = 0
    for word in words:
        if last is not None and (
            word.unit != last.unit
            or _BREAK.search(text, last.end, word.start)
            or "joins" in word.cues
            or "without" in word.cues
        ):
            number += 1
        found.append(number)
        last = word
    return found
