"""The steps of a run against fakes: what is written, in which order, and how each failure shows."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kit import deadline
from kit.errors import DeadlineExceeded, GroundworkError, Internal, NotFound, ResourceExhausted
from kit.language.data import LANGUAGES
from kit.llm import ModelUnavailable
from kit.stores.forgetting import Source
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.answering.refusals import REFUSAL, SEARCH_DOWN
from services.orchestrator.log.events import (
    Answer,
    AnswerStatus,
    Degradation,
    Done,
    Evidence,
    Payload,
    Retrieval,
    RunEvent,
    RunMode,
    RunStatus,
    SupportStatus,
    Thinking,
    Token,
    Usage,
    Verification,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import Dependent, HistoryMessage, RunKey, RunRecord, RunRequest, Turn
from services.orchestrator.steps.usage import Metered
from tests.unit.orchestrator.fakes import (
    EVIDENCE,
    FakeMemory,
    FakeModel,
    FakeScorer,
    FakeSearcher,
    FakeSources,
    MemoryLog,
)
from tests.unit.orchestrator.serving import document_modes, mode_services

KEY = RunKey("local", "a" * 32)
AT = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION = "When was the tower built?"


def now() -> datetime:
    return AT


class Stage:
    """A pipeline with all its fakes, and what a run of it wrote."""

    def __init__(self, model: FakeModel | None = None) -> None:
        self.log = MemoryLog()
        self.searcher = FakeSearcher()
        self.memory = FakeMemory()
        self.sources = FakeSources()
        self.model = model

    async def run(
        self,
        question: str = QUESTION,
        mode: RunMode = RunMode.QA,
        thread_id: str = "",
        history: Sequence[HistoryMessage] = (),
    ) -> list[Payload]:
        generator = Generator(Metered(self.model)) if self.model else None
        drafter = Drafter(FakeScorer(), generator)
        services = mode_services(drafter, searcher=self.searcher, memory=self.memory, sources=self.sources)
        request = RunRequest(mode, question, ("default",), thread_id=thread_id, history=history)
        journal = await Journal.open(KEY, self.log, now)
        await document_modes(services).run(RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT), journal)
        return [event.payload for event in self.log.events[KEY]]


def only(payloads: list[Payload], kind: type) -> list[Payload]:
    return [payload for payload in payloads if isinstance(payload, kind)]


def answer_of(payloads: list[Payload]) -> Answer:
    (answer,) = only(payloads, Answer)
    assert isinstance(answer, Answer)
    return answer


def shown_by(payloads: list[Payload]) -> str:
    shown = ""
    for payload in payloads:
        if isinstance(payload, Token):
            shown = shown[: payload.offset] + payload.text
    return shown


def degradations(payloads: list[Payload]) -> list[str]:
    return [p.degraded.reason for p in payloads if isinstance(p, Thinking) and p.degraded]


async def test_extractive_answer_quotes_and_cites() -> None:
    payloads = await Stage().run()
    answer = answer_of(payloads)
    assert answer.text == "The tower was built in 1889 by Gustave Eiffel. [1]"
    assert answer.method == "extractive"
    assert answer.support_status is SupportStatus.SUPPORTED
    assert [citation.document_name for citation in answer.citations] == ["tower.txt"]
    assert shown_by(payloads) == answer.text
    assert payloads[-1] == Done(RunStatus.COMPLETED)


DISPUTED = (
    Evidence(
        1, "c1", "d1", "tower-2019.txt", "The tower was built in 1889 by Gustave Eiffel.", score=0.9, dense_score=0.9
    ),
    Evidence(
        2, "c2", "d2", "tower-2024.txt", "The tower was built in 1887 by Gustave Eiffel.", score=0.8, dense_score=0.9
    ),
)


@pytest.mark.parametrize("model", [None, FakeModel(["The tower was built in 1889. [1]"])], ids=["quoted", "written"])
async def test_answer_says_that_its_sources_disagree_newest_first(model: FakeModel | None) -> None:
    stage = Stage(model)
    stage.searcher = FakeSearcher(Retrieval(DISPUTED))
    payloads = await stage.run()
    answer = answer_of(payloads)
    (conflict,) = answer.conflicts
    assert [(side.value, side.date) for side in conflict.sides] == [("1887", "2024"), ("1889", "2019")]
    assert [answer.citations[side.citation - 1].document_id for side in conflict.sides] == ["d2", "d1"]
    assert answer.text.splitlines()[-1].startswith("The sources disagree: 1887 (2024) [")
    assert shown_by(payloads) == answer.text


async def test_other_side_of_a_conflict_is_found_below_the_evidence() -> None:
    others = [Evidence(number, f"c{number}", f"d{number}", "x.txt", "A bridge.") for number in range(2, 20)]
    stage = Stage()
    stage.searcher = FakeSearcher(Retrieval((DISPUTED[0], *others, replace(DISPUTED[1], number=20))))
    payloads = await stage.run()
    assert len(answer_of(payloads).conflicts) == 1
    (found,) = only(payloads, Retrieval)
    assert isinstance(found, Retrieval)
    assert [each.number for each in found.evidence] == list(range(1, 10))
    assert found.evidence[-1].document_id == "d2"


async def test_disagreement_is_the_answer_where_no_quote_is_sure_enough() -> None:
    stage = Stage()
    vague = "Reportedly {} had, of all things, something to do with the tower in the end."
    stage.searcher = FakeSearcher(
        Retrieval(
            (
                Evidence(1, "c1", "d1", "a.txt", vague.format("Ines Duarte")),
                Evidence(2, "c2", "d2", "b.txt", vague.format("Paula Reis")),
            )
        )
    )
    payloads = await stage.run("Who sold the tower?")
    answer = answer_of(payloads)
    assert {side.value for side in answer.conflicts[0].sides} == {"Ines Duarte", "Paula Reis"}
    assert (answer.answer_confidence, answer.closest) == (None, ())
    assert payloads[-1] == Done(RunStatus.COMPLETED)


async def test_off_topic_question_is_refused_honestly() -> None:
    payloads = await Stage().run("What is the boiling point of ethanol?")
    answer = answer_of(payloads)
    assert answer.text == "I found no sure answer."
    assert [each.document_name for each in answer.closest] == ["tower.txt", "bridge.txt"]
    assert answer.answer_status is AnswerStatus.UNLIKELY
    assert payloads[-1] == Done(RunStatus.REFUSED)


async def test_model_answer_is_streamed_checked_and_paid_for() -> None:
    stage = Stage(FakeModel(["The tower was built", " in 1889. ", "[1]"]))
    payloads = await stage.run()
    answer = answer_of(payloads)
    assert (answer.text, answer.method) == ("The tower was built in 1889. [1]", "model")
    assert answer.support_status is SupportStatus.SIMILAR_WORDING
    (usage,) = only(payloads, Usage)
    assert isinstance(usage, Usage)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.model) == (100, 3, "fake")


async def test_model_sees_sources_as_numbered_data_and_history() -> None:
    model = FakeModel(["The tower was built in 1889. [1]"])
    stage = Stage(model)
    stage.memory.turns = [Turn("user", "hello"), Turn("assistant", "hi")]
    await stage.run(mode=RunMode.GROUNDED, thread_id="t1")
    (prompt,) = model.prompts
    assert [message.role for message in prompt] == ["system", "user", "assistant", "user"]
    assert "[1] (tower.txt)" in prompt[-1].content
    assert prompt[-1].content.endswith(QUESTION)


async def test_model_sees_what_the_client_says_was_said_before() -> None:
    model = FakeModel(["The tower was built in 1889. [1]"])
    said = [HistoryMessage("user", "hello"), HistoryMessage("assistant", "hi")]
    await Stage(model).run(mode=RunMode.GROUNDED, history=said)
    (prompt,) = model.prompts
    assert [message.content for message in prompt[1:3]] == ["hello", "hi"]


async def test_invented_citation_is_removed_and_said_so() -> None:
    payloads = await Stage(FakeModel(["The tower was built in 1889. [1][9]"])).run()
    assert "[9]" not in answer_of(payloads).text
    assert "[9]" not in shown_by(payloads)
    assert degradations(payloads) == ["INVENTED_CITATION"]


async def test_answer_that_nothing_carries_is_replaced_by_quotes() -> None:
    payloads = await Stage(FakeModel(["Visitors adore the splendid view in summer."])).run()
    answer = answer_of(payloads)
    assert answer.method == "extractive"
    assert shown_by(payloads) == answer.text == "The tower was built in 1889 by Gustave Eiffel. [1]"
    assert degradations(payloads) == ["UNSUPPORTED_ANSWER"]


async def test_model_that_breaks_off_falls_back_and_says_so() -> None:
    payloads = await Stage(FakeModel(["The tow"], ModelUnavailable("broke off"))).run()
    answer = answer_of(payloads)
    assert answer.method == "extractive"
    assert shown_by(payloads) == answer.text
    assert degradations(payloads) == ["LLM_UNAVAILABLE"]


async def test_model_caught_in_a_loop_is_cut_off() -> None:
    model = FakeModel(["The tower was built in 1889. [1]\n", *["It is tall. [1]\n"] * 50])
    payloads = await Stage(model).run()
    answer = answer_of(payloads)
    assert answer.text == "The tower was built in 1889. [1]\nIt is tall."
    assert shown_by(payloads) == answer.text


async def test_model_may_refuse() -> None:
    payloads = await Stage(FakeModel([REFUSAL])).run()
    assert answer_of(payloads).support_status is SupportStatus.INSUFFICIENT
    assert answer_of(payloads).closest
    assert payloads[-1] == Done(RunStatus.REFUSED)


async def test_model_is_not_asked_without_evidence() -> None:
    model = FakeModel(["anything"])
    stage = Stage(model)
    stage.searcher.retrieval = Retrieval(())
    payloads = await stage.run()
    assert model.prompts == []
    assert payloads[-1] == Done(RunStatus.REFUSED)


async def test_search_outage_is_said_and_nothing_is_invented() -> None:
    stage = Stage(FakeModel(["anything"]))
    stage.searcher.down = True
    payloads = await stage.run()
    assert answer_of(payloads).text == SEARCH_DOWN
    assert answer_of(payloads).support_status is SupportStatus.UNAVAILABLE
    assert degradations(payloads) == ["SEARCH_UNAVAILABLE"]


async def test_degraded_search_is_passed_on() -> None:
    stage = Stage()
    stage.searcher.retrieval = Retrieval(EVIDENCE, (Degradation("dense", "EMBEDDER_UNAVAILABLE", "words only"),))
    assert degradations(await stage.run()) == ["EMBEDDER_UNAVAILABLE"]


DENSE_AWAY = Degradation("dense", "EMBEDDER_UNAVAILABLE", "words only")
LEXICAL_AWAY = Degradation("lexical", "INDEX_UNAVAILABLE", "vectors only")
UNRANKED = Degradation("rerank", "RERANKER_UNAVAILABLE", "fused order")


@pytest.mark.parametrize("evidence", [(), EVIDENCE], ids=["nothing found", "nothing that answers"])
@pytest.mark.parametrize("model", [None, FakeModel([REFUSAL])], ids=["extractive", "model"])
@pytest.mark.parametrize(
    "away", [DENSE_AWAY, LEXICAL_AWAY, Degradation("graph", "GRAPH_AWAY", "new")], ids=lambda each: str(each.part)
)
async def test_refusal_after_half_a_search_says_that_not_everything_was_searched(
    away: Degradation, model: FakeModel | None, evidence: tuple[Evidence, ...]
) -> None:
    stage = Stage(model)
    stage.searcher.retrieval = Retrieval(evidence, (away, UNRANKED))
    payloads = await stage.run("What is the boiling point of ethanol?")
    answer = answer_of(payloads)
    assert answer.text != REFUSAL
    assert "so there may be more in the documents" in answer.text
    assert shown_by(payloads) == answer.text
    assert answer.support_status is SupportStatus.INSUFFICIENT
    assert payloads[-1] == Done(RunStatus.REFUSED)


async def test_refusal_after_neither_engine_answered_says_that_search_is_away() -> None:
    stage = Stage()
    stage.searcher.retrieval = Retrieval((), (DENSE_AWAY, LEXICAL_AWAY))
    answer = answer_of(await stage.run())
    assert (answer.text, answer.support_status) == (SEARCH_DOWN, SupportStatus.UNAVAILABLE)


async def test_refusal_after_a_search_that_only_went_unranked_is_the_plain_one() -> None:
    stage = Stage()
    stage.searcher.retrieval = Retrieval((), (UNRANKED,))
    assert answer_of(await stage.run()).text == REFUSAL


async def test_sources_are_noted_before_their_text_is_logged() -> None:
    stage = Stage()
    noted_before: list[bool] = []
    append = stage.log.append

    async def watched(key: RunKey, event: RunEvent, last_position: int) -> int:
        if isinstance(event.payload, Retrieval):
            noted_before.append(len(stage.sources.noted) == 2)
        return await append(key, event, last_position)

    stage.log.append = watched  # type: ignore[method-assign]
    await stage.run(mode=RunMode.GROUNDED, thread_id="t1")
    assert noted_before == [True]
    assert await stage.sources.dependents("local", Source.document("d1")) == [Dependent(KEY, "t1", "ann")]


async def test_document_deleted_while_it_was_searched_for_is_neither_logged_nor_quoted() -> None:
    stage = Stage()
    await stage.sources.mark_forgotten("local", Source.document("d1"))
    payloads = await stage.run()
    (retrieval,) = only(payloads, Retrieval)
    assert isinstance(retrieval, Retrieval)
    assert [(hit.number, hit.document_id) for hit in retrieval.evidence] == [(1, "d2")]
    assert "1889" not in repr(payloads)


async def test_text_whose_source_cannot_be_noted_is_shown_live_and_kept_nowhere() -> None:
    stage = Stage()
    stage.sources.down = True
    payloads = await stage.run(mode=RunMode.GROUNDED, thread_id="t1")
    assert "1889" not in repr(payloads)
    assert stage.memory.remembered == []


async def test_answers_shown_to_a_model_are_sources_and_forgotten_ones_are_not_shown() -> None:
    model = FakeModel(["The tower was built in 1889. [1]"])
    stage = Stage(model)
    stage.memory.turns = [
        Turn("user", "hello", "r1"),
        Turn("assistant", "the old secret", "r1"),
        Turn("user", "and", "r2"),
        Turn("assistant", "fine", "r2"),
    ]
    await stage.sources.mark_forgotten("local", Source.run("r1"))
    await stage.run(mode=RunMode.GROUNDED, thread_id="t1")
    (prompt,) = model.prompts
    assert [message.content for message in prompt[1:-1]] == ["hello\n\nand", "fine"]
    assert [each.key for each in await stage.sources.dependents("local", Source.run("r2"))] == [KEY]


async def test_turn_is_remembered_and_memory_outage_is_survived() -> None:
    stage = Stage()
    payloads = await stage.run(mode=RunMode.GROUNDED, thread_id="t1")
    assert stage.memory.remembered == [("t1", KEY.run_id, QUESTION, answer_of(payloads).text)]
    stage = Stage()
    stage.memory.down = True
    payloads = await stage.run(mode=RunMode.GROUNDED, thread_id="t1")
    assert degradations(payloads) == ["UNAVAILABLE", "UNAVAILABLE"]
    assert payloads[-1] == Done(RunStatus.COMPLETED)


async def test_follow_up_question_searches_with_the_last_one() -> None:
    stage = Stage()
    stage.memory.turns = [Turn("user", "Tell me about the tower"), Turn("assistant", "…")]
    await stage.run("When was it built?", RunMode.GROUNDED, "t1")
    assert stage.searcher.queries[0].queries == ("When was it built?", "Tell me about the tower When was it built?")


@pytest.mark.parametrize("model", [False, True], ids=["extractive", "model"])
async def test_run_cut_off_after_any_event_ends_the_same(model: bool) -> None:
    """The heart of durability: whatever prefix of the log survives, whoever continues it arrives at the same answer, asks
    search at most once in all, and shows a text that joins up."""

    def stage() -> Stage:
        return Stage(FakeModel(["The tower was ", "built in 1889. [1]"]) if model else None)

    whole_stage = stage()
    whole = await whole_stage.run(mode=RunMode.GROUNDED, thread_id="t1")
    for cut in range(len(whole)):
        resumed = stage()
        resumed.log.events[KEY] = whole_stage.log.events[KEY][:cut]
        payloads = await resumed.run(mode=RunMode.GROUNDED, thread_id="t1")
        assert answer_of(payloads) == answer_of(whole)
        assert shown_by(payloads) == answer_of(whole).text
        assert payloads[-1] == whole[-1]
        assert len(only(payloads, Done)) == len(only(payloads, Retrieval)) == 1
        searched_before = any(isinstance(payload, Retrieval) for payload in whole[:cut])
        assert len(resumed.searcher.queries) == (0 if searched_before else 1)
        assert [event.seq for event in resumed.log.events[KEY]] == list(range(1, len(payloads) + 1))


async def test_finished_run_is_not_touched() -> None:
    stage = Stage()
    whole = await stage.run()
    assert await stage.run() == whole


@pytest.mark.parametrize("error", [DeadlineExceeded("it hangs"), ResourceExhausted("busy"), Internal("it broke")])
async def test_search_that_hangs_or_breaks_is_an_outage_too(error: GroundworkError) -> None:
    stage = Stage()
    stage.searcher.error = error
    payloads = await stage.run()
    assert answer_of(payloads).support_status is SupportStatus.UNAVAILABLE
    assert degradations(payloads) == [error.reason]


async def test_search_that_a_collection_does_not_allow_fails_the_run() -> None:
    stage = Stage()
    stage.searcher.error = NotFound("collection x does not exist")
    with pytest.raises(NotFound):
        await stage.run()


async def test_search_that_used_up_the_run_s_time_is_no_outage() -> None:
    stage = Stage()
    stage.searcher.error = DeadlineExceeded("no time left")
    deadline.set_remaining(0.01)
    with pytest.raises(DeadlineExceeded):
        await stage.run()


async def test_greeting_is_answered_as_one() -> None:
    payloads = await Stage().run("Hello!")
    answer = answer_of(payloads)
    assert answer.text.startswith("Hello!")
    assert (answer.citations, answer.support_status, answer.answer_status) == ((), None, None)
    assert payloads[-1] == Done(RunStatus.COMPLETED)
    assert not [each for each in payloads if isinstance(each, Retrieval)]


@pytest.mark.parametrize("question", ["Thanks!", "Au revoir !", "再见"])
async def test_thanks_and_farewells_are_answered_without_a_search(question: str) -> None:
    payloads = await Stage().run(question)
    assert answer_of(payloads).text == LANGUAGES["en"].greeting, "nothing here tells languages apart"
    assert not only(payloads, Retrieval)


async def test_answer_says_how_likely_it_answers() -> None:
    payloads = await Stage().run()
    answer = answer_of(payloads)
    (verification,) = only(payloads, Verification)
    assert answer.support_status is SupportStatus.SUPPORTED
    assert answer.answer_confidence == verification.answer_confidence
    assert answer.answer_confidence is not None
    assert 0.4 <= answer.answer_confidence <= 1.0
    assert answer.answer_status is verification.answer_status


async def test_written_answer_says_nothing_of_how_likely_it_answers() -> None:
    payloads = await Stage(FakeModel(["The tower was built in 1889. [1]"])).run()
    answer = answer_of(payloads)
    assert answer.method == "model"
    assert (answer.answer_confidence, answer.answer_status) == (None, None)
