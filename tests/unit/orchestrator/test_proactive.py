"""A chat whose model calls no tools, or that has no model: the words of the message decide, and the events are the same."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kit.llm import ModelUnavailable, TextDelta, ToolsRefused
from services.orchestrator.answering.refusals import SEARCH_DOWN
from services.orchestrator.log.events import (
    Budgets,
    Plan,
    Retrieval,
    RunStatus,
    SupportStatus,
    Thinking,
    Token,
    ToolCall,
    ToolResult,
    Verification,
)
from services.orchestrator.models import ToolSelection, Turn
from services.orchestrator.modes.tool_answers import ChatLimits
from services.orchestrator.steps.effects import ToolOutcome
from tests.unit.orchestrator.chatting import TOOLS, Chatting, RepeatedReplies, answer_of, reasons, status_of
from tests.unit.orchestrator.cutting import KEY, shown_by
from tests.unit.orchestrator.fakes import FakeTools

GOOD = "The tower was built in 1889 by Gustave Eiffel. [1]"
BY_WORDS = ChatLimits(tool_calling=False)


async def test_question_is_searched_for_and_answered_without_a_model() -> None:
    chat = Chatting()
    payloads = await chat.run()
    kinds = [type(each) for each in payloads if not isinstance(each, Thinking)]
    assert kinds[1:][:6] == [Plan, ToolCall, ToolResult, Retrieval, Token, Verification]
    answer = answer_of(payloads)
    assert answer.text == GOOD == shown_by(chat.log.events[KEY])
    assert (answer.method, answer.support_status) == ("extractive", SupportStatus.SUPPORTED)
    assert status_of(payloads) is RunStatus.COMPLETED


async def test_question_is_searched_for_and_answered_by_a_model_that_calls_no_tools() -> None:
    chat = Chatting(RepeatedReplies([GOOD]), limits=BY_WORDS)
    payloads = await chat.run()
    assert answer_of(payloads).method == "model"
    assert chat.tools.made == [("search", {"queries": ["When was the tower built?"]})]
    assert not chat.model.requests[0].tools


async def test_follow_up_is_searched_for_with_the_question_before_it() -> None:
    chat = Chatting(question="And who built it?", thread_id="t1")
    chat.memory.turns = [Turn("user", "When was the tower built?"), Turn("assistant", "In 1889.", "r0")]
    await chat.run()
    ((_, arguments),) = chat.tools.made
    assert arguments == {"queries": ["And who built it?", "When was the tower built? And who built it?"]}


async def test_question_that_the_documents_do_not_answer_is_refused() -> None:
    payloads = await Chatting(question="What is the boiling point of ethanol?").run()
    assert answer_of(payloads).text == "I found no sure answer."
    assert answer_of(payloads).closest
    assert status_of(payloads) is RunStatus.REFUSED


async def test_search_that_is_away_is_tried_twice_and_said() -> None:
    tools = FakeTools(TOOLS, lambda name, arguments: ToolOutcome(False, {}, "away", "SEARCH_UNAVAILABLE"))
    payloads = await Chatting(tools=tools).run()
    assert len(tools.made) == 2
    answer = answer_of(payloads)
    assert (answer.text, answer.support_status) == (SEARCH_DOWN, SupportStatus.UNAVAILABLE)
    assert status_of(payloads) is RunStatus.REFUSED


async def test_what_a_search_had_to_do_without_is_said() -> None:
    note = {"part": "dense", "reason": "EMBEDDER_UNAVAILABLE", "message": "words only"}

    def half(name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome(True, {"hits": [], "degraded": [note]}, "Nothing found.")

    payloads = await Chatting(tools=FakeTools(TOOLS, half)).run()
    assert reasons(payloads) == ["EMBEDDER_UNAVAILABLE"]
    assert answer_of(payloads).text.startswith("I found no sure answer: ")


@pytest.mark.parametrize(
    ("question", "call", "text"),
    [
        ("What is 6 * 7?", ("math_eval", {"expression": "6 * 7"}), "6 * 7 = 42"),
        ("What time is it?", ("time_now", {}), "It is Thursday, 2026-01-01, 12:30 (UTC)."),
    ],
)
async def test_sums_and_the_time_have_tools_of_their_own(question: str, call: object, text: str) -> None:
    chat = Chatting(question=question)
    payloads = await chat.run()
    assert chat.tools.made == [call]
    answer = answer_of(payloads)
    assert (answer.text, answer.support_status) == (text, None)
    assert status_of(payloads) is RunStatus.COMPLETED


async def test_sum_that_cannot_be_done_says_why() -> None:
    tools = FakeTools(TOOLS, lambda name, arguments: ToolOutcome(False, {}, "division by zero", "MATH_ERROR"))
    answer = answer_of(await Chatting(question="1 / 0", tools=tools).run())
    assert answer.text == "I could not compute 1 / 0: division by zero"


async def test_small_talk_is_answered_politely_without_a_model() -> None:
    chat = Chatting(question="Hello!")
    payloads = await chat.run()
    text = answer_of(payloads).text
    assert text.startswith("Hello!")
    assert not chat.tools.made
    assert status_of(payloads) is RunStatus.COMPLETED


@pytest.mark.parametrize("with_model", [False, True])
async def test_who_asks_for_something_to_be_done_is_told_that_it_takes_a_model_that_calls_tools(
    with_model: bool,
) -> None:
    model = [RepeatedReplies(["I have noted it."])] if with_model else []
    chat = Chatting(*model, question="Take a note: the boat is blue", limits=BY_WORDS)
    payloads = await chat.run()
    text = answer_of(payloads).text
    assert text.startswith("I cannot do that")
    assert "GROUNDWORK_LLM_BASE_URL" in text
    assert "make run LLM=local" in text
    assert not chat.tools.made
    assert status_of(payloads) is RunStatus.REFUSED


async def test_small_talk_is_the_models_where_there_is_one_and_cites_nothing() -> None:
    chat = Chatting(RepeatedReplies(["Hello, Ann! [1]"]), question="Hello!", limits=BY_WORDS)
    payloads = await chat.run()
    answer = answer_of(payloads)
    assert (answer.text, answer.method, answer.citations) == ("Hello, Ann!", "model", ())
    assert not chat.tools.made


async def test_small_talk_is_answered_when_the_model_fails() -> None:
    chat = Chatting(RepeatedReplies([ModelUnavailable("down")]), question="Hello!")
    payloads = await chat.run()
    assert answer_of(payloads).text.startswith("Hello!")
    assert "LLM_UNAVAILABLE" in reasons(payloads)


async def test_what_may_not_be_searched_for_is_said() -> None:
    payloads = await Chatting(selection=ToolSelection(("math_eval",))).run()
    answer = answer_of(payloads)
    assert answer.text.startswith("I cannot answer this")
    assert "I can do sums" in answer.text
    assert answer.support_status is SupportStatus.UNAVAILABLE
    assert status_of(payloads) is RunStatus.REFUSED


async def test_tool_that_a_person_must_allow_is_not_called_on_the_words_of_a_message() -> None:
    tools = FakeTools([replace(tool, needs_approval=True) for tool in TOOLS])
    payloads = await Chatting(tools=tools).run()
    assert not tools.made
    assert status_of(payloads) is RunStatus.REFUSED


async def test_dollars_that_are_spent_are_no_reason_not_to_quote() -> None:
    refuses = RepeatedReplies([[TextDelta("…"), ToolsRefused("no")]])
    payloads = await Chatting(refuses, budgets=Budgets(cost_usd=0.01), price=lambda spent: 1.0).run()
    assert "BUDGET_SPENT" in reasons(payloads)
    assert (answer_of(payloads).text, answer_of(payloads).method) == (GOOD, "extractive")


async def test_what_was_found_is_noted_before_it_is_written() -> None:
    chat = Chatting()
    await chat.run()
    assert {source.item_id for _, source in chat.sources.noted} == {"d1", "d2"}
