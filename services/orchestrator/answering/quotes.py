"""The citations of an answer: one quote a mark. A mark opens exactly the words that it stands behind came from, and marks count
1, 2, 3 in order of appearance."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kit.grounding import content_terms
from kit.language.sentences import split_units
from services.orchestrator.answering.citations import cited_sentences
from services.orchestrator.log.events import Citation, Evidence, Verification

_MARK = re.compile(r"\[(\d{1,9})\]")
_MARKS_ON_A_LINE_OF_THEIR_OWN = re.compile(r"[ \t]*\n\s*((?:\[\d{1,9}\][ \t]*)+)(?=\n|$)")
_LEAST_CLAIM_TERMS = 2
"""What stands before a mark within a sentence is a claim of its own from this many content words on."""


@dataclass(frozen=True)
class Quote:
    """Characters of a passage; none where the whole passage is meant."""

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


def number_quotes(answer: str, evidence: Sequence[Evidence]) -> Quoted:
    """The answer, whose marks are numbers of passages, with one number a quote. Marks of unknown passages are taken out."""
    answer = _MARKS_ON_A_LINE_OF_THEIR_OWN.sub(lambda match: f" {match[1].rstrip()}", answer)
    by_number = {source.number: source for source in evidence}
    numbers: dict[Quote, int] = {}
    pieces: list[str] = []
    done = 0
    for start, end, source, claim in _marks(answer):
        pieces.append(answer[done:start].rstrip(" ") if source not in by_number else answer[done:start])
        done = end
        if source in by_number:
            quote = Quote(source, *closest_words(by_number[source].text, claim))
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
        bounding_boxes=source.bounding_boxes,
        heading_path=source.heading_path,
    )


def renumbered(verification: Verification, quoted: Quoted) -> Verification:
    """The verdicts with the numbers that stand in the text."""
    left = list(cited_sentences(quoted.text))
    sentences = []
    for verdict in verification.sentences:
        index = next((i for i, each in enumerate(left) if each.text == verdict.sentence), None)
        own = left.pop(index).numbers if index is not None else ()
        sentences.append(replace(verdict, citations=own))
    return replace(verification, sentences=tuple(sentences))


def _marks(answer: str) -> Iterator[tuple[int, int, int, str]]:
    """Each mark's span, its number and the words that it stands behind."""
    for sentence in cited_sentences(answer):
        since = sentence.start
        claim = sentence.text
        for match in _MARK.finditer(answer, sentence.start, sentence.stop):
            before = _MARK.sub("", answer[since : match.start()]).strip()
            if len(content_terms(before).content) >= _LEAST_CLAIM_TERMS:
                claim = before
            since = match.end()
            yield match.start(), match.end(), int(match[1]), claim


def closest_words(passage: str, claim: str) -> tuple[int, int]:
    """Where the claim stands in the passage, white space apart; else the unit that shares most of its words; (0, 0), the whole
    passage, when none shares any."""
    if words := claim.split():
        found = re.search(r"\s+".join(map(re.escape, words)), passage)
        if found:
            return found.span()
    wanted = content_terms(claim).content
    shared = [(len(wanted & content_terms(unit.text).content), unit) for unit in split_units(passage)]
    most = max((count for count, _ in shared), default=0)
    if most == 0:
        return 0, 0
    best = min((unit for count, unit in shared if count == most), key=lambda unit: len(unit.text))
    return best.start, best.end
