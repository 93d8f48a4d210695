"""Is each sentence of an answer carried by what it cites? And the citations that say so."""

import re
from collections.abc import Sequence

from kit.grounding import SUPPORT_THRESHOLD, Judge, content_terms
from kit.language.sentences import split_units
from services.orchestrator.answering.citations import CitedSentence, cited_numbers, cited_sentences
from services.orchestrator.log.events import Citation, Evidence, SentenceVerdict, SupportStatus, Verification

SUPPORTED = "supported"
UNSUPPORTED = "unsupported"
_TABLE_RULE = re.compile(r"[ \t]*\n[ \t]*\|?[ \t]*:?-{2,}")
_BLANK_LINES = re.compile(r"\n\s*\n\s*")


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
    introduces = sentence.text.startswith("#") or sentence.text.endswith((":", "："))
    return introduces and not content_terms(sentence.text).strict


def _precise_citations(sentence: CitedSentence, judge: Judge) -> int:
    """Citations without which the sentence would not be carried, or that carry it alone (ALCE, Gao et al. 2023)."""
    if not judge.supports(sentence.text, sentence.numbers):
        return 0
    others = [[other for other in sentence.numbers if other != number] for number in sentence.numbers]
    return sum(
        judge.supports(sentence.text, (number,)) or not judge.supports(sentence.text, rest)
        for number, rest in zip(sentence.numbers, others, strict=True)
    )


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
    wanted = content_terms(claim).content
    shared = [(len(wanted & content_terms(unit.text).content), unit) for unit in split_units(passage)]
    most = max((count for count, _ in shared), default=0)
    if most == 0:
        return 0, 0
    best = min((unit for count, unit in shared if count == most), key=lambda unit: len(unit.text))
    return best.start, best.end
