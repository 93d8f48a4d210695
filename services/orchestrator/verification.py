"""Is each sentence carried by what it cites? Judged without a model, by the words: the content words of a sentence must stand in
the cited passages, and every number and name in it must."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from services.orchestrator.answering.citations import CitedSentence, cited_numbers, cited_sentences
from services.orchestrator.language.cues import is_negated
from services.orchestrator.language.sentences import split_units
from services.orchestrator.language.terms import stem, tokens
from services.orchestrator.log.events import Citation, Evidence, SentenceVerdict, SupportStatus, Verification

SUPPORTED = "supported"
UNSUPPORTED = "unsupported"
SUPPORT_THRESHOLD = 0.6
"""Share of a sentence's content words that its passages must contain. Copied sentences have 1. A choice, not a measurement:
it lets a paraphrase change two words in five. To be set by evals/ on labelled claims."""


_ELLIPTICAL_TERMS = 2
"""A sentence with this few content words means nothing without its question."""
_SOURCE_WORDS = frozenset(map(stem, ("source", "document", "reference", "citation", "passage", "file", "page")))
_EMPTY_WORDS = frozenset(map(stem, ("yes", "no", "see", "answer", "question")))
_TABLE_RULE = re.compile(r"[ \t]*\n[ \t]*\|?[ \t]*:?-{2,}")
_CLOSE = 0.6
"""Share of words that two sentences have in common when one can be read as denying the other."""
_BLANK_LINES = re.compile(r"\n\s*\n\s*")


@dataclass(frozen=True)
class _Terms:
    content: frozenset[str]
    strict: frozenset[str]
    """Numbers and names: these must all be found."""


@lru_cache(maxsize=4096)
def _terms(text: str) -> _Terms:
    content = [token for token in tokens(text) if not token.is_stopword]
    strict = frozenset(token.stem for token in content if token.is_exact)
    return _Terms(frozenset(token.stem for token in content), strict)


def let_go_of_texts() -> None:
    """Empties the memory of texts that were analysed, which serves one answer: a document may be deleted later."""
    _terms.cache_clear()


def coverage(sentence: str, passages: Sequence[str]) -> float:
    """Share of the sentence's content words found in the passages, 0 to 1; 0 when a number or a name is missing there."""
    wanted = _terms(sentence)
    content = wanted.content - _EMPTY_WORDS
    if not content:
        return 0.0
    found = frozenset().union(*(_terms(passage).content for passage in passages))
    if wanted.strict - found:
        return 0.0
    return len(content & found) / len(content)


class Judge:
    """Judges sentences of an answer against the evidence set.

    With `question`, a sentence too short to stand alone ("14 weeks.") is read as the answer to it: its words must stand in one
    sentence of the source together with half of the question's. Quotes need no such reading: judge them without.
    """

    def __init__(self, evidence: Sequence[Evidence], question: str = "") -> None:
        self._readable = {source.number: _readable(source) for source in evidence}
        self._units = {source.number: _units(source) for source in evidence}
        self._sentences = {source.number: [unit.text for unit in split_units(source.text)] for source in evidence}
        self._asked = _terms(question).content
        names = (_terms(f"{source.document_name} {source.number}").content for source in evidence)
        self._not_claimed = _SOURCE_WORDS.union(_EMPTY_WORDS, *names)

    def is_claim(self, sentence: str) -> bool:
        """Whether there is anything to check. Interjections ("Yes."), questions and mentions of a source say nothing."""
        return not sentence.endswith(("?", "？", "؟")) and bool(_terms(sentence).content - self._not_claimed)

    def is_mention(self, sentence: str) -> bool:
        """Whether the sentence only names its sources ("Source: handbook.pdf"): marks do that."""
        content = _terms(sentence).content
        return bool(content & _SOURCE_WORDS) and not content - self._not_claimed

    def score(self, sentence: str, numbers: Sequence[int]) -> float:
        """Share of the sentence's content words that the sources `numbers` contain, 0 to 1."""
        known = [number for number in numbers if number in self._readable]
        if self._asked and self._denies(sentence, known):
            return 0.0
        if self._asked and len(_terms(sentence).content - _EMPTY_WORDS) <= _ELLIPTICAL_TERMS:
            return max((self._elliptical_score(sentence, number) for number in known), default=0.0)
        return coverage(sentence, [self._readable[number] for number in known]) if known else 0.0

    def _denies(self, sentence: str, numbers: Sequence[int]) -> bool:
        """Whether the sentence says no where the sentence of the source that it is closest to says yes, or the other way round."""
        wanted = _terms(sentence).content - _EMPTY_WORDS
        units = [unit for number in numbers for unit in self._sentences[number]]
        shared = {unit: len(wanted & _terms(unit).content) for unit in units}
        most = max(shared.values(), default=0)
        if most < _CLOSE * len(wanted):
            return False
        closest = [unit for unit, count in shared.items() if count == most]
        if is_negated(sentence):
            return not any(is_negated(unit, loosely=True) for unit in closest)
        # A long sentence may deny something else in a clause of its own.
        alike = [unit for unit in closest if most >= _CLOSE * len(_terms(unit).content)]
        return bool(alike) and all(is_negated(unit) for unit in alike) and not is_negated(sentence, loosely=True)

    def supports(self, sentence: str, numbers: Sequence[int]) -> bool:
        return self.score(sentence, numbers) >= SUPPORT_THRESHOLD

    def best_source(self, sentence: str) -> int | None:
        """The source that carries the sentence best on its own; None when none does."""
        scored = [(self.score(sentence, (number,)), -number) for number in self._readable]
        best, negative_number = max(scored, default=(0.0, 0))
        return -negative_number if best >= SUPPORT_THRESHOLD else None

    def _elliptical_score(self, sentence: str, number: int) -> float:
        return max(
            (
                coverage(sentence, [unit])
                for unit in self._units[number]
                if len(_terms(unit).content & self._asked) >= len(self._asked) / 2
            ),
            default=0.0,
        )


def attribute(answer: str, judge: Judge) -> str:
    """The answer with a mark behind each uncited claim that one source carries on its own: small models forget to cite. Mentions of
    sources, which they make instead, are left out."""
    pieces: list[str] = []
    done = 0
    for sentence in cited_sentences(answer):
        if judge.is_mention(sentence.text):
            pieces.append(answer[done : sentence.start])
            done = sentence.stop
        elif not sentence.numbers and judge.is_claim(sentence.text):
            number = judge.best_source(sentence.text)
            pieces.append(answer[done : sentence.end] + (f" [{number}]" if number else ""))
            done = sentence.end
    return _BLANK_LINES.sub("\n\n", "".join([*pieces, answer[done:]])).strip()


def verify(answer: str, judge: Judge) -> Verification:
    """A verdict per claim."""
    verdicts: list[SentenceVerdict] = []
    good_citations = all_citations = 0
    for sentence in cited_sentences(answer):
        if not judge.is_claim(sentence.text) or _is_frame(sentence, answer):
            continue
        score = judge.score(sentence.text, sentence.numbers)
        verdicts.append(_verdict(sentence, score))
        all_citations += len(sentence.numbers)
        good_citations += _precise_citations(sentence, judge)
    supported = sum(verdict.verdict == SUPPORTED for verdict in verdicts)
    return Verification(
        sentences=tuple(verdicts),
        citation_precision=good_citations / all_citations if all_citations else 0.0,
        citation_coverage=supported / len(verdicts) if verdicts else 0.0,
        support_status=_status(supported, len(verdicts)),
    )


def _is_frame(sentence: CitedSentence, answer: str) -> bool:
    """Whether the line only introduces what follows: a heading, a lead-in, the head of a table. One with a number or a name in it
    states a fact; the columns of a table are names all the same."""
    if sentence.numbers:
        return False
    if "|" in sentence.text and _TABLE_RULE.match(answer, sentence.stop):
        return not any(character.isdigit() for character in sentence.text)
    return (sentence.text.startswith("#") or sentence.text.endswith((":", "："))) and not _terms(sentence.text).strict


def _precise_citations(sentence: CitedSentence, judge: Judge) -> int:
    """Citations without which the sentence would not be carried, or that carry it alone (ALCE, Gao et al. 2023)."""
    if not judge.supports(sentence.text, sentence.numbers):
        return 0
    others = [[other for other in sentence.numbers if other != number] for number in sentence.numbers]
    return sum(
        judge.supports(sentence.text, (number,)) or not judge.supports(sentence.text, rest)
        for number, rest in zip(sentence.numbers, others, strict=True)
    )


def _readable(source: Evidence) -> str:
    """The passage as its reader knows it: with the document's name and the headings above."""
    return "\n".join([source.document_name, *source.heading_path, source.text])


def _units(source: Evidence) -> list[str]:
    """Its sentences, each with the headings it stands under."""
    headings = " ".join(source.heading_path)
    return [f"{headings} {unit.heading} {unit.lead_in} {unit.text}" for unit in split_units(source.text)]


def _verdict(sentence: CitedSentence, score: float) -> SentenceVerdict:
    verdict = SUPPORTED if score >= SUPPORT_THRESHOLD else UNSUPPORTED
    return SentenceVerdict(sentence.text, verdict, sentence.numbers, round(score, 3))


def _status(supported: int, total: int) -> SupportStatus:
    if supported == 0:
        return SupportStatus.INSUFFICIENT
    return SupportStatus.SUPPORTED if supported == total else SupportStatus.PARTIAL


def cite(answer: str, evidence: Sequence[Evidence]) -> tuple[Citation, ...]:
    """The passages that `answer` cites, in order of first appearance, each with the words that carry the claim."""
    by_number = {source.number: source for source in evidence}
    claims: dict[int, str] = {}
    for sentence in cited_sentences(answer):
        for number in sentence.numbers:
            claims.setdefault(number, sentence.text)
    return tuple(
        _citation(by_number[number], claims.get(number, "")) for number in cited_numbers(answer) if number in by_number
    )


def _citation(source: Evidence, claim: str) -> Citation:
    quote_start, quote_end = _quote(source.text, claim)
    return Citation(
        number=source.number,
        document_id=source.document_id,
        document_name=source.document_name,
        chunk_id=source.chunk_id,
        page=source.page,
        text=source.text,
        quote_start=quote_start,
        quote_end=quote_end,
        bounding_boxes=source.bounding_boxes,
        heading_path=source.heading_path,
    )


def _quote(passage: str, claim: str) -> tuple[int, int]:
    """The unit of the passage that shares most of the claim's words; (0, 0), the whole passage, when none shares any."""
    if (start := passage.find(claim)) >= 0 and claim:
        return start, start + len(claim)
    wanted = _terms(claim).content
    shared = [(len(wanted & _terms(unit.text).content), unit) for unit in split_units(passage)]
    most = max((count for count, _ in shared), default=0)
    if most == 0:
        return 0, 0
    best = min((unit for count, unit in shared if count == most), key=lambda unit: len(unit.text))
    return best.start, best.end
