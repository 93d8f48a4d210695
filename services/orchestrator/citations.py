"""Citation marks in an answer: [1], [2]. A number can only come from the evidence set; what a model invents is taken out while it
streams, before anyone has seen it."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_MARK = re.compile(
    r"[\[【]\s*(?:(?:source|quelle|doc(?:ument)?|passage)s?\s*)?(\d+(?:\s*[,;]\s*\d+)*)\s*[\]】]", re.IGNORECASE
)
_OPEN = ("[", "【")
_LONGEST_MARK = 32
"""An open bracket that has not closed after so many characters is not a citation."""
_MARKS_AT_END = re.compile(r"(?:\s*\[\d+\])+\s*$")
_PLAIN_MARK = re.compile(r"\[(\d+)\]")
_MARK_AND_GAP = re.compile(r"\s*\[\d+\]")


class MarkFilter:
    """Passes streamed text on, writing each mark as [n] and dropping numbers that are not in the evidence set.

    Text from an opening bracket on is held back until it is known whether it is a mark.
    """

    def __init__(self, valid: Collection[int]) -> None:
        self._valid = frozenset(valid)
        self._held = ""
        self.invented = 0

    def feed(self, text: str) -> str:
        self._held += text
        cut = self._safe_length()
        ready, self._held = self._held[:cut], self._held[cut:]
        return _MARK.sub(self._rewrite, ready)

    def finish(self) -> str:
        """What was still held back."""
        ready, self._held = self._held, ""
        return _MARK.sub(self._rewrite, ready)

    def _safe_length(self) -> int:
        opening = max(self._held.rfind(bracket) for bracket in _OPEN)
        rest = self._held[opening:] if opening >= 0 else ""
        still_open = opening >= 0 and not any(close in rest for close in "]】") and len(rest) <= _LONGEST_MARK
        return opening if still_open else len(self._held)

    def _rewrite(self, match: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", match[1])]
        self.invented += sum(number not in self._valid for number in numbers)
        return "".join(f"[{number}]" for number in numbers if number in self._valid)


@dataclass(frozen=True)
class CitedSentence:
    """One sentence of an answer, `answer[start:stop]`. `text` has no marks; `end` is where it ends, before its marks."""

    text: str
    numbers: tuple[int, ...]
    start: int
    end: int
    stop: int


_SENTENCE = re.compile(
    r"\S.*?(?:[.!?…؟।]+[\"'”’»)]*(?=(?:\s*\[\d+\])+|\s|$)|[。！？]+|(?=\n)|$)(?:[ \t]*\[\d+\])*", re.DOTALL
)
_ENDS_IN_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|[A-Za-z]\.[A-Za-z]|mr|mrs|ms|dr|prof|st|vs|no|fig|approx|inc|ltd|co|etc)\.)$", re.IGNORECASE
)


def cited_sentences(answer: str) -> Iterator[CitedSentence]:
    """Sentences of `answer` in order, each with the marks that follow it. A line is never part of two sentences."""
    start = 0
    while match := _SENTENCE.search(answer, start):
        end = match.end()
        while _ENDS_IN_ABBREVIATION.search(answer[match.start() : end]) and (more := _SENTENCE.search(answer, end)):
            end = more.end()
        whole = answer[match.start() : end]
        marks = _MARKS_AT_END.search(whole)
        text = whole[: marks.start()] if marks else whole
        numbers = tuple(dict.fromkeys(int(number) for number in _PLAIN_MARK.findall(whole)))
        plain = _MARK_AND_GAP.sub("", text).strip()
        if plain:
            yield CitedSentence(plain, numbers, match.start(), match.start() + len(text.rstrip()), end)
        start = max(end, match.start() + 1)


def cited_numbers(answer: str) -> tuple[int, ...]:
    """Numbers that are cited, in order of first appearance."""
    return tuple(dict.fromkeys(int(number) for number in _PLAIN_MARK.findall(answer)))
