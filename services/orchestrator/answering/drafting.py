"""Writing an answer: by the language model when there is one and the documents carry its words, else by quoting them. Every
step down is said."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kit.errors import GroundworkError
from kit.llm import TokenUsage
from services.orchestrator.answering import extractive
from services.orchestrator.answering.extractive import ExtractiveSettings, Passage
from services.orchestrator.answering.generation import Generator
from services.orchestrator.answering.refusals import refusal
from services.orchestrator.log.events import Degradation, Evidence, SupportStatus, Thinking, Verification
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import Turn
from services.orchestrator.ports import SentenceScorer
from services.orchestrator.verification import Judge, attribute, verify

MODEL, EXTRACTIVE = "model", "extractive"


@dataclass(frozen=True)
class Question:
    """What is to be answered, and how long the answer may be."""

    text: str
    history: Sequence[Turn]
    evidence: Sequence[Evidence]
    answer_tokens: int
    search_degraded: Sequence[Degradation] = ()
    """What the search that found the evidence had to do without: decides what a refusal may claim."""


@dataclass(frozen=True)
class Draft:
    """An answer before it is published. A refusal has no verification: there is no claim to check."""

    text: str
    method: str
    verification: Verification | None
    support_status: SupportStatus
    tokens: TokenUsage = TokenUsage()

    @property
    def is_refusal(self) -> bool:
        return self.verification is None

    @property
    def carries_something(self) -> bool:
        return self.verification is not None and self.support_status is not SupportStatus.INSUFFICIENT


class Drafter:
    """Writes drafts. Without a generator they are extractive."""

    def __init__(
        self,
        scorer: SentenceScorer,
        generator: Generator | None,
        extractive_settings: ExtractiveSettings = ExtractiveSettings(),  # noqa: B008 - frozen
    ) -> None:
        self._scorer = scorer
        self._generator = generator
        self._extractive_settings = extractive_settings

    @property
    def model_name(self) -> str:
        """The model's name; empty when answers are extractive."""
        return self._generator.model.name if self._generator else ""

    async def write(self, question: Question, journal: Journal) -> Draft:
        """Streams the answer to the journal and returns it; the shown text is the draft's text in the end."""
        screen = Screen(journal)
        draft = await self._best(question, journal, screen)
        await screen.settle(draft.text)
        return draft

    async def _best(self, question: Question, journal: Journal, screen: Screen) -> Draft:
        if self._generator is None or not self.model_name or not question.evidence:
            return await self._extract(question, journal, screen)
        try:
            draft = await self._generate(self._generator, question, journal, screen)
        except GroundworkError as error:
            await journal.write(degraded("answer", "llm", error, "Quoting the documents instead."))
            return await self._extract(question, journal, screen)
        if draft.is_refusal or draft.carries_something:
            return draft
        note = Degradation("llm", "UNSUPPORTED_ANSWER", "Nothing the model wrote is carried by the documents.")
        await journal.write(Thinking("verify", f"{note.message} Quoting the documents instead.", note))
        return replace(await self._extract(question, journal, screen), tokens=draft.tokens)

    async def _generate(self, generator: Generator, question: Question, journal: Journal, screen: Screen) -> Draft:
        generated = await generator.write(
            question.text, question.history, question.evidence, screen, max_tokens=question.answer_tokens
        )
        if generated.is_refusal:
            return _refused(question, MODEL, generated.usage)
        if generated.invented_citations:
            text = f"{generated.invented_citations} citation(s) of sources that do not exist were removed."
            await journal.write(Thinking("verify", text, Degradation("llm", "INVENTED_CITATION", text)))
        judge = Judge(question.evidence, question.text)
        text = attribute(generated.text, judge)
        return _checked(text, MODEL, verify(text, judge), generated.usage)

    async def _extract(self, question: Question, journal: Journal, screen: Screen) -> Draft:
        passages = [_passage(source) for source in question.evidence]
        found = await extractive.answer(question.text, passages, self._scorer, self._extractive_settings)
        if found.degraded_reason:
            note = Degradation("rerank", "SENTENCE_SCORES_UNAVAILABLE", found.degraded_reason)
            await journal.write(Thinking("answer", "Choosing sentences by their words alone.", note))
        if not found.answerable:
            return _refused(question, EXTRACTIVE)
        text = ""
        for piece in extractive.render(found):
            text += piece
            await screen.show(text)
        return _checked(text, EXTRACTIVE, verify(text, Judge(question.evidence)))


def _checked(text: str, method: str, verification: Verification, tokens: TokenUsage = TokenUsage()) -> Draft:
    return Draft(text, method, verification, verification.support_status, tokens)


def _refused(question: Question, method: str, tokens: TokenUsage = TokenUsage()) -> Draft:
    said = refusal(question.search_degraded)
    return Draft(said.text, method, None, said.support_status, tokens)


def _passage(source: Evidence) -> Passage:
    return Passage(
        number=source.number,
        text=source.text,
        document_id=source.document_id,
        chunk_id=source.chunk_id,
        score=source.score,
        dense_score=source.dense_score,
        char_start=source.char_start,
        document_name=source.document_name,
        heading_path=tuple(source.heading_path),
    )


def degraded(phase: str, part: str, error: GroundworkError, text: str) -> Thinking:
    """The event that tells of a step taken in a lesser way."""
    return Thinking(phase, text, Degradation(part, error.reason, error.message))
