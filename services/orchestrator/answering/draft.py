"""An answer before it is published: the text, its method, its citations, and what the check of its claims says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kit.llm import FinishReason
from services.orchestrator import without_model as extractive
from services.orchestrator.answering.quotes import Quote, citation, number_quotes, placed, placed_quotes
from services.orchestrator.log.events import (
    Answer,
    AnswerStatus,
    Citation,
    Conflict,
    Evidence,
    SupportStatus,
    Verification,
)
from services.orchestrator.verification.consequences import CheckedAnswer
from services.orchestrator.verification.quoting import verify_quotes
from services.orchestrator.verification.verdicts import WORDS, Verdict

MODEL, EXTRACTIVE = "model", "extractive"

_NOTHING_CLAIMED = Verification((), 0.0, 0.0, SupportStatus.INSUFFICIENT)
"""Of a model that was asked for an answer from documents and says nothing of them."""
_ALL_CARRIED = (SupportStatus.SUPPORTED, SupportStatus.SIMILAR_WORDING)

_LIKELY, _UNCERTAIN = 0.75, 0.5
"""Calibrated probabilities from which on an answer is called likely, and uncertain."""


def answer_status(confidence: float) -> AnswerStatus:
    if confidence >= _LIKELY:
        return AnswerStatus.LIKELY
    return AnswerStatus.UNCERTAIN if confidence >= _UNCERTAIN else AnswerStatus.UNLIKELY


def _tuples(citations: Sequence[Citation]) -> tuple[Citation, ...]:
    """A draft that was read from the log has lists."""
    return tuple(
        replace(each, bounding_boxes=tuple(each.bounding_boxes), heading_path=tuple(each.heading_path))
        for each in citations
    )


def _with_tuples(verification: Verification) -> Verification:
    sentences = tuple(replace(each, citations=tuple(each.citations)) for each in verification.sentences)
    return replace(verification, sentences=sentences)


@dataclass(frozen=True)
class Draft:
    """An answer before it is published. A refusal has no verification: there is no claim to check."""

    text: str
    method: str
    verification: Verification | None
    support_status: SupportStatus | None
    """None: nothing was judged."""

    citations: Sequence[Citation] = ()
    """One quote a mark of the text."""
    closest: Sequence[Citation] = ()
    """Of a refusal: the passages that came closest."""
    answer_confidence: float | None = None
    """Calibrated probability that the text answers the question; of a refusal, that the closest passages hold an answer."""
    block: Mapping[str, Any] | None = None
    """What an agent with a schema says; the text shows it."""
    conflicts: Sequence[Conflict] = ()
    """What the sources disagree about; the text says it."""

    @property
    def answer_status(self) -> AnswerStatus | None:
        return None if self.answer_confidence is None else answer_status(self.answer_confidence)

    @property
    def answer(self) -> Answer:
        return Answer(
            self.text,
            _tuples(self.citations),
            self.support_status,
            self.method,
            self.block,
            answer_confidence=self.answer_confidence,
            answer_status=self.answer_status,
            closest=_tuples(self.closest),
            verification=self.verification and _with_tuples(self.verification),
            conflicts=tuple(replace(each, sides=tuple(each.sides)) for each in self.conflicts),
        )

    @property
    def is_refusal(self) -> bool:
        return self.verification is None

    @property
    def is_about_actions(self) -> bool:
        """Whether all that its text claims is what the assistant has done: no quote of the documents could say it better."""
        claims = self.verification.sentences if self.verification else ()
        said = [each for each in claims if each.verdict != Verdict.NO_CLAIM and not each.removed]
        return bool(self.text and said) and all(each.is_action for each in said)

    @property
    def carries_something(self) -> bool:
        return self.verification is not None and self.support_status is not SupportStatus.INSUFFICIENT


def draft_of(checked: CheckedAnswer) -> Draft:
    """A model's answer after its check. One that claims nothing is not judged.

    How likely it answers the question is not said: what is calibrated is calibrated on quotes.
    """
    quoted = number_quotes(checked.text, checked.evidence, checked.spans)
    if checked.verification is None:
        return Draft(quoted.text, MODEL, None, None, quoted.citations)
    verification = placed(checked.verification, quoted.text)
    return Draft(quoted.text, MODEL, verification, verification.support_status, quoted.citations)


def draft_of_claims(checked: CheckedAnswer) -> Draft:
    """The draft of an answer that should have claimed something."""
    return draft_of(replace(checked, verification=checked.verification or _NOTHING_CLAIMED))


def says_something_wrong(draft: Draft) -> bool:
    """Whether a written answer has a claim that the documents do not carry, by a judge that does more than compare words."""
    claims = draft.verification.sentences if draft.verification else ()
    return not draft.carries_something or any(
        each.verdict in (Verdict.CONTRADICTED, Verdict.NOT_FOUND)
        and not (each.is_action or each.removed)
        and each.checked_by != WORDS
        for each in claims
    )


def mark_unfinished(draft: Draft, reason: FinishReason) -> Draft:
    """An answer that is not whole may be true in each of its sentences, and is not supported as a whole."""
    if reason.is_whole or draft.support_status not in _ALL_CARRIED or draft.verification is None:
        return draft
    verification = replace(draft.verification, support_status=SupportStatus.PARTIAL)
    return replace(draft, verification=verification, support_status=SupportStatus.PARTIAL)


def draft_of_quotes(text: str, found: extractive.ExtractiveAnswer, evidence: Sequence[Evidence]) -> Draft:
    """The answer that is made of these sentences. Each has its own mark: 1, 2, 3."""
    by_number = {source.number: source for source in evidence}
    citations = tuple(
        citation(by_number[each.number], Quote(each.number, each.start, each.end), number)
        for number, each in enumerate(found.sentences, start=1)
    )
    verification = replace(
        placed_quotes(verify_quotes([each.text for each in found.sentences], citations), text),
        answer_confidence=found.confidence,
        answer_status=answer_status(found.confidence),
    )
    support = verification.support_status
    return Draft(text, EXTRACTIVE, verification, support, citations, answer_confidence=found.confidence)
