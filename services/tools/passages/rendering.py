"""Passages as a model is shown them: no more text than it can use, and what is left out is said."""

import copy
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kit.language.sentences import UnitKind, split_units
from kit.llm import estimate_tokens
from kit.vocabulary.passages import ORIGIN_FIELDS, innermost, one_line, subject_of
from services.tools.models import Passage
from services.tools.passages.retrieval import Degradation

_SENTENCE_SHARE = 0.5
"""Of what fits, below which a text is cut within a sentence instead of before it."""
_QUERY_CHARACTERS = 80


def fitted(passages: Sequence[Passage], budget_tokens: int) -> list[Passage]:
    """All of the passages within the budget: long ones are cut to the largest size that lets each have as much."""
    costs = [estimate_tokens(passage.text) for passage in passages]
    share = _share(costs, budget_tokens)
    return [passage if cost <= share else cut(passage, share) for passage, cost in zip(passages, costs, strict=True)]


def _share(costs: Sequence[int], budget: int) -> int:
    for index, cost in enumerate(sorted(costs)):
        sharers = len(costs) - index
        if cost * sharers > budget:
            return budget // sharers
        budget -= cost
    return max(costs, default=0)


def cut(passage: Passage, tokens: int) -> Passage:
    """The beginning of the passage that has at most so many tokens, up to the end of a sentence where that leaves enough."""
    text = passage.text
    if estimate_tokens(text) <= tokens:
        return passage
    words_end = bisect_right(range(1, len(text)), tokens, key=lambda end: estimate_tokens(text[:end]))
    while estimate_tokens(text[:words_end]) > tokens:  # the estimate reads more as English, or less, as a text grows
        words_end -= 1 + words_end // 20
    ends = [unit.end for unit in split_units(text[:words_end]) if unit.kind is not UnitKind.LIST]
    whole = [end for end in ends if end < words_end]
    if whole and max(whole) >= _SENTENCE_SHARE * words_end:
        return with_text(passage, text[: max(whole)])
    space = text.rfind(" ", 0, words_end)
    return with_text(passage, text[: space if space > 0 else words_end].rstrip())


def with_text(passage: Passage, text: str) -> Passage:
    """The passage with the beginning of its text, in its message as well: what is cited is what was shown."""
    hit = copy.deepcopy(passage.hit)
    if hit is not None:
        hit.chunk.text = text
    return replace(passage, text=text, is_cut=True, hit=hit)


def excerpt(passage: Passage, start: int, end: int) -> Passage:
    """These characters of the passage as a passage of their own, with their lines on the page: what is cited is what was shown."""
    hit = copy.deepcopy(passage.hit)
    if hit is not None:
        chunk = hit.chunk
        chunk.text = passage.text[start:end]
        chunk.char_end = chunk.char_start + end
        chunk.char_start += start
        lines = [
            box for box in chunk.bounding_boxes if box.char_end == 0 or (box.char_start < end and box.char_end > start)
        ]
        for box in lines:
            if box.char_end:
                box.char_start, box.char_end = max(box.char_start - start, 0), min(box.char_end, end) - start
        kept = [copy.deepcopy(box) for box in lines]
        del chunk.bounding_boxes[:]
        chunk.bounding_boxes.extend(kept)
    return replace(passage, text=passage.text[start:end], is_cut=(start, end) != (0, len(passage.text)), hit=hit)


def boxes(passage: Passage) -> list[dict[str, float]]:
    """The lines of the passage on their pages, in points from the top left."""
    lines = passage.hit.chunk.bounding_boxes if passage.hit is not None else ()
    return [
        {"page": box.page, **{side: round(getattr(box, side), 1) for side in ("x0", "y0", "x1", "y1")}} for box in lines
    ]


def readable_text(passage: Passage) -> str:
    """The text with the headings above it, which give it its subject."""
    subject = subject_of(passage.heading_path)
    return f"{subject}\n{passage.text}" if subject else passage.text


def described(passage: Passage) -> dict[str, Any]:
    """JSON of a passage, without what is not known of it. A run puts the number that the passage has there in the place of `source`
    and quotes it once; its id stays, by which other tools get it."""
    source = {"document": one_line(passage.document_name), "page": passage.page, "text": passage.text}
    optional = {
        "document_id": passage.document_id,
        "heading_path": innermost(passage.heading_path),
        **{key: one_line(passage.metadata.get(key, "")) for key in ORIGIN_FIELDS},
        "score": round(passage.score, 4),
        "is_cut": passage.is_cut,
    }
    known = {key: value for key, value in optional.items() if value}
    return {
        "chunk_id": passage.chunk_id,
        "source": {key: value for key, value in source.items() if value},
        **known,
    }


def all_described(passages: Sequence[Passage]) -> list[dict[str, Any]]:
    """In their order."""
    return [described(passage) for passage in passages]


def citable(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Those that are of documents: what a model wrote itself is no evidence."""
    return tuple(passage for passage in passages if passage.hit is not None)


def counted(passages: Sequence[Passage]) -> str:
    """ "6 passages from 3 documents" """
    documents = len({passage.document_id for passage in citable(passages)})
    of_documents = f" from {_count(documents, 'document')}" if documents else ""
    return f"{_count(len(passages), 'passage')}{of_documents}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def quoted(text: str) -> str:
    """A query or claim in a summary."""
    line = " ".join(text.split())
    return f"“{line if len(line) <= _QUERY_CHARACTERS else line[: _QUERY_CHARACTERS - 1] + '…'}”"


def degradations(degraded: Sequence[Degradation]) -> dict[str, Any]:
    """The part of a content that says what was done in a lesser way; nothing where all went well."""
    if not degraded:
        return {}
    return {"degraded": [{"part": each.part, "reason": each.reason, "message": each.message} for each in degraded]}


def sentences(*parts: str, degraded: Sequence[Degradation] = ()) -> str:
    """A summary: what came out, then what was done in a lesser way."""
    return " ".join(part for part in (*parts, *(each.message for each in degraded)) if part)
