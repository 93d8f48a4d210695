"""Is each sentence of an answer carried by what it cites?"""

import re
from collections.abc import Sequence

from kit.grounding import SUPPORT_THRESHOLD, Judge, content_terms
from kit.observability.telemetry import span
from services.orchestrator.answering.citations import CitedSentence, cited_sentences
from services.orchestrator.log.events import Citation, SentenceVerdict, SupportStatus, Verification

SUPPORTED = "supported"
UNSUPPORTED = "unsupported"
_TABLE_RULE = re.compile(r"[ \t]*\n[ \t]*\|?[ \t]*:?-{2,}")
_BLANK_LINES = re.compile(r"\n\s*\n\s*")
_WORD = re.compile(r"\w+")


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
    with span("verify") as traced:
        verification = _verified(answer, judge)
        traced.set_attribute("groundwork.verification.claims", len(verification.sentences))
        traced.set_attribute("groundwork.verification.support", verification.support_status.value)
    return verification


def _verified(answer: str, judge: Judge) -> Verification:
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


def verify_quotes(sentences: Sequence[str], citations: Sequence[Citation]) -> Verification:
    """A verdict per sentence of an answer that is put together from quotes, each with the citation of the same place: it is
    supported when the words of its citation are its own, but for white space, list marks and the source's own footnote marks."""
    verdicts = tuple(
        SentenceVerdict(
            sentence, SUPPORTED if (same := _is_quote(sentence, each)) else UNSUPPORTED, (each.number,), float(same)
        )
        for sentence, each in zip(sentences, citations, strict=True)
    )
    supported = sum(verdict.verdict == SUPPORTED for verdict in verdicts)
    share = supported / len(verdicts) if verdicts else 0.0
    return Verification(verdicts, share, share, _status(supported, len(verdicts)))


def _is_quote(sentence: str, source: Citation) -> bool:
    """Whether all words of the sentence stand in the quoted place, or as a row's columns and captions in its passage, in order."""
    quote = _WORD.findall(source.text[source.quote_start : source.quote_end])
    around = _WORD.findall("\n".join([source.document_name, *source.heading_path, source.text]))
    position = 0
    for word in _WORD.findall(sentence):
        if word in quote[position:]:
            position = quote.index(word, position) + 1
        elif word not in around:
            return False
    return position > 0
