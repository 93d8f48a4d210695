"""Writing an answer: by the language model when there is one and the documents carry its words, else by quoting them. Every
step down is said."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kit.errors import GroundworkError
from kit.grounding import Judge
from kit.llm import FinishReason, Meter, Operation, Restart
from services.orchestrator.answering import extractive
from services.orchestrator.answering.citations import cited_numbers, finished_part
from services.orchestrator.answering.extractive import ExtractiveSettings, Passage
from services.orchestrator.answering.generation import Generator, Listener
from services.orchestrator.answering.refusals import refusal
from services.orchestrator.log.events import Degradation, Evidence, SupportStatus, Thinking, Verification
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.screen import LONGEST_PIECE_CHARS, Screen
from services.orchestrator.models import Turn
from services.orchestrator.ports import SentenceScorer
from services.orchestrator.verification import attribute, verify

MODEL, EXTRACTIVE = "model", "extractive"

_ENDINGS = {
    FinishReason.LENGTH: ("ANSWER_LENGTH", "The model used up its tokens before the answer was finished."),
    FinishReason.CONTENT_FILTER: ("ANSWER_FILTERED", "The model's provider held back the rest of the answer."),
    FinishReason.INCOMPLETE: ("ANSWER_INCOMPLETE", "The model's answer ended without saying that it was finished."),
    FinishReason.CUT_OFF: (
        "ANSWER_CUT_OFF",
        "The model was stopped: its answer was longer, or took longer, than it may.",
    ),
}
"""What is said of an answer that is not whole."""
_UNSUPPORTED = Degradation("llm", "UNSUPPORTED_ANSWER", "Nothing the model wrote is carried by the documents.")


@dataclass(frozen=True)
class Question:
    """What is to be answered, and how long the answer may be."""

    text: str
    history: Sequence[Turn]
    evidence: Sequence[Evidence]
    answer_tokens: int
    search_degraded: Sequence[Degradation] = ()
    """What the search that found the evidence had to do without: decides what a refusal may claim."""

    shows_thinking: bool = False
    """Whether what a reasoning model thinks is written to the journal."""

    meter: Meter = field(default_factory=Meter, compare=False)
    """What the model has cost so far, for who asks the drafter outside of a run, which has its own (steps.usage.Metered)."""


@dataclass(frozen=True)
class Draft:
    """An answer before it is published. A refusal has no verification: there is no claim to check."""

    text: str
    method: str
    verification: Verification | None
    support_status: SupportStatus | None
    """None: nothing was judged."""

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
        return self._generator.model.info(Operation.ANSWER).model if self._generator else ""

    def without_model(self) -> "Drafter":
        """For a run that may not use one any more."""
        return Drafter(self._scorer, None, self._extractive_settings)

    async def write(self, question: Question, journal: Journal) -> Draft:
        """Streams the answer to the journal and returns it; the shown text is the draft's text in the end."""
        screen = Screen(journal)
        draft = await self._best(question, journal, screen)
        await screen.settle(draft.text)
        return draft

    async def judge(self, text: str, question: Question, journal: Journal) -> Draft:
        """A text that a model has written with the evidence before it, judged. When it cites passages and none of them carries
        anything of it, the documents are quoted instead, if they answer the question."""
        screen = Screen(journal)
        draft = _judged(text, question)
        if cited_numbers(draft.text) and not draft.carries_something and draft.verification is not None:
            quoted = await self._extract(question, journal, screen)
            instead = "" if quoted.is_refusal else " Quoting the documents instead."
            await journal.write(Thinking("verify", f"{_UNSUPPORTED.message}{instead}", _UNSUPPORTED))
            draft = draft if quoted.is_refusal else quoted
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
        await journal.write(Thinking("verify", f"{_UNSUPPORTED.message} Quoting the documents instead.", _UNSUPPORTED))
        return await self._extract(question, journal, screen)

    async def _generate(self, generator: Generator, question: Question, journal: Journal, screen: Screen) -> Draft:
        async def show_thought(text: str) -> None:
            for start in range(0, len(text) if question.shows_thinking else 0, LONGEST_PIECE_CHARS):
                await journal.write(Thinking("reason", text[start : start + LONGEST_PIECE_CHARS]))

        async def tell_of_restart(restart: Restart) -> None:
            await journal.write(restarted(restart))

        generated = await generator.write(
            question.text,
            question.history,
            question.evidence,
            screen,
            max_tokens=question.answer_tokens,
            meter=question.meter,
            listener=Listener(show_thought, tell_of_restart),
        )
        if generated.is_refusal and generated.reason.is_whole:
            return _refused(question, MODEL)
        if generated.invented_citations:
            text = f"{generated.invented_citations} citation(s) of sources that do not exist were removed."
            await journal.write(Thinking("verify", text, Degradation("llm", "INVENTED_CITATION", text)))
        judge = Judge(question.evidence, question.text)
        text = attribute(await finished_text(generated.text, generated.reason, journal), judge)
        return _as_far_as_it_got(_checked(text, MODEL, verify(text, judge)), generated.reason)

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


async def finished_text(text: str, reason: FinishReason, journal: Journal) -> str:
    """The text that may be judged: of an answer that is not whole, its finished sentences; that it is not whole is said."""
    if reason.is_whole:
        return text
    finished = finished_part(text)
    ending, message = _ENDINGS[reason]
    note = Degradation("llm", ending, message)
    said = f"{message} Its unfinished last sentence was cut off." if finished != text else message
    await journal.write(Thinking("answer", said, note))
    return finished


def _as_far_as_it_got(draft: Draft, reason: FinishReason) -> Draft:
    """An answer that is not whole may be true in each of its sentences, and is not supported as a whole."""
    if reason.is_whole or draft.support_status is not SupportStatus.SUPPORTED or draft.verification is None:
        return draft
    verification = replace(draft.verification, support_status=SupportStatus.PARTIAL)
    return replace(draft, verification=verification, support_status=SupportStatus.PARTIAL)


def _judged(text: str, question: Question) -> Draft:
    """With a mark behind each claim that a passage carries. A text that claims nothing is not judged."""
    judge = Judge(question.evidence, question.text)
    text = attribute(text, judge)
    verification = verify(text, judge)
    return _checked(text, MODEL, verification) if verification.sentences else Draft(text, MODEL, None, None)


def support_of_quotes(text: str, evidence: Sequence[Evidence]) -> SupportStatus:
    """How well the passages carry a text that was put together from them."""
    return verify(text, Judge(evidence)).support_status


def _checked(text: str, method: str, verification: Verification) -> Draft:
    return Draft(text, method, verification, verification.support_status)


def _refused(question: Question, method: str) -> Draft:
    said = refusal(question.search_degraded)
    return Draft(said.text, method, None, said.support_status)


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


def restarted(restart: Restart) -> Thinking:
    """The event that tells of a model that failed in the middle, where another goes on."""
    return Thinking("answer", "Asking another model instead.", Degradation("llm", restart.reason, restart.message))


def degraded(phase: str, part: str, error: GroundworkError, text: str) -> Thinking:
    """The event that tells of a step taken in a lesser way."""
    return Thinking(phase, text, Degradation(part, error.reason, error.message))
