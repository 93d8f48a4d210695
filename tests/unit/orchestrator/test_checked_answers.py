"""Answers that a model gives whole, by a schema: nothing is shown before it is checked."""

import json
from typing import Any

import pytest

from kit.llm import Request
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.log.events import Answer, Payload, RunMode, RunStatus, SupportStatus, Thinking, Token
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord, RunRequest
from services.orchestrator.modes.documents import Limits
from services.orchestrator.modes.grounded import Grounded
from services.orchestrator.modes.serving import Modes
from tests.unit.orchestrator.cutting import AT, KEY, now
from tests.unit.orchestrator.fakes import FakeScorer, MemoryLog
from tests.unit.orchestrator.serving import mode_services
from tests.unit.orchestrator.toolloop.scripting import Reply, ScriptedReplies


class Said(ScriptedReplies):
    """A model that says its replies one after the other."""

    def _reply(self, request: Request) -> Reply:
        return self.replies[len(self.requests) - 1]


def said(answer: str, citations: list[int], status: str = "supported") -> str:
    return json.dumps({"answer": answer, "citations": citations, "support_status": status})


async def run_of(*replies: str) -> tuple[Said, list[Payload], RunStatus]:
    model, log = Said(replies), MemoryLog()
    services = mode_services(Drafter(FakeScorer(), Generator(model)))
    modes = Modes([Grounded(services, Limits(), checks_first=True)], services)
    request = RunRequest(RunMode.GROUNDED, "When was the tower built?", ("default",), agent="reasoning")
    record = RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT)
    status = await modes.run(record, await Journal.open(KEY, log, now))
    return model, [event.payload for event in log.events[KEY]], status


def only(payloads: list[Payload], kind: type[Any]) -> Any:
    (found,) = [each for each in payloads if isinstance(each, kind)]
    return found


async def test_answer_is_shown_once_it_is_checked() -> None:
    model, payloads, _ = await run_of(said("The tower was built in 1889 [1].", [1]))
    answer = only(payloads, Answer)
    assert (answer.text, answer.method, answer.block) == ("The tower was built in 1889 [1].", "model", None)
    assert answer.support_status in (SupportStatus.SUPPORTED, SupportStatus.SIMILAR_WORDING)
    assert "".join(each.text for each in payloads if isinstance(each, Token)) == answer.text
    schema: Any = model.requests[0].schema
    assert schema["properties"]["citations"]["items"]["enum"] == [1, 2]


async def test_answer_without_marks_gets_those_of_its_sources() -> None:
    _, payloads, _ = await run_of(said("The tower was built in 1889.", [1]))
    answer = only(payloads, Answer)
    assert [each.document_name for each in answer.citations] == ["tower.txt"]


@pytest.mark.parametrize("empty", [said("", [], "insufficient"), said("I think 1889 [1].", [1], "insufficient")])
async def test_sources_that_do_not_answer_are_a_refusal(empty: str) -> None:
    _, payloads, status = await run_of(empty)
    assert status is RunStatus.REFUSED
    answer = only(payloads, Answer)
    assert answer.method == "model"
    assert answer.closest, "what came closest is shown"


async def test_source_that_does_not_exist_is_sent_back() -> None:
    model, payloads, _ = await run_of(
        said("The tower was built in 1889 [7].", [7]), said("The tower was built in 1889 [1].", [1])
    )
    assert len(model.requests) == 2
    assert "7 is not one of" in model.requests[1].messages[-1].content
    assert only(payloads, Answer).text == "The tower was built in 1889 [1]."


async def test_model_that_follows_no_schema_streams() -> None:
    written = "The tower was built in 1889 [1]."
    model, payloads, status = await run_of(written, written, written)
    assert (status, only(payloads, Answer).text) == (RunStatus.COMPLETED, written)
    assert model.requests[-1].schema is None
    assert [each.degraded.reason for each in payloads if isinstance(each, Thinking) and each.degraded] == [
        "LLM_NO_BLOCK"
    ]


async def test_claim_that_no_source_carries_is_not_shown() -> None:
    _, payloads, _ = await run_of(said("The zoo owns forty elephants and three bears [1].", [1]))
    assert not any("elephants" in each.text for each in payloads if isinstance(each, Token))
    assert "1889" in only(payloads, Answer).text or only(payloads, Answer).closest
