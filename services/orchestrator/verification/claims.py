"""Splits an answer into claims: its sentences, and the parts of a sentence that have citations of their own or are clauses of their
own."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kit.grounding import content_terms
from services.orchestrator.answering.citations import CitedSentence, cited_numbers, cited_sentences, without_marks

_LEAST_TERMS = 3
"""Content words of a part that is a claim of its own: fewer seldom make a statement."""
_MARKS_INSIDE = re.compile(r"(?:\s*\[\d{1,9}\])+(?=[,;:]?\s*[^\s.!?…؟।。！？])")
_CONTRASTS = (
    "but|whereas|aber|wohingegen|mais|tandis que|alors que|pero|mientras que|ma|mas|но|тогда как|אבל|ואילו|لكن|ama|oysa"
)
"""None that may as well say when something holds, as "while" does: what is claimed is not true without it."""
_CLAUSE_END = re.compile(rf"[;；](?=\s)|[,，](?=\s+(?:{_CONTRASTS})\s+(?!also\b|auch\b))", re.IGNORECASE)
_LIST_MARK = re.compile(r"^\s*(?:[-*•–]|\d{1,3}[.)]|#{1,6})\s+")
_LIST_NUMBER = re.compile(r"\d{1,3}[.)]")
_TABLE_RULE = re.compile(r"[ \t]*\n[ \t]*\|?[ \t]*:?-{2,}")
_EDGE = " \t\r\n,;；，"


@dataclass(frozen=True)
class Claim:
    """A statement of an answer. `answer[start:end]` are its words and `answer[end:stop]` the marks behind them."""

    text: str
    """Without marks."""
    numbers: tuple[int, ...]
    """What it cites."""
    start: int
    end: int
    stop: int
    sentence: int
    """Which sentence of the answer it is, or is a part of."""
    whole: str
    """That sentence, without marks."""
    is_frame: bool = False
    """Whether it only introduces what follows: a heading, a lead-in, the head of a table."""


def split_claims(answer: str) -> list[Claim]:
    """All sentences of the answer in order, those that claim nothing included; a table's row is one."""
    return [
        claim
        for number, sentence in enumerate(cited_sentences(answer))
        for claim in _claims_of(answer, number, sentence)
    ]


def _claims_of(answer: str, number: int, sentence: CitedSentence) -> Iterator[Claim]:
    parts = [(sentence.start, sentence.stop)] if "|" in sentence.text else list(_parts(answer, sentence))
    if len(parts) == 1:
        text = _plain(sentence.text)
        is_frame = _is_frame(sentence, answer)
        yield Claim(
            text, sentence.numbers, sentence.start, sentence.end, sentence.stop, number, sentence.text, is_frame
        )
        return
    cited = [cited_numbers(answer[start:stop]) for start, stop in parts]
    for place, (start, stop) in enumerate(parts):
        # A clause without a mark rests on the next one.
        numbers = next((each for each in cited[place:] if each), ())
        words = answer[start:stop]
        end = start + len(re.sub(r"(?:\s*\[\d{1,9}\])+[,;]?\s*$", "", words).rstrip())
        yield Claim(_plain(without_marks(words)), numbers, start, end, stop, number, sentence.text)


def _parts(answer: str, sentence: CitedSentence) -> Iterator[tuple[int, int]]:
    """Spans of the sentence, one for each statement. What would be too short stays with what stands before it, or behind it."""
    region = answer[sentence.start : sentence.stop]
    cuts = sorted({match.end() for pattern in (_MARKS_INSIDE, _CLAUSE_END) for match in pattern.finditer(region)})
    edges = [0]
    for cut in cuts:
        if _states(region[edges[-1] : cut]) and _states(region[cut:]):
            edges.append(cut)
    for start, stop in zip(edges, [*edges[1:], len(region)], strict=True):
        yield sentence.start + start, sentence.start + stop


def _is_frame(sentence: CitedSentence, answer: str) -> bool:
    """One with a number or a name in it states a fact; a table's columns are names all the same, and an item of a list
    has a number."""
    if sentence.numbers:
        return False
    if _LIST_NUMBER.fullmatch(sentence.text):
        return answer[sentence.stop : sentence.stop + 1] == " "
    if "|" in sentence.text and _TABLE_RULE.match(answer, sentence.stop):
        return not any(character.isdigit() for character in sentence.text)
    introduces = sentence.text.startswith("#") or sentence.text.endswith((":", "："))
    return introduces and not content_terms(sentence.text).strict


def _states(words: str) -> bool:
    return len(content_terms(without_marks(words)).content) >= _LEAST_TERMS


def _plain(text: str) -> str:
    return _LIST_MARK.sub("", text).strip(_EDGE)
