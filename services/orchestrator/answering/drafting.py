"""Writing an answer: by the language model when there is one and the documents carry its words, else by quoting them. Every
step down is said."""

import asyncio
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from kit.errors import GroundworkError
from kit.language.anaphora import starts_with_anaphor
from kit.language.question_language import Languages, language_of
from kit.language.terms import tokens
from kit.llm import ChatMessage, FinishReason, Meter, Operation, Restart
from services.orchestrator import without_model as extractive
from services.orchestrator.answering.citations import cited_numbers, finished_part
from services.orchestrator.answering.draft import (
    EXTRACTIVE,
    MODEL,
    Draft,
    answer_status,
    draft_of,
    draft_of_claims,
    draft_of_quotes,
    mark_unfinished,
    says_something_wrong,
)
from services.orchestrator.answering.generation import Generator, Listener
from services.orchestrator.answering.quotes import Quote, citations_of
from services.orchestrator.answering.refusals import refusal
from services.orchestrator.conflicts.disagreement import Disagreement
from services.orchestrator.conflicts.parallel import find_disagreements
from services.orchestrator.conflicts.saying import say_conflicts
from services.orchestrator.log.events import AnswerStatus, Degradation, Evidence, Thinking
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.screen import LONGEST_PIECE_CHARS, Screen
from services.orchestrator.models import Turn
from services.orchestrator.ports import SentenceScorer
from services.orchestrator.verification.checking import AnswerCheck, Checking
from services.orchestrator.without_model import ExtractiveSettings, Passage
from services.orchestrator.without_model.wording import wording

_ENDINGS = {
    FinishReason.LENGTH: ("ANSWER_LENGTH", "The model used up its tokens before the answer was finished."),
    FinishReason.CONTENT_FILTER: ("ANSWER_FILTERED", "The model's provider held back the rest of the answer."),
    FinishReason.INCOMPLETE: ("ANSWER_INCOMPLETE", "The model's answer ended without saying that it was finished."),
    FinishReason.CUT_OFF: (
        "ANSWER_CUT_OFF",
        "The model was stopped: its answer was longer, or took longer, than it may.",
    ),
    FinishReason.WITHHELD: (
        "ANSWER_WITHHELD",
        "The answer ends here: the model was about to give its instructions away.",
    ),
}
"""What is said of an answer that is not whole."""
_UNSUPPORTED = Degradation("llm", "UNSUPPORTED_ANSWER", "Nothing the model wrote is carried by the documents.")
_BETTER_QUOTED = Degradation(
    "llm",
    "BETTER_QUOTED",
    "The model's answer says something that the documents do not. They are quoted instead: a quote likely answers.",
)


@dataclass(frozen=True)
class Question:
    """What is to be answered, and how long the answer may be."""

    text: str
    history: Sequence[Turn]
    evidence: Sequence[Evidence]
    answer_tokens: int
    search_degraded: Sequence[Degradation] = ()
    """What the search that found the evidence had to do without: decides what a refusal may claim."""

    prompt: str = ""
    """What an agent tells its model besides the rules that hold for every answer."""

    shows_thinking: bool = False
    """Whether what a reasoning model thinks is written to the journal."""

    before: str = ""
    """What stands above the answer on the screen: the sections of a report that are written already."""

    stands_alone: str = ""
    """The question with the subject that it takes from the conversation; empty where it takes none."""

    meter: Meter = field(default_factory=Meter, compare=False)
    """What the model has cost so far, for callers of the drafter outside of a run, which has its own (steps.usage.Metered)."""

    called: Sequence[ChatMessage] = ()
    """Functions of the caller's that were called for it, and what they returned."""

    check: AnswerCheck = field(default_factory=AnswerCheck, compare=False)
    """How what a model writes is checked."""

    @property
    def whole(self) -> str:
        return self.stands_alone or self.text

    def checking(self, journal: Journal) -> Checking:
        """The check of an answer to it."""
        return Checking(self.check, self.text, self.evidence, journal)


class Drafter:
    """Writes drafts. Without a generator they are extractive."""

    def __init__(
        self,
        scorer: SentenceScorer,
        generator: Generator | None,
        extractive_settings: ExtractiveSettings = ExtractiveSettings(),  # noqa: B008 - frozen
        languages: Languages | None = None,
    ) -> None:
        """`languages` tells in which language to refuse; without, it is English."""
        self._languages = languages
        self._scorer = scorer
        self.generator = generator
        self._extractive_settings = extractive_settings

    @property
    def model_name(self) -> str:
        """The model's name; empty when answers are extractive."""
        return self.generator.model.info(Operation.ANSWER).model if self.generator else ""

    def without_model(self) -> "Drafter":
        """For a run that may not use one any more."""
        return Drafter(self._scorer, None, self._extractive_settings, self._languages)

    async def greeting(self, message: str) -> str:
        """Of who has said hello, in their language."""
        return (await asyncio.to_thread(wording, message, self._languages)).greeting

    async def language_of(self, question: str) -> str:
        """ISO 639-1 of the language in which Groundwork speaks of the question."""
        return (await asyncio.to_thread(wording, question, self._languages)).code

    async def write(self, question: Question, journal: Journal) -> Draft:
        """Streams the answer to the journal and returns it; the shown text is the draft's text in the end."""
        screen = Screen(journal, before=question.before)
        draft = await self._with_conflicts(await self._best(question, journal, screen), question)
        await screen.settle(draft.text)
        return draft

    async def take_over(self, text: str, question: Question, journal: Journal) -> Draft:
        """As `write`, for a text that the model has given whole."""
        screen = Screen(journal, before=question.before)
        draft = draft_of_claims(await question.checking(journal).check(text))
        draft = await self._with_conflicts(await self._improved(draft, text, question, journal, screen), question)
        await screen.settle(draft.text)
        return draft

    async def refuse_written(self, question: Question, journal: Journal) -> Draft:
        """The refusal of a model that says that the sources do not answer, shown."""
        draft = await self._refused(question, MODEL)
        await Screen(journal, before=question.before).settle(draft.text)
        return draft

    async def judge(self, text: str, question: Question, journal: Journal, checking: Checking | None = None) -> Draft:
        """A text that a model has written with the evidence before it, judged. When it cites passages and none of them carries
        anything of it, the documents are quoted instead, if they answer the question. `checking` may have judged parts of it."""
        screen = Screen(journal)
        draft = draft_of(await (checking or question.checking(journal)).check(text))
        is_judged = draft.verification is not None and not draft.is_about_actions
        if cited_numbers(text) and is_judged and not draft.carries_something:
            draft = await self._not_carried(draft, text, question, journal, screen, keeps=True)
        draft = await self._with_conflicts(draft, question)
        if not draft.text:  # all of it was left out
            draft = replace(draft, text=(await asyncio.to_thread(wording, question.text, self._languages)).unsure)
        await screen.settle(draft.text)
        return draft

    async def _with_conflicts(self, draft: Draft, question: Question) -> Draft:
        """The draft, which says what the sources disagree about. Where no quote was sure enough, that is the answer; a model that
        refuses has read them all."""
        if draft.is_refusal and draft.method == MODEL:
            return draft
        found = await asyncio.to_thread(find_disagreements, question.whole, question.evidence)
        if found and draft.is_refusal:
            draft = Draft("", EXTRACTIVE, None, None)
        return await self.with_disagreements(draft, found, question.text, question.evidence)

    async def with_disagreements(
        self, draft: Draft, found: Sequence[Disagreement], question: str, evidence: Sequence[Evidence]
    ) -> Draft:
        """The draft with a sentence for each disagreement behind it, in the language of the question."""
        if not found:
            return draft
        words = await asyncio.to_thread(wording, question, self._languages)
        said = say_conflicts(draft.text, draft.citations, found, evidence, words.conflict)
        return replace(draft, text=said.text, citations=said.citations, conflicts=said.conflicts)

    async def _best(self, question: Question, journal: Journal, screen: Screen) -> Draft:
        if self.generator is None or not self.model_name or not question.evidence:
            return await self._extract(question, journal, screen)
        try:
            draft, text = await self._generate(self.generator, question, journal)
        except GroundworkError as error:
            return await self._fallen_back(error, question, journal, screen)
        return await self._improved(draft, text, question, journal, screen)

    async def _improved(self, draft: Draft, text: str, question: Question, journal: Journal, screen: Screen) -> Draft:
        """The draft of what a model wrote, or quotes where it says something wrong and they answer better."""
        if draft.is_refusal or draft.is_about_actions or not says_something_wrong(draft):
            return draft
        if not draft.carries_something:
            return await self._not_carried(draft, text, question, journal, screen)
        found = await self._quotes(question)
        if not found.answerable or answer_status(found.confidence) is not AnswerStatus.LIKELY:
            return draft
        await journal.write(Thinking("verify", _BETTER_QUOTED.message, _BETTER_QUOTED))
        return await self._show_quotes(found, question, journal, screen)

    async def _not_carried(
        self, draft: Draft, text: str, question: Question, journal: Journal, screen: Screen, *, keeps: bool = False
    ) -> Draft:
        """What becomes of an answer that no document carries. Quotes are shown instead, if they answer; else a refusal, or the
        answer without its marks where it `keeps`. In another language than what it cites it is kept unless a quote likely answers:
        there a judge is wrong too often to throw it away."""
        found = await self._quotes(question)
        is_across = await asyncio.to_thread(self._is_across, draft, text, question.evidence)
        is_likely = answer_status(found.confidence) is AnswerStatus.LIKELY
        is_quoted = found.answerable and (is_likely or not is_across)
        instead = " Quoting the documents instead." if is_quoted else ""
        await journal.write(Thinking("verify", f"{_UNSUPPORTED.message}{instead}", _UNSUPPORTED))
        is_kept = not is_quoted and (keeps or is_across)
        return draft if is_kept else await self._show_quotes(found, question, journal, screen)

    def _is_across(self, draft: Draft, text: str, evidence: Sequence[Evidence]) -> bool:
        """Whether the draft, made of `text`, is in another language than all that it cites, by a judge whose error is not small."""
        judge = draft.verification and draft.verification.checked_by
        cited = [each.text for each in evidence if each.number in cited_numbers(text)]
        if not draft.text or not cited or self._languages is None or (judge and judge.measured):
            return False
        return language_of(draft.text, self._languages) not in {language_of(each, self._languages) for each in cited}

    async def _generate(self, generator: Generator, question: Question, journal: Journal) -> tuple[Draft, str]:
        """The draft, and what the model wrote."""

        async def show_thought(text: str) -> None:
            for start in range(0, len(text) if question.shows_thinking else 0, LONGEST_PIECE_CHARS):
                await journal.write(Thinking("reason", text[start : start + LONGEST_PIECE_CHARS]))

        async def tell_of_restart(restart: Restart) -> None:
            await journal.write(restarted(restart))

        checking = question.checking(journal)
        async with checking.listening():
            generated = await generator.write(
                question.text,
                question.history,
                question.evidence,
                Screen(journal, checking.hear, question.before),
                max_tokens=question.answer_tokens,
                meter=question.meter,
                listener=Listener(show_thought, tell_of_restart),
                prompt=question.prompt,
            )
        if generated.is_refusal and generated.reason.is_whole:
            return await self._refused(question, MODEL), generated.text
        if generated.invented_citations:
            text = f"{generated.invented_citations} citation(s) of sources that do not exist were removed."
            await journal.write(Thinking("verify", text, Degradation("llm", "INVENTED_CITATION", text)))
        text = await finished_text(generated.text, generated.reason, journal)
        draft = draft_of_claims(await checking.check(text))
        return mark_unfinished(draft, generated.reason), text

    async def _fallen_back(self, error: GroundworkError, question: Question, journal: Journal, screen: Screen) -> Draft:
        """The answer of a model that has failed: quotes, or what it had written where no quote answers."""
        found = await self._quotes(question)
        kept = None if found.answerable else await self._kept(journal, question)
        said = "Quoting the documents instead." if kept is None else "Keeping what it had written until then."
        await journal.write(degraded("answer", "llm", error, said))
        return kept or await self._show_quotes(found, question, journal, screen)

    async def _kept(self, journal: Journal, question: Question) -> Draft | None:
        """The finished sentences of an answer that goes no further; None where the documents carry none of them."""
        checked = await question.checking(journal).check(finished_part(journal.progress.shown[len(question.before) :]))
        draft = draft_of(checked)
        return mark_unfinished(draft, FinishReason.INCOMPLETE) if draft.carries_something else None

    async def _extract(self, question: Question, journal: Journal, screen: Screen) -> Draft:
        return await self._show_quotes(await self._quotes(question), question, journal, screen)

    async def _show_quotes(
        self, found: extractive.ExtractiveAnswer, question: Question, journal: Journal, screen: Screen
    ) -> Draft:
        if found.degraded_reason:
            note = Degradation("rerank", "SENTENCE_SCORES_UNAVAILABLE", found.degraded_reason)
            await journal.write(Thinking("answer", "Choosing sentences by their words alone.", note))
        if not found.answerable:
            return await self._refused(question, EXTRACTIVE, found)
        text = ""
        for piece in extractive.render(found):
            text += piece
            await screen.show(text)
        return draft_of_quotes(text, found, question.evidence)

    async def _quotes(self, question: Question) -> extractive.ExtractiveAnswer:
        """What the documents say to the question as it stands alone; where that is nothing, what those passages say to its own
        words that name the subject which it takes from the conversation."""
        passages = [passage_of(source) for source in question.evidence]
        found = await extractive.answer(question.whole, passages, self._scorer, self._extractive_settings)
        subject = _content(question.whole) - _content(question.text)
        about = [each for each in passages if subject <= _content(f"{each.text} {' '.join(each.heading_path)}")]
        if found.answerable or not subject or not about:
            return found
        own = await extractive.answer(question.text, about, self._scorer, self._extractive_settings)
        names = {token.stem for token in tokens(question.whole) if token.is_name}
        is_of_others = names and any(_is_about_others(each.text, names) for each in own.sentences)
        return own if own.answerable and not is_of_others else found

    async def refuse(self, question: Question) -> Draft:
        """The refusal of a question whose draft is no answer, with the passages that came closest."""
        return await self._refused(question, EXTRACTIVE)

    async def _refused(
        self, question: Question, method: str, found: extractive.ExtractiveAnswer | None = None
    ) -> Draft:
        """The refusal in the language of the question, with the passages that came closest."""
        if found is None:
            passages = [passage_of(source) for source in question.evidence]
            found = await extractive.answer(question.whole, passages, self._scorer, self._extractive_settings)
        # What quotes would have answered is closest where a model has refused.
        closest = found.closest or found.sentences[: extractive.CLOSEST_PASSAGES]
        quotes = {Quote(each.number, each.start, each.end): number for number, each in enumerate(closest, start=1)}
        words = await asyncio.to_thread(wording, question.text, self._languages)
        said = refusal(question.search_degraded, words, is_near=bool(quotes))
        return Draft(
            said.text,
            method,
            None,
            said.support_status,
            closest=citations_of(quotes, question.evidence),
            answer_confidence=found.confidence if quotes else None,
        )


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


def _is_about_others(sentence: str, names: Set[str]) -> bool:
    """Whether a sentence names something itself, and none of `names`."""
    found = {token.stem for token in tokens(sentence) if token.is_name}
    return bool(found) and not found & names and not starts_with_anaphor(sentence)


def _content(text: str) -> set[str]:
    return {token.stem for token in tokens(text) if not token.is_stopword}


def passage_of(source: Evidence) -> Passage:
    """What quotes are taken from."""
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
