"""The sentences of an answer with the marks [1], [2] that cite for them. marks.py reads marks from a model's stream."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.orchestrator.answering.marks import MARK, find_marks

_MARKS_AT_END = re.compile(r"(?:\s*\[\d+\])+\s*$")
_MARK_AND_GAP = re.compile(r"\s*\[\d+\]")


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
        numbers = tuple(dict.fromkeys(int(mark[1]) for mark in find_marks(answer, match.start(), end)))
        plain = _MARK_AND_GAP.sub("", text).strip()
        if plain:
            yield CitedSentence(plain, numbers, match.start(), match.start() + len(text.rstrip()), end)
        start = max(end, match.start() + 1)


_LEADING_GAP_AND_MARK = re.compile(rf"[ \t]*{MARK.pattern}", re.IGNORECASE)
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
    return tuple(dict.fromkeys(int(mark[1]) for mark in find_marks(answer)))
