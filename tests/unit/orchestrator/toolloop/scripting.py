"""Models that say what a test scripts, one reply a completion, and runs of the loop over them."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kit.llm import (
    ChatMessage,
    Delta,
    Finish,
    FinishReason,
    ModelInfo,
    Operation,
    Request,
    Spent,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    estimate_tokens,
)
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.log.events import Budgets, Evidence, RunMode, RunStarted
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import Tool
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.steps.run import Run
from services.orchestrator.steps.usage import Metered
from services.orchestrator.toolloop.loop import LoopLimits, LoopResult, LoopTask, ToolLoop
from tests.unit.orchestrator.cutting import KEY, now, shown_by
from tests.unit.orchestrator.fakes import EVIDENCE, FakeScorer, FakeTools, MemoryLog

Reply = str | Exception | Sequence[Delta | Exception]
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SEARCH = Tool("search", "Searches.", SCHEMA)
QUESTION = "When was the tower built?"
USAGE = TokenUsage(100, 10)


def call(name: str, arguments: str, index: int = 0, call_id: str = "") -> ToolCallDelta:
    return ToolCallDelta(index, arguments, call_id or f"id{index}", name)


def calls(*each: ToolCallDelta) -> Sequence[Delta]:
    return [*each, Finish(FinishReason.TOOL_CALLS, USAGE)]


def said(text: str, reason: FinishReason = FinishReason.STOP) -> Sequence[Delta]:
    return [TextDelta(text), Finish(reason, USAGE)]


@dataclass
class ScriptedReplies:
    """A model whose reply to a conversation is the one after as many as it has answered already: asked again after a death, it says
    the same again."""

    replies: Sequence[Reply]
    context_tokens: int = 8192
    requests: list[Request] = field(default_factory=list)

    def info(self, operation: Operation) -> ModelInfo:
        return ModelInfo("scripted", "scripted", self.context_tokens)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        return [estimate_tokens(text) for text in texts]

    def _reply(self, request: Request) -> Reply:
        return self.replies[min(len(self.requests), len(self.replies)) - 1]

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        self.requests.append(request)
        reply = self._reply(request)
        deltas = said(reply) if isinstance(reply, str) else [reply] if isinstance(reply, Exception) else reply
        try:
            for delta in deltas:
                if isinstance(delta, Exception):
                    raise delta
                yield delta
        finally:
            if request.meter is not None:
                request.meter.add(Spent("scripted", "scripted", USAGE))


def found(*sources: Evidence) -> ToolOutcome:
    passages = [{"number": source.number, "text": source.text} for source in sources]
    return ToolOutcome(True, {"passages": passages}, f"{len(sources)} passages found.", evidence=sources)


def finding(*sources: Evidence) -> Callable[[str, Mapping[str, Any]], ToolOutcome]:
    return lambda name, arguments: found(*(sources or EVIDENCE))


@dataclass
class Scene:
    """What stands outside of a run of the loop."""

    model: Any
    tools: FakeTools = field(default_factory=lambda: FakeTools([SEARCH], finding()))
    budgets: Budgets = field(default_factory=lambda: Budgets(reasoning_steps=3, tool_calls=6, parallel_calls=3))
    limits: LoopLimits = field(default_factory=LoopLimits)
    task_fields: dict[str, Any] = field(default_factory=dict)
    log: MemoryLog = field(default_factory=MemoryLog)

    @property
    def task(self) -> LoopTask:
        messages = [ChatMessage("system", "You help."), ChatMessage("user", QUESTION)]
        fields = {"messages": messages, "offered": self.tools.tools, "answer_tokens": 300, **self.task_fields}
        return LoopTask(QUESTION, **fields)

    @property
    def loop(self) -> ToolLoop:
        return ToolLoop(Metered(self.model), self.tools, Drafter(FakeScorer(), None), self.limits)

    async def work(self, journal: Journal) -> LoopResult:
        run = await Run.begin(journal, RunStarted(RunMode.CHAT, QUESTION, budgets=self.budgets))
        return await self.loop.run(run, self.task, Screen(journal))

    async def run(self) -> LoopResult:
        return await self.work(await Journal.open(KEY, self.log, now))

    @property
    def events(self) -> Sequence[Any]:
        return [event.payload for event in self.log.events[KEY]]

    @property
    def shown(self) -> str:
        return shown_by(self.log.events[KEY])
