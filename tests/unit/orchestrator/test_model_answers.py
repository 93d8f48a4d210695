"""What becomes of a model's answer that is not whole, not plain, or not one answer."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from kit.llm import (
    Delta,
    FinishReason,
    ModelUnavailable,
    Operation,
    ReasoningDelta,
    Restart,
    Retraction,
    TextDelta,
    TokenUsage,
)
from kit.llm.providers import Choice
from services.orchestrator.answering.citations import finished_part
from services.orchestrator.answering.draft import EXTRACTIVE, MODEL, Draft
from services.orchestrator.answering.drafting import Drafter, Question
from services.orchestrator.answering.generation import LONGEST_ANSWER_CHARS, Generator
from services.orchestrator.log.events import CheckedBy, Payload, SupportStatus, Thinking, Token
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.screen import LONGEST_PIECE_CHARS, Screen
from services.orchestrator.models import RunKey
from services.orchestrator.steps.usage import Metered
from services.orchestrator.verification.checking import AnswerCheck
from services.orchestrator.verification.verdicts import Verify
from tests.unit.kit.llm_fakes import Script, catalog, models_of, provider, says
from tests.unit.orchestrator.fakes import EVIDENCE, FakeModel, FakeScorer, MemoryLog
from tests.unit.orchestrator.test_verification import Scripted

QUESTION = "When was the tower built?"
FACT = "The tower was built in 1889 by Gustave Eiffel. [1]"
KEY = RunKey("local", "r1")


async def open_journal() -> tuple[Journal, MemoryLog]:
    log = MemoryLog()
    return await Journal.open(KEY, log, lambda: datetime.now(UTC)), log


async def drafted(
    model: FakeModel, *, question: str = QUESTION, shows_thinking: bool = False
) -> tuple[Draft, list[Payload]]:
    journal, log = await open_journal()
    asked = Question(question, (), EVIDENCE, 600, shows_thinking=shows_thinking)
    draft = await Drafter(FakeScorer(), Generator(model)).write(asked, journal)
    assert journal.progress.shown == draft.text
    return draft, [event.payload for event in log.events[KEY]]


def degradations(payloads: list[Payload]) -> list[str]:
    return [each.degraded.reason for each in payloads if isinstance(each, Thinking) and each.degraded]


WRONG = "The tower was built in 1889. [1] It is painted every week. [1]"


async def test_likely_quote_is_shown_instead_of_a_text_that_says_more_than_the_documents() -> None:
    journal, log = await open_journal()
    judge = Scripted({"The tower was built in 1889.": "built in 1889"})
    asked = Question(QUESTION, (), EVIDENCE, 600, check=AnswerCheck([judge]))
    draft = await Drafter(FakeScorer(), Generator(FakeModel([WRONG]))).write(asked, journal)
    assert (draft.method, draft.text) == (EXTRACTIVE, FACT)
    assert degradations([event.payload for event in log.events[KEY]]) == ["BETTER_QUOTED"]


async def test_written_text_stays_where_no_quote_likely_answers() -> None:
    journal, _ = await open_journal()
    judge = Scripted({"The tower was built in 1889.": "built in 1889"})
    asked = Question("How often is the tower painted?", (), EVIDENCE, 600, check=AnswerCheck([judge]))
    draft = await Drafter(FakeScorer(), Generator(FakeModel([WRONG]))).write(asked, journal)
    assert (draft.method, draft.support_status) == (MODEL, SupportStatus.PARTIAL)


class GermanByWord:
    """Tells German from English."""

    def certainties(self, text: str) -> dict[str, float]:
        return {"de": 1.0} if "wurde" in text.split() else {"en": 1.0}


@pytest.mark.parametrize(
    ("said", "is_measured", "is_kept"),
    [
        ("Der Turm wurde gestrichen. [1]", False, True),
        ("Der Turm wurde gestrichen. [1]", True, False),
        ("The tower was painted. [1]", False, False),
    ],
)
async def test_answer_in_another_language_than_its_source_is_kept_without_marks_where_the_judge_was_not_measured(
    said: str, is_measured: bool, is_kept: bool
) -> None:
    journal, _ = await open_journal()
    judge = Scripted(checked_by=CheckedBy("scripted/1", measured=is_measured))
    asked = Question("What makes visitors of the tower (16) happy?", (), EVIDENCE, 600, check=AnswerCheck([judge]))
    drafter = Drafter(FakeScorer(), Generator(FakeModel([said])), languages=GermanByWord())
    draft = await drafter.write(asked, journal)
    assert journal.progress.shown == draft.text
    assert draft.support_status is SupportStatus.INSUFFICIENT
    assert (draft.method, draft.citations) == (MODEL if is_kept else EXTRACTIVE, ())
    assert (draft.text == said.removesuffix(" [1]")) is is_kept


@pytest.mark.parametrize("said", ["Done: the note is kept. [1]", "I have kept the note."])
async def test_answer_that_only_says_what_was_done_is_shown_and_marked_as_not_done(said: str) -> None:
    journal, _ = await open_journal()
    asked = Question("Keep a note that the tower is old.", (), EVIDENCE, 600, check=AnswerCheck([Scripted()]))
    written = await Drafter(FakeScorer(), Generator(FakeModel([said]))).write(asked, journal)
    judged = await Drafter(FakeScorer(), None).judge(said, asked, journal)
    for draft in (written, judged):
        assert (draft.method, draft.text) == (MODEL, said.removesuffix(" [1]"))
        assert draft.support_status is SupportStatus.INSUFFICIENT
        assert draft.verification is not None
        (verdict,) = draft.verification.sentences
        assert (verdict.is_action, verdict.verdict) == (True, "contradicted")


async def test_answer_that_only_says_what_was_not_done_is_left_out_where_such_sentences_are() -> None:
    journal, _ = await open_journal()
    check = AnswerCheck([Scripted()], verify=Verify.REMOVE)
    asked = Question("Keep a note of it.", (), EVIDENCE, 600, check=check)
    draft = await Drafter(FakeScorer(), Generator(FakeModel(["Done: the note is kept. [1]"]))).write(asked, journal)
    assert "note" not in draft.text


@pytest.mark.parametrize("question", [QUESTION, "What makes visitors of the tower (16) happy?"])
async def test_model_that_fails_in_the_middle_leaves_what_is_carried_where_quotes_answer_nothing(question: str) -> None:
    model = FakeModel([FACT, " It is", " the tall"], ModelUnavailable("it fell silent", reason="LLM_TIMEOUT"))
    draft, payloads = await drafted(model, question=question)
    assert draft.text == FACT
    assert degradations(payloads) == ["LLM_TIMEOUT"]
    told = (EXTRACTIVE, SupportStatus.SUPPORTED) if question == QUESTION else (MODEL, SupportStatus.PARTIAL)
    assert (draft.method, draft.support_status) == told


async def test_model_that_fails_in_the_middle_leaves_nothing_that_no_document_carries() -> None:
    model = FakeModel(["Visitors adore the view. [1] It"], ModelUnavailable("it fell silent", reason="LLM_TIMEOUT"))
    draft, payloads = await drafted(model, question="What makes visitors of the tower (16) happy?")
    assert draft.is_refusal
    assert degradations(payloads) == ["LLM_TIMEOUT"]


NOT_WHOLE = {
    FinishReason.LENGTH: "ANSWER_LENGTH",
    FinishReason.CONTENT_FILTER: "ANSWER_FILTERED",
    FinishReason.INCOMPLETE: "ANSWER_INCOMPLETE",
    FinishReason.CUT_OFF: "ANSWER_CUT_OFF",
}


@pytest.mark.parametrize("reason", NOT_WHOLE)
async def test_unfinished_sentence_is_cut_off_and_the_rest_is_partial(reason: FinishReason) -> None:
    draft, payloads = await drafted(FakeModel([FACT, " The tower was bu"], reason=reason))
    assert (draft.text, draft.method) == (FACT, MODEL)
    assert draft.support_status is SupportStatus.PARTIAL
    assert draft.verification is not None
    assert draft.verification.support_status is SupportStatus.PARTIAL
    assert degradations(payloads) == [NOT_WHOLE[reason]]


@pytest.mark.parametrize("reason", NOT_WHOLE)
async def test_half_a_sentence_alone_is_no_answer(reason: FinishReason) -> None:
    draft, payloads = await drafted(FakeModel(["The tower was built in 1889 by Gustave"], reason=reason))
    assert (draft.text, draft.method) == (FACT, EXTRACTIVE)
    assert degradations(payloads) == [NOT_WHOLE[reason], "UNSUPPORTED_ANSWER"]


async def test_finished_sentences_without_a_stated_end_are_partial() -> None:
    draft, payloads = await drafted(FakeModel([FACT], reason=FinishReason.INCOMPLETE))
    assert (draft.text, draft.support_status) == (FACT, SupportStatus.PARTIAL)
    assert degradations(payloads) == ["ANSWER_INCOMPLETE"]


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("One. Two", "One."),
        ("One. [1] Two [2]", "One. [1]"),
        ("One [1]. Two [", "One [1]."),
        ("It is tall. It costs 3.", "It is tall."),
        ("It is tall. It is approx.", "It is tall."),
        ("- one\n- two\n- thr", "- one\n- two"),
        ("Eins! Zwei? Dr", "Eins! Zwei?"),
        ("一。二。三", "一。二。"),
        ("He said “yes.”", "He said “yes.”"),
        ("Half", ""),
        ("", ""),
    ],
)
def test_finished_part(text: str, finished: str) -> None:
    assert finished_part(text) == finished


async def test_thoughts_are_shown_when_asked_for_and_never_in_the_answer() -> None:
    deltas: list[str | Delta] = [ReasoningDelta("It says "), ReasoningDelta("1889."), TextDelta(FACT)]
    silent, payloads = await drafted(FakeModel(deltas))
    assert [each for each in payloads if isinstance(each, Thinking)] == []
    shown, payloads = await drafted(FakeModel(deltas), shows_thinking=True)
    thoughts = [each for each in payloads if isinstance(each, Thinking)]
    assert "".join(each.text for each in thoughts) == "It says 1889."
    assert {each.phase for each in thoughts} == {"reason"}
    assert silent.text == shown.text == FACT


async def test_text_that_turns_out_to_be_thinking_is_taken_back() -> None:
    draft, _ = await drafted(FakeModel(["I should look [2]. ", Retraction(), FACT]))
    assert (draft.text, draft.support_status) == (FACT, SupportStatus.SIMILAR_WORDING)


async def test_another_model_that_takes_over_is_told_of() -> None:
    restart = Restart("gpu", "big", "LLM_TIMEOUT", "big fell silent", "cpu")
    draft, payloads = await drafted(FakeModel(["The bridge was", restart, FACT]))
    assert (draft.text, draft.support_status) == (FACT, SupportStatus.SIMILAR_WORDING)
    assert degradations(payloads) == ["LLM_TIMEOUT"]


async def test_what_a_failed_model_cost_is_counted() -> None:
    journal, _ = await open_journal()
    question = Question(QUESTION, (), EVIDENCE, 600)
    model = FakeModel(["The tow"], ModelUnavailable("broke off"))
    draft = await Drafter(FakeScorer(), Generator(model)).write(question, journal)
    assert draft.method == EXTRACTIVE
    assert question.meter.total == TokenUsage(100, 1)


async def test_what_a_cancelled_model_cost_is_counted() -> None:
    journal, _ = await open_journal()
    started = asyncio.Event()

    class Waiting(FakeModel):
        async def complete(self, request):  # type: ignore[no-untyped-def]
            async for delta in super().complete(request):
                yield delta
                started.set()
                await asyncio.Event().wait()

    question = Question(QUESTION, (), EVIDENCE, 600)
    drafter = Drafter(FakeScorer(), Generator(Waiting([FACT])))
    task = asyncio.create_task(drafter.write(question, journal))
    await started.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert question.meter.total == TokenUsage(100, 1)


async def test_question_too_long_for_the_model_is_answered_by_quotes_and_said() -> None:
    model = FakeModel([FACT], context_tokens=300)
    journal, log = await open_journal()
    question = Question(QUESTION + " really" * 500, (), EVIDENCE, 600)
    await Drafter(FakeScorer(), Generator(model)).write(question, journal)
    assert degradations([event.payload for event in log.events[KEY]])[0] == "QUESTION_TOO_LONG"
    assert model.prompts == []


async def test_long_text_is_shown_in_pieces_that_fit_a_message() -> None:
    journal, log = await open_journal()
    text = "🚀" * (2 * LONGEST_PIECE_CHARS + 5)
    await Screen(journal).settle(text)
    pieces = [event.payload for event in log.events[KEY]]
    assert journal.progress.shown == text
    assert [len(piece.text) for piece in pieces if isinstance(piece, Token)] == [
        LONGEST_PIECE_CHARS,
        LONGEST_PIECE_CHARS,
        5,
    ]
    await Screen(journal).settle("")
    assert journal.progress.shown == ""


async def test_answer_without_end_is_cut_where_it_still_fits_an_event() -> None:
    facts = [f"The tower was built in 1889 by Gustave Eiffel in week {number}. [1] " for number in range(3000)]
    draft, payloads = await drafted(FakeModel([FACT + " ", *facts]))
    assert len(draft.text) <= LONGEST_ANSWER_CHARS
    assert degradations(payloads)[0] == "ANSWER_CUT_OFF"


async def test_a_draft_is_written_by_the_model_that_its_prompt_was_made_for() -> None:
    journal, _ = await open_journal()
    script = Script({"a/m": [says(FACT)], "b/m": [says(FACT)]})
    async with models_of(script, catalog("a/m", providers={"b": provider()})) as models:

        class Switched(Metered):
            """Somebody sets another model while the prompt is made."""

            async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
                await models.use(Operation.ANSWER, Choice("b", "m"))
                return await super().count_tokens(texts, operation)

        drafter = Drafter(FakeScorer(), Generator(Switched(models), held=models.held))
        for asked in ("a/m", "b/m"):
            await drafter.write(Question(QUESTION, (), EVIDENCE, 600), journal)
            assert script.asked.pop() == asked
            assert not script.asked
