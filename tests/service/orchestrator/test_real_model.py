"""Answers by a real model: prompt, stream, marks, verification, or the quotes instead; and a chat in which it calls a tool."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from kit.llm.endpoint.endpoint import EndpointConfig, open_endpoint
from kit.llm.schema_calls import SchemaCalls
from services.orchestrator.answering.blocks import fill_in
from services.orchestrator.answering.drafting import Drafter, Question
from services.orchestrator.answering.generation import Generator, Listener
from services.orchestrator.drawing.forms import Form
from services.orchestrator.drawing.schemas import filled_schema
from services.orchestrator.log.events import Budgets, Evidence, RunStatus, SupportStatus, ToolCall, ToolResult
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, Tool, Turn
from services.orchestrator.modes.tool_answers import ChatLimits
from services.orchestrator.prompts import rules
from services.orchestrator.quizzes.checking import schema_of
from services.orchestrator.quizzes.questions import QuestionKind
from tests.unit.orchestrator.chatting import Chatting, answer_of, status_of
from tests.unit.orchestrator.fakes import EVIDENCE, FakeScorer, FakeTools, MemoryLog


async def test_question_is_answered_however_much_there_is_to_read(real_model: EndpointConfig) -> None:
    padding = tuple(
        Evidence(number, f"c{number}", f"d{number}", "other.txt", "На мосту стоят люди и смотрят на реку. " * 40)
        for number in range(3, 11)
    )
    history = [Turn("user", "Кто построил мост? " * 200), Turn("assistant", "Никто не знает [1]. " * 200)]
    journal = await Journal.open(RunKey("local", "r1"), MemoryLog(), lambda: datetime.now(UTC))
    question = Question("When was the tower built?", history, EVIDENCE + padding, 40)
    config = replace(real_model, context_tokens=1024)  # less to read than the server could: its speed is not the point
    async with open_endpoint(config) as endpoint:
        draft = await Drafter(FakeScorer(), Generator(endpoint)).write(question, journal)
        assert not question.meter.total.estimated, "the model has answered"
        assert question.meter.total.prompt_tokens + 40 <= endpoint.info().context_tokens
    assert journal.progress.shown == draft.text
    assert draft.support_status in {SupportStatus.SUPPORTED, SupportStatus.PARTIAL, SupportStatus.SIMILAR_WORDING}
    assert "1889" in draft.text


CLOCK = Tool(
    "time_now",
    "Tells the current time in a time zone.",
    {
        "type": "object",
        "properties": {"timezone": {"type": "string", "enum": ["Europe/Berlin", "Asia/Tokyo"]}},
        "required": ["timezone"],
        "additionalProperties": False,
    },
)


@pytest.mark.parametrize("calls", ["native", "schema"])
async def test_model_calls_a_tool_and_the_run_ends_in_an_answer(real_model: EndpointConfig, calls: str) -> None:
    async with open_endpoint(real_model) as endpoint:
        await endpoint.count_tokens(["a"])  # then it is known what kind of server it is
        if calls == "native" and endpoint.info().provider != "vllm":
            pytest.skip("this server's template offers the model no tools")
        chat = Chatting(
            SchemaCalls(endpoint) if calls == "schema" else endpoint,
            FakeTools([CLOCK]),
            question="Compare the clocks of Berlin and Tokyo.",
            budgets=Budgets(answer_tokens=120),
            limits=ChatLimits(tool_choice="required", budgets=Budgets()),
        )
        payloads = await chat.run()
    (call, *_) = [each for each in payloads if isinstance(each, ToolCall)]
    results = [each for each in payloads if isinstance(each, ToolResult)]
    assert call.name == CLOCK.name
    assert results[0].ok
    assert answer_of(payloads).text
    assert status_of(payloads) in {RunStatus.COMPLETED, RunStatus.REFUSED}


@pytest.mark.parametrize(
    ("message", "schema", "items"),
    [
        ("Write a quiz with one question.", schema_of(1, [QuestionKind.MULTIPLE_CHOICE]), "questions"),
        ("Draw a bar chart of the years of the buildings.", filled_schema(Form.BAR), "points"),
    ],
)
async def test_model_is_held_to_the_schema_of_what_agents_make(
    real_model: EndpointConfig, message: str, schema: Mapping[str, Any], items: str
) -> None:
    """Whether what so small a model writes is right is not asked; it raises NoBlock where it does not follow the schema."""
    async with open_endpoint(real_model) as endpoint:
        block = await fill_in(
            Generator(endpoint),
            schema,
            message,
            (),
            EVIDENCE,
            system=rules.BLOCK,
            max_tokens=500,
            listener=Listener(),
        )
    assert len(block[items]) >= 1
