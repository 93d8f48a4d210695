"""A chat whose model calls a tool that needs a person's leave, on a real NATS server: it waits, and answers on any orchestrator."""

import pytest

from services.orchestrator.log.events import Answer, Approval, ApprovalDecision, RunMode, RunStatus
from services.orchestrator.models import RunRequest
from services.orchestrator.modes.chat import ChatLimits
from services.orchestrator.toolloop.loop import LoopLimits
from tests.service.orchestrator.conftest import ANN, collect
from tests.service.orchestrator.paying import LONG_S, Start, decide, is_listed, listed
from tests.service.orchestrator.test_runs import status_of, until
from tests.unit.orchestrator.chatting import PAY, Chatting, RepeatedReplies
from tests.unit.orchestrator.fakes import FakeTools
from tests.unit.orchestrator.toolloop.scripting import call, calls

PAYS = calls(call("pay", '{"amount": 3}'))
CHAT = RunRequest(RunMode.CHAT, "Pay Bob three.")


def chatting(tools: FakeTools, *, expiry_s: float = 3600.0) -> Chatting:
    limits = ChatLimits(loop=LoopLimits(approval_timeout_s=expiry_s))
    return Chatting(RepeatedReplies([PAYS, "It is done."]), tools, limits=limits)


@pytest.mark.parametrize("allowed", [True, False])
async def test_chat_waits_for_a_person_and_answers_on_another_orchestrator(
    start_orchestrator: Start, *, allowed: bool
) -> None:
    tools = FakeTools([PAY])
    first = await start_orchestrator(worker=chatting(tools).modes)
    key, _ = await first.runs.start(ANN, CHAT)
    await until(lambda: is_listed(first, key), seconds=LONG_S)
    await first.stop()
    second = await start_orchestrator(worker=chatting(tools).modes)
    (asked,) = await listed(second)
    assert (asked.approval.tool, asked.approval.arguments) == ("pay", {"amount": 3})
    assert tools.made == []
    await decide(second, asked.approval, allowed=allowed)
    events = await collect(second.runs.attach(key, 0))
    assert [event.payload.text for event in events if isinstance(event.payload, Answer)] == ["It is done."]
    assert len(tools.made) == allowed
    assert status_of(events) in (RunStatus.COMPLETED, RunStatus.REFUSED)


async def test_chat_goes_on_without_the_call_that_nobody_decided_about(start_orchestrator: Start) -> None:
    tools = FakeTools([PAY])
    orchestrator = await start_orchestrator(worker=chatting(tools, expiry_s=0.5).modes)
    _, events = await orchestrator.runs.start(ANN, CHAT)
    told = await collect(events)
    decisions = [event.payload.decision for event in told if isinstance(event.payload, Approval)]
    assert decisions == [ApprovalDecision.PENDING, ApprovalDecision.EXPIRED]
    assert tools.made == []
    assert any(isinstance(event.payload, Answer) for event in told)
