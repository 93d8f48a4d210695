"""Is each sentence carried by what it cites? Judged without a model, by the words: the content words of a sentence must stand in
the cited passages, and every number and name in it must."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from services.orchestrator.citations import CitedSentence, cited_numbers, cited_sentences
from services.orchestrator.events import Citation, Evidence, SentenceVerdict, SupportStatus, Verification
from services.orchestrator.extractive.sentences import split_units
from services.orchestrator.extractive.terms import tokens

SUPPORTED = "supported"
UNSUPPORTED = "unsupported"
SUPPORT_THRESHOLD = 0.6
"""Share of a sentence's content words that its passages must contain. Copied sentences have 1; honest paraphrases of a 7 B model
mostly lie above 0.65, answers from a model's own memory below 0.4."""


@dataclass(frozen=True)
class _Terms:
    content: frozenset[str]
    strict: frozenset[str]
    """Numbers and names: these must all be found."""


@lru_cache(maxsize=4096)
def _terms(text: str) -> _Terms:
    content = [token for token in tokens(text) if not token.is_stopword]
    strict = frozenset(token.stem for token in content if token.is_number or token.is_name)
    return _Terms(frozenset(token.stem for token in content), strict)


def coverage(sentence: str, passages: Sequence[str]) -> float:
    """Share of the sentence's content words found in the passages, 0 to 1; 0 when a number or a name is missing there."""
    wanted = _terms(sentence)
    if not wanted.content:
        return 0.0
    found = frozenset().union(*(_terms(passage).content for passage in passages))
    if wanted.strict - found:
        return 0.0
    return len(wanted.content & found) / len(wanted.content)


def attribute(answer: str, evidence: Sequence[Evidence]) -> str:
    """The answer with a mark behind each uncited sentence that one passage carries on its own. Small models forget to cite."""
    pieces: list[str] = []
    done = 0
    for sentence in cited_sentences(answer):
        number = None if sentence.numbers else _best_source(sentence.text, evidence)
        if number is not None:
            pieces += [answer[done : sentence.end], f" [{number}]"]
            done = sentence.end
    return "".join([*pieces, answer[done:]])


def _best_source(sentence: str, evidence: Sequence[Evidence]) -> int | None:
    scored = [(coverage(sentence, [_readable(source)]), -source.number) for source in evidence]
    best, negative_number = max(scored, default=(0.0, 0))
    return -negative_number if best >= SUPPORT_THRESHOLD else None


def verify(answer: str, evidence: Sequence[Evidence]) -> Verification:
    """A verdict per sentence. Sentences without content words ("Yes.", "In short:") are not claims and are left out."""
    by_number = {source.number: source for source in evidence}
    verdicts: list[SentenceVerdict] = []
    good_citations = all_citations = 0
    for sentence in cited_sentences(answer):
        if not _terms(sentence.text).content:
            continue
        sources = [_readable(by_number[number]) for number in sentence.numbers if number in by_number]
        score = coverage(sentence.text, sources) if sources else 0.0
        verdicts.append(_verdict(sentence, score))
        all_citations += len(sources)
        good_citations += sum(coverage(sentence.text, [source]) >= SUPPORT_THRESHOLD for source in sources)
    supported = sum(verdict.verdict == SUPPORTED for verdict in verdicts)
    return Verification(
        sentences=tuple(verdicts),
        citation_precision=good_citations / all_citations if all_citations else 0.0,
        citation_coverage=supported / len(verdicts) if verdicts else 0.0,
        support_status=_status(supported, len(verdicts)),
    )


def _readable(source: Evidence) -> str:
    """The passage as its reader knows it: with the document's name and the headings above."""
    return "\n".join([source.document_name, *source.heading_path, source.text])


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
