"""A chat whose model calls a tool that needs a person's leave, on a real NATS server, where nobody decides."""

from services.orchestrator.log.events import Answer, Approval, ApprovalDecision, RunMode
from services.orchestrator.models import RunRequest
from services.orchestrator.modes.tool_answers import ChatLimits
from services.orchestrator.toolloop.loop import LoopLimits
from tests.service.orchestrator.conftest import ANN, collect
from tests.service.orchestrator.paying import Start
from tests.unit.orchestrator.chatting import PAY, Chatting, RepeatedReplies
from tests.unit.orchestrator.fakes import FakeTools
from tests.unit.orchestrator.toolloop.scripting import call, calls

PAYS = calls(call("pay", '{"amount": 3}'))
CHAT = RunRequest(RunMode.CHAT, "Pay Bob three.")


async def test_chat_goes_on_without_the_call_that_nobody_decided_about(start_orchestrator: Start) -> None:
    tools = FakeTools([PAY])
    limits = ChatLimits(loop=LoopLimits(approval_timeout_s=0.5))
    chat = Chatting(RepeatedReplies([PAYS, "It is done."]), tools, limits=limits)
    orchestrator = await start_orchestrator(worker=chat.modes)
    _, events = await orchestrator.runs.start(ANN, CHAT)
    told = await collect(events)
    decisions = [event.payload.decision for event in told if isinstance(event.payload, Approval)]
    assert decisions == [ApprovalDecision.PENDING, ApprovalDecision.EXPIRED]
    assert tools.made == []
    assert any(isinstance(event.payload, Answer) for event in told)
