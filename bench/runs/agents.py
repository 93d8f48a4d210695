"""The tool loop's own time: three steps of a model that answers at once and of a tool that does nothing, beside a peer library that
does the same."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bench.peers.peer_environment import ask_peer
from bench.report import Figure, Part
from bench.runs.steps import SYNCED
from evals.samples import Samples
from evals.tables import Table
from kit.jetstream import connect
from kit.llm import (
    ChatMessage,
    Delta,
    Finish,
    FinishReason,
    ModelInfo,
    Operation,
    Request,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from kit.testing.nats import nats_server
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.log.events import Budgets, EffectClass, RunMode, RunStarted, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import RunKey, Tool
from services.orchestrator.steps.effects import Fate, ToolOutcome
from services.orchestrator.steps.run import Run
from services.orchestrator.toolloop.loop import LoopEnd, LoopTask, ToolLoop

STEPS = 3
ROUNDS, WARM_UP_RUNS, RUNS = 5, 20, 60
TARGET_MS = 5.0
ANSWER = "Everything is known."
SQLITE = "SQLite"
PEER_ROWS = {
    "in memory": "in memory",
    SQLITE: "its SQLite checkpointer",
    "SQLite, each step before the next": "the same, durable",
}
_TIMEOUT_S = 600.0
_LOOK_UP = Tool("look_up", "Looks a word up.", {"type": "object", "properties": {"word": {"type": "string"}}})


def measure() -> Part:
    """The peer, then ours over a real message store that syncs each message to the disk, in turn."""
    job = {"steps": STEPS, "warm_up": WARM_UP_RUNS, "runs": RUNS}
    own_ms: list[float] = []
    their_ms: dict[str, list[float]] = {name: [] for name in PEER_ROWS}
    ratios: list[float] = []
    for _ in range(ROUNDS):
        peer = ask_peer("peer_langgraph", job, _TIMEOUT_S)
        run_ms = asyncio.run(_run_times())
        ratios.append(Samples.of(run_ms).median / Samples.of(peer["run_ms"][SQLITE]).median)
        own_ms += run_ms
        for name, times in peer["run_ms"].items():
            their_ms[name].extend(times)
    own, theirs = _per_step(own_ms), {name: _per_step(times) for name, times in their_ms.items()}
    ratio = Samples.of(ratios)
    return Part(
        title="Agents",
        about=_about(peer["versions"]),
        figures=(
            Figure(
                "own time of an agent's step incl. the durable log, ms",
                f"p50 {own.median:.2f}, p95 {own.p95:.2f}",
                f"p50 < {TARGET_MS:g}",
                own.median < TARGET_MS,
            ),
            Figure("of LangGraph's with its SQLite checkpointer, in turn", ratio.spread(2), "< 1", ratio.median < 1),
        ),
        tables=(_table(own, theirs),),
    )


def _about(versions: Mapping[str, str]) -> str:
    peer = ", ".join(f"{name} {number}" for name, number in versions.items())
    return (
        f"{ROUNDS} rounds of {RUNS} runs, the peer's and ours in turn. A run has {STEPS} steps, each a completion that "
        "asks for a tool and the call of it, and an answer. The model is scripted and answers at once, the tool does "
        "nothing, both in process: what is left is the engine. The time is that from the run's first entry to its "
        f"answer, by the number of steps. Peer: {peer}, in process as well: a graph of a model and its ToolNode, with "
        "the state in memory, with its checkpointer for SQLite as it comes (it writes while the next step goes on), and"
        " with it told to write each step before the next, as ours does. Ours notes three entries a step (what the "
        "model said, that the tool is called, what came of it), each synced to the disk "
        f"(`GROUNDWORK_NATS_SYNC={SYNCED}`) and acknowledged by the message store before it goes on, and plans, checks "
        "arguments and keeps books of budgets."
    )


def _table(own: Samples, theirs: Mapping[str, Samples]) -> Table:
    rows = [
        ("Groundwork, durable log", own),
        *((f"LangGraph, {PEER_ROWS[name]}", each) for name, each in theirs.items()),
    ]
    return Table(
        ("engine", "a step p50, ms", "p95, ms", "max, ms"),
        [(name, f"{each.median:.2f}", f"{each.p95:.2f}", f"{each.largest:.2f}") for name, each in rows],
    )


def _per_step(run_ms: Sequence[float]) -> Samples:
    return Samples.of([each / STEPS for each in run_ms])


async def _run_times() -> list[float]:
    """Milliseconds of each run."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(nats_server(f"jetstream {{ sync_interval: {SYNCED} }}"))
        nats = await stack.enter_async_context(connect(server.url, name="bench"))
        log = await JetStreamEventLog.open(nats, retention_days=1)
        loop = ToolLoop(_Model(), _Tools(), Drafter(_NoScorer(), None))
        times = []
        for number in range(WARM_UP_RUNS + RUNS):
            journal = await Journal.open(RunKey("bench", f"{number:032x}"), log, lambda: datetime.now(UTC))
            times.append(await _answered(loop, journal))
        return times[WARM_UP_RUNS:]


async def _answered(loop: ToolLoop, journal: Journal) -> float:
    """Milliseconds of one run, from its first entry to its answer."""
    began = time.perf_counter()
    budgets = Budgets(wall_clock_s=60.0, reasoning_steps=STEPS + 1, tool_calls=STEPS + 1, parallel_calls=1)
    run = await Run.begin(journal, RunStarted(RunMode.CHAT, "Look words up.", budgets=budgets))
    messages = [ChatMessage("user", "Look words up.")]
    result = await loop.run(run, LoopTask("Look words up.", messages, [_LOOK_UP], 100), Screen(journal))
    took_ms = 1000 * (time.perf_counter() - began)
    assert (result.end, result.text) == (LoopEnd.ANSWERED, ANSWER), result
    await run.end(RunStatus.COMPLETED)
    return took_ms


class _Model:
    """Asks for the tool in each step, then answers, without taking any time."""

    def info(self, operation: Operation) -> ModelInfo:
        return ModelInfo("bench", operation.value, 100_000)

    async def count_tokens(self, texts: Sequence[str], _: Operation) -> Sequence[int]:
        return [len(text) for text in texts]

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        done = sum(message.role == "tool" for message in request.messages)
        if done == STEPS:
            yield TextDelta(ANSWER)
            yield Finish(FinishReason.STOP, TokenUsage(100, 10), "bench", "bench")
            return
        yield ToolCallDelta(0, json.dumps({"word": f"word {done}"}), f"call-{done}", _LOOK_UP.name)
        yield Finish(FinishReason.TOOL_CALLS, TokenUsage(100, 10), "bench", "bench")


class _Tools:
    """The one tool."""

    async def offered(self) -> Sequence[Tool]:
        return [_LOOK_UP]

    def call(self, tool: Tool, arguments: Mapping[str, Any], *_: object) -> "_Call":
        return _Call(tool.name, arguments)


@dataclass(frozen=True)
class _Call:
    name: str
    arguments: Mapping[str, Any]
    effect: EffectClass = EffectClass.NONE

    async def run(self, _: str) -> ToolOutcome:
        said = f"{self.arguments['word']} is known"
        return ToolOutcome(True, said, said)

    async def find(self, call_id: str) -> ToolOutcome | Fate:
        return await self.run(call_id)


class _NoScorer:
    """Chooses nothing: a tool that does nothing brings no evidence."""

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        raise AssertionError(f"{len(sentences)} sentences of evidence for {question!r}, where no tool brings any")
