"""Citation marks in an answer: [1], [2]. A number can only come from the evidence set; what a model invents is taken out while it
streams, before anyone has seen it."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_MARK = re.compile(
    r"[\[【]\s*+(?:(?:source|quelle|doc(?:ument)?|passage)s?\s*+)?(\d++(?:\s*+[,;]\s*+\d++)*+)\s*+[\]】]", re.IGNORECASE
)
_UNFINISHED = re.compile(r"(?:[\[【]\s*+(?:[a-z]{1,9}+\s*+)?[\d\s,;]*+)++$", re.IGNORECASE)
"""Text at the end that may yet become a mark, by what follows or by a mark inside it being taken out."""
_LONGEST_NUMBER = 9
_MARKS_AT_END = re.compile(r"(?:\s*\[\d+\])+\s*$")
_PLAIN_MARK = re.compile(r"\[(\d{1,9})\]")
_MARK_AND_GAP = re.compile(r"\s*\[\d+\]")


class MarkFilter:
    """Passes streamed text on, writing each mark as [n] and dropping numbers that are not in the evidence set.

    Text from an opening bracket on is held back for as long as it may become a mark.
    """

    def __init__(self, valid: Collection[int]) -> None:
        self._valid = frozenset(valid)
        self._held = ""
        self.invented = 0

    def feed(self, text: str) -> str:
        held = self._rewritten(self._held + text)
        unfinished = _UNFINISHED.search(held)
        cut = unfinished.start() if unfinished else len(held)
        self._held = held[cut:]
        return held[:cut]

    def finish(self) -> str:
        """What was still held back."""
        ready, self._held = self._held, ""
        return ready

    def _rewritten(self, text: str) -> str:
        # Taking a mark out can make another of what stood around it: [[7]9].
        while (rewritten := _MARK.sub(self._rewrite, text)) != text:
            text = rewritten
        return text

    def _rewrite(self, match: re.Match[str]) -> str:
        numbers = [_number(digits) for digits in re.findall(r"\d+", match[1])]
        self.invented += sum(number not in self._valid for number in numbers)
        return "".join(f"[{number}]" for number in numbers if number in self._valid)


def _number(digits: str) -> int:
    """-1 for more digits than any evidence set has: int() refuses thousands of them."""
    return int(digits) if len(digits) <= _LONGEST_NUMBER else -1


@dataclass(frozen=True)
class CitedSentence:
    """One sentence of an answer, `answer[start:stop]`. `text` has no marks; `end` is where it ends, before its marks."""

    text: str
    numbers: tuple[int, ...]
    start: int
    end: int
    stop: int


_SENTENCE = re.compile(
    r"\S.*?(?:[.!?…؟।]+[\"'”’»)]*(?=(?:\s*\[\d+\])+|\s|$)|[。！？]+|(?=\n)|$)"
    r"(?:[ \t]*\[\d+\])*(?:\s*\n(?:[ \t]*\[\d+\])+(?=[ \t]*(?:\n|$)))?",  # marks behind it, or on a line of their own
    re.DOTALL,
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


_LEADING_GAP_AND_MARK = re.compile(rf"[ \t]*{_MARK.pattern}", re.IGNORECASE)
_FINAL_STOP = re.compile(r"[.!?…؟।。！？]+[\"'”’»)\]」』）]*$")
_ENDS_IN_NUMBER = re.compile(r"\d\.$")


def without_marks(text: str) -> str:
    """The text without its marks and the gaps before them."""
    return _LEADING_GAP_AND_MARK.sub("", text)


def finished_part(text: str) -> str:
    """The text up to the last sentence that is certainly finished, of a text that was cut off anywhere."""
    finished = 0
    for sentence in cited_sentences(text):
        if sentence.stop < len(text.rstrip()) or _is_finished(sentence.text):
            finished = sentence.stop
    return text[:finished].rstrip()


def _is_finished(sentence: str) -> bool:
    """Whether nothing more need have come. "It costs 3." may go on with "50", and "approx." with a word."""
    if _ENDS_IN_NUMBER.search(sentence) or _ENDS_IN_ABBREVIATION.search(sentence):
        return False
    return _FINAL_STOP.search(sentence) is not None


def cited_numbers(answer: str) -> tuple[int, ...]:
    """Numbers that are cited, in order of first appearance."""
    return tuple(dict.fromkeys(int(number) for number in _PLAIN_MARK.findall(answer)))
