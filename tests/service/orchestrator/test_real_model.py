"""An answer drafted by a real model: prompt, stream, marks, verification, or the quotes instead."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kit.llm.endpoint.endpoint import EndpointConfig, open_endpoint
from services.orchestrator.answering.drafting import Drafter, Question
from services.orchestrator.answering.generation import Generator
from services.orchestrator.log.events import Evidence, SupportStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, Turn
from tests.unit.orchestrator.fakes import EVIDENCE, FakeScorer, MemoryLog


@pytest.mark.timeout(600)
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
    assert draft.support_status in {SupportStatus.SUPPORTED, SupportStatus.PARTIAL}
    assert "1889" in draft.text
