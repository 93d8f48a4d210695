"""Chats over fakes: what stands outside of a run of mode chat, and what the run wrote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kit.llm import Request
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.log.events import Answer, Budgets, Done, EffectClass, Payload, RunMode, RunStatus, Thinking
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import BroughtName, RunRecord, RunRequest, Tool, ToolSelection, WithoutModel
from services.orchestrator.modes.chat import Chat
from services.orchestrator.modes.mode import ModeServices
from services.orchestrator.modes.serving import Modes
from services.orchestrator.modes.tool_answers import ChatLimits
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.steps.usage import Metered, Price, free
from tests.unit.orchestrator.cutting import AT, KEY, now
from tests.unit.orchestrator.fakes import EVIDENCE, FakeMemory, FakeScorer, FakeSources, FakeTools, MemoryLog
from tests.unit.orchestrator.serving import NoModel, mode_services
from tests.unit.orchestrator.toolloop.scripting import Reply, ScriptedReplies

QUESTION = "When was the tower built?"
_QUERIES = {"type": "object", "properties": {"queries": {"type": "array", "items": {"type": "string"}}}}
_ANYTHING = {"type": "object"}
_FINDS = WithoutModel("search", "queries", "find and quote what your documents say")
SEARCH = Tool("search", "Searches.", _QUERIES, worth=3, without_model=_FINDS)
MATH = Tool("math_eval", "Computes.", _ANYTHING, worth=2, without_model=WithoutModel("math", "expression", "do sums"))
TIME = Tool(
    "time_now",
    "Tells the time.",
    _ANYTHING,
    worth=1,
    without_model=WithoutModel("time", ability="tell the date and time"),
)
PAY = Tool("pay", "Pays.", _ANYTHING, EffectClass.ONCE, needs_approval=True)
TOOLS = (SEARCH, MATH, TIME)


def answered(name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
    """What the tools say."""
    match name:
        case "search":
            passages = [{"text": source.text} for source in EVIDENCE]
            return ToolOutcome(True, {"hits": passages}, "2 passages found.", evidence=EVIDENCE)
        case "math_eval":
            return ToolOutcome(True, {"expression": arguments["expression"], "result": "42", "value": 42}, "42")
        case "time_now":
            content = {"timezone": "UTC", "time": "2026-01-01T12:30:00+00:00", "weekday": "Thursday"}
            return ToolOutcome(True, content, "Thursday")
        case _:
            return ToolOutcome(True, {"done": True}, f"{name} is done.")


class RepeatedReplies(ScriptedReplies):
    """A model that says the same of the same conversation, to whoever asks: its reply follows from the number of observations."""

    def _reply(self, request: Request) -> Reply:
        rounds = sum(bool(message.tool_calls) for message in request.messages)
        return self.replies[min(rounds, len(self.replies) - 1)]


@dataclass
class Chatting:
    """One run of mode chat."""

    model: Any = field(default_factory=NoModel)
    tools: FakeTools = field(default_factory=lambda: FakeTools(TOOLS, answered))
    question: str = QUESTION
    collection_ids: Sequence[str] = ()
    thread_id: str = ""
    selection: ToolSelection | None = None
    budgets: Budgets = Budgets()
    limits: ChatLimits = field(default_factory=ChatLimits)
    memory: FakeMemory = field(default_factory=FakeMemory)
    sources: FakeSources = field(default_factory=FakeSources)
    log: MemoryLog = field(default_factory=MemoryLog)
    price: Price = free
    brought: BroughtName | None = None
    others: int = 0
    """Chats that the orchestrator serves already."""

    @property
    def record(self) -> RunRecord:
        request = RunRequest(
            RunMode.CHAT,
            self.question,
            self.collection_ids,
            thread_id=self.thread_id,
            tools=self.selection,
            budgets=self.budgets,
            model_credentials=self.brought,
        )
        return RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT)

    @property
    def mode(self) -> Chat:
        chat = Chat(self._services, self.limits)
        chat._agentic = self.others
        return chat

    @property
    def _services(self) -> ModeServices:
        model = Metered(self.model, self.price)
        drafter = Drafter(FakeScorer(), Generator(model))
        return mode_services(drafter, model=model, tools=self.tools, memory=self.memory, sources=self.sources)

    @property
    def modes(self) -> Modes:
        return Modes([self.mode], self._services)

    async def work(self, journal: Journal) -> RunStatus:
        """One worker: everything of the process is new."""
        return await self.modes.run(self.record, journal)

    async def run(self) -> list[Payload]:
        await self.work(await Journal.open(KEY, self.log, now))
        return self.payloads

    @property
    def payloads(self) -> list[Payload]:
        return [event.payload for event in self.log.events[KEY]]


def answer_of(payloads: Sequence[Payload]) -> Answer:
    (answer,) = [each for each in payloads if isinstance(each, Answer)]
    return answer


def status_of(payloads: Sequence[Payload]) -> RunStatus:
    assert isinstance(payloads[-1], Done)
    return payloads[-1].status


def reasons(payloads: Sequence[Payload]) -> list[str]:
    """Of what was done in a lesser way."""
    return [each.degraded.reason for each in payloads if isinstance(each, Thinking) and each.degraded]
