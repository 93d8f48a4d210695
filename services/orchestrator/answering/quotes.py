"""The citations of an answer: one quote a mark. A mark opens exactly the words that it stands behind came from, and marks count
1, 2, 3 in order of appearance."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from kit.grounding import Terms, content_terms
from kit.language.sentences import split_units
from services.orchestrator.answering.citations import cited_sentences
from services.orchestrator.answering.marks import find_marks
from services.orchestrator.log.events import BoundingBox, Citation, Evidence, SentenceVerdict, Verification
from services.orchestrator.verification.claims import split_claims

_MARK = re.compile(r"\[(\d{1,9})\]")
_MARKS_ON_A_LINE_OF_THEIR_OWN = re.compile(r"[ \t]*\n\s*((?:\[\d{1,9}\][ \t]*)+)(?=\n|$)")
_LEAST_CLAIM_TERMS = 2
"""What stands before a mark within a sentence is a claim of its own from this many content words on."""


NO_SPANS: Mapping[tuple[int, str], tuple[int, int]] = {}


@dataclass(frozen=True)
class Quote:
    """Characters of a passage; none for the whole passage."""

    source: int
    """Number of the passage in the evidence set."""
    start: int
    end: int


@dataclass(frozen=True)
class Quoted:
    """A text whose marks are the numbers of its citations."""

    text: str
    citations: tuple[Citation, ...]
    sources: Mapping[int, int]
    """Number of a citation → number of its passage in the evidence set."""


def number_quotes(
    answer: str, evidence: Sequence[Evidence], spans: Mapping[tuple[int, str], tuple[int, int]] = NO_SPANS
) -> Quoted:
    """The answer, whose marks are numbers of passages, with one number a quote. Marks of unknown passages are taken out. `spans`:
    the words that carry a claim, by passage and claim, where a judge has named them."""
    terms = cache(content_terms)
    answer = _MARKS_ON_A_LINE_OF_THEIR_OWN.sub(lambda match: f" {match[1].rstrip()}", answer)
    by_number = {source.number: source for source in evidence}
    numbers: dict[Quote, int] = {}
    pieces: list[str] = []
    done = 0
    for start, end, source, claim in _marks(answer, terms):
        pieces.append(answer[done:start].rstrip(" ") if source not in by_number else answer[done:start])
        done = end
        if source in by_number:
            quote = Quote(source, *(spans.get((source, claim)) or closest_words(by_number[source].text, claim, terms)))
            pieces.append(f"[{numbers.setdefault(quote, len(numbers) + 1)}]")
    text = "".join([*pieces, answer[done:]])
    return Quoted(text, citations_of(numbers, evidence), {number: quote.source for quote, number in numbers.items()})


def citations_of(numbers: Mapping[Quote, int], evidence: Sequence[Evidence]) -> tuple[Citation, ...]:
    """The citations of quotes by their numbers, in the order of the quotes."""
    by_number = {source.number: source for source in evidence}
    return tuple(citation(by_number[quote.source], quote, number) for quote, number in numbers.items())


def citation(source: Evidence, quote: Quote, number: int) -> Citation:
    return Citation(
        number=number,
        document_id=source.document_id,
        document_name=source.document_name,
        chunk_id=source.chunk_id,
        page=source.page,
        text=source.text,
        quote_start=quote.start,
        quote_end=quote.end,
        bounding_boxes=_boxes_of(source, quote),
        heading_path=source.heading_path,
        origin=source.origin,
    )


def around_quote(whole: Citation, room: int) -> Citation:
    """The citation with at most so many characters of its passage around its quote, or with all of the quote."""
    if len(whole.text) <= room:
        return whole
    start = max(0, whole.quote_start - max(0, room - (whole.quote_end - whole.quote_start)) // 2)
    end = max(whole.quote_end, start + room)
    boxes = tuple(
        replace(box, char_start=box.char_start - start, char_end=box.char_end - start)
        for box in whole.bounding_boxes
        if box.char_start >= start and box.char_end <= end
    )
    return replace(
        whole,
        text=whole.text[start:end],
        quote_start=whole.quote_start - start,
        quote_end=whole.quote_end - start,
        bounding_boxes=boxes,
    )


def _boxes_of(source: Evidence, quote: Quote) -> tuple[BoundingBox, ...]:
    """The lines of the quote; all of the passage where the quote is the whole passage, or where it is not known which line is
    where."""
    boxes = tuple(source.bounding_boxes)
    if quote.start >= quote.end:
        return boxes
    return tuple(box for box in boxes if box.char_start < quote.end and quote.start < box.char_end) or boxes


def placed(verification: Verification, text: str) -> Verification:
    """The verdicts with the places and the citation numbers that their claims have in the text."""
    left = split_claims(text)
    sentences = []
    for verdict in verification.sentences:
        index = (
            None if verdict.removed else next((i for i, each in enumerate(left) if each.text == verdict.sentence), None)
        )
        if index is None:
            sentences.append(replace(verdict, citations=()))
            continue
        claim = left.pop(index)
        numbers = claim.numbers if verdict.citations else ()
        sentences.append(replace(verdict, citations=numbers, start=claim.start, end=claim.end))
    return replace(verification, sentences=tuple(sentences))


def placed_quotes(verification: Verification, text: str) -> Verification:
    """The verdicts on quotes with the places that they have in the text, which is made of them in their order."""
    sentences: list[SentenceVerdict] = []
    done = 0
    for verdict in verification.sentences:
        if (start := text.find(verdict.sentence, done)) >= 0:
            done = start + len(verdict.sentence)
            sentences.append(replace(verdict, start=start, end=done))
        else:
            sentences.append(verdict)
    return replace(verification, sentences=tuple(sentences))


def _marks(answer: str, terms: Terms) -> Iterator[tuple[int, int, int, str]]:
    """Each mark's span, its number and the words that it stands behind."""
    for sentence in cited_sentences(answer):
        since = sentence.start
        claim = sentence.text
        for match in find_marks(answer, sentence.start, sentence.stop):
            before = _MARK.sub("", answer[since : match.start()]).strip()
            if len(terms(before).content) >= _LEAST_CLAIM_TERMS:
                claim = before
            since = match.end()
            yield match.start(), match.end(), int(match[1]), claim


def closest_words(passage: str, claim: str, terms: Terms = content_terms) -> tuple[int, int]:
    """Where the claim stands in the passage, white space apart; else the unit that shares most of its words; (0, 0), the whole
    passage, when none shares any."""
    if words := claim.split():
        found = re.search(r"\s+".join(map(re.escape, words)), passage)
        if found:
            return found.span()
    wanted = terms(claim).content
    shared = [(len(wanted & terms(unit.text).content), unit) for unit in split_units(passage)]
    most = max((count for count, _ in shared), default=0)
    if most == 0:
        return 0, 0
    best = min((unit for count, unit in shared if count == most), key=lambda unit: len(unit.text))
    return best.start, best.end
