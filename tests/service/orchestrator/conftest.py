"""Orchestrators over one real NATS server, with fakes behind the other ports."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

import grpc.aio
import pytest

from kit.access.keys import KeySource, parse_signing_key
from kit.access.principal import Principal
from kit.access.sealing import Sealer
from kit.jetstream import Nats
from kit.limits.store import JetStreamCounters, LimitRules
from kit.llm import LanguageModel
from kit.llm.provider_watch import ProviderWatch
from kit.llm.switching import ModelSwitch
from kit.network.egress import EgressGuard
from kit.rpc.channel import Channel
from kit.rpc.connection import Connection
from kit.stores.forgetting import ForgetQueue
from kit.testing.harness import make_signer, make_verifier, signing_key_text
from services.orchestrator.adapters.jetstream.agent_switches import AgentSwitches
from services.orchestrator.adapters.jetstream.brought_models import SealedModelStore
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.adapters.jetstream.markers import KeyValueMarkers
from services.orchestrator.adapters.jetstream.run_store import KeyValueRunStore
from services.orchestrator.adapters.jetstream.sources import KeyValueRunSources
from services.orchestrator.adapters.jetstream.tally import KeyValueTally
from services.orchestrator.adapters.services.tools import GrpcTools
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.handlers import ForgetHandler, OrchestratorServicer
from services.orchestrator.limits.reservations import Reservations
from services.orchestrator.log.events import Done, RunEvent, RunMode
from services.orchestrator.models import RunKey, RunLimits, RunRecord, RunRequest
from services.orchestrator.modes.serving import Modes, discover_modes
from services.orchestrator.ports import Memory
from services.orchestrator.quizzes.answers import QuizAnswers
from services.orchestrator.runs.brought_models import BroughtModels
from services.orchestrator.runs.execution import RunServices
from services.orchestrator.runs.forgetting import Forgetting, RunDeletion
from services.orchestrator.runs.service import Runs
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.budgets import most_budgets
from services.orchestrator.steps.usage import Metered, Price, free
from tests.unit.orchestrator.fakes import FakeMemory, FakeRules, FakeScorer, FakeSearcher, FakeTools
from tests.unit.orchestrator.serving import NoModel, WorkedBy, Worker, mode_services

ANN = Principal("acme", "ann")
QUESTION = RunRequest(RunMode.QA, "When was the tower built?", ("default",))
LEASE_S = 1.0


async def no_run(_: RunKey) -> RunRecord | None:
    """For what reads no run."""
    return None


class Orchestrator:
    """One orchestrator's run service with its background loops. `die()` stops it the way SIGKILL would: nothing is released."""

    def __init__(
        self,
        runs: Runs,
        forgetting: Forgetting,
        queue: ForgetQueue,
        memory: FakeMemory,
        tally: KeyValueTally,
        tools: FakeTools,
        rules: LimitRules,
        reservations: Reservations,
    ) -> None:
        self.rules = rules
        self.reservations = reservations
        self.runs = runs
        self.forgetting = forgetting
        self.queue = queue
        self.memory = memory
        self.tally = tally
        self.tools = tools
        self.deletion = RunDeletion(forgetting, queue.request, now)
        log = runs._log
        assert isinstance(log, JetStreamEventLog)
        self._loops = [asyncio.create_task(loop) for loop in (runs.work(), log.work(), rules.settings.follow())]

    def consume(self) -> None:
        """Begins to work on the queue of what is to be forgotten."""
        work = self.queue.queue.consume(ForgetHandler(self.forgetting).handle, concurrency=4)
        self._loops.append(asyncio.create_task(work))

    async def die(self) -> None:
        ownership = self.runs.ownership
        ownership.release = ownership.park = _nothing  # type: ignore[method-assign]
        ownership.leave = _nothing  # type: ignore[method-assign]
        await self.stop()

    async def stop(self) -> None:
        for loop in self._loops:
            loop.cancel()
        await self.runs.close()
        await asyncio.gather(*self._loops, return_exceptions=True)


def now() -> datetime:
    return datetime.now(UTC)


async def _nothing(*_: RunKey) -> None:
    """A dead process lets nothing go."""


StartOrchestrator = Callable[..., "asyncio.Future[Orchestrator]"]


@pytest.fixture
async def start_orchestrator(jetstream: Nats) -> AsyncIterator[Callable[..., object]]:
    """Starts orchestrators that share one NATS, each with its own model and limits."""
    async with AsyncExitStack() as stack:

        async def start(
            model: LanguageModel | None = None,
            *,
            nats: Nats = jetstream,
            worker: Worker | None = None,
            searcher: FakeSearcher | None = None,
            sealer: Sealer | None = None,
            price: Price = free,
            **limits: float,
        ) -> Orchestrator:
            generator = Generator(Metered(model, price)) if model else None
            memory = FakeMemory()
            sources = await KeyValueRunSources.open(nats, retention_days=1)
            services = mode_services(
                Drafter(FakeScorer(), generator), searcher=searcher, memory=memory, sources=sources
            )
            store = await KeyValueRunStore.open(nats, retention_days=1)
            markers = await KeyValueMarkers.open(nats, lease_s=limits.get("lease_s", LEASE_S))
            log = await JetStreamEventLog.open(nats, retention_days=1)
            run_limits = RunLimits(**{"lease_s": LEASE_S, **limits})  # type: ignore[arg-type]
            queue = await ForgetQueue.open(nats, make_signer(), make_verifier())
            sealer = sealer or Sealer(KeySource(parse_signing_key, value=signing_key_text(), setting="TEST"))
            credentials = await SealedModelStore.open(nats, sealer, life_s=600.0)
            tools = FakeTools()
            forgetting = Forgetting(store, log, sources, memory, credentials, tools, now=now)
            brought = BroughtModels(credentials, EgressGuard())
            tally = await KeyValueTally.open(nats, retention_days=1)
            modes = discover_modes(services, OrchestratorSettings())
            if worker is not None:
                modes = worker if isinstance(worker, Modes) else WorkedBy(worker)
            rules = await LimitRules.open(nats)
            counters = await JetStreamCounters.open(nats)
            reservations = Reservations(rules.rules, counters, most_budgets(OrchestratorSettings()), now)
            runs = Runs(
                RunServices(store, markers, log, sources, modes, run_limits, brought, tally, reservations, FakeRules())
            )
            orchestrator = Orchestrator(runs, forgetting, queue, memory, tally, tools, rules, reservations)
            stack.push_async_callback(orchestrator.stop)
            return orchestrator

        yield start


def unreachable_tools() -> GrpcTools:
    """For what does not ask the tools service."""
    nobody = grpc.aio.insecure_channel("127.0.0.1:1")
    return GrpcTools(Channel(make_signer(), (), Connection(lambda _: nobody, "127.0.0.1:1", 0.0)), list_timeout_s=1.0)


class NoSwitches(AgentSwitches):
    """Switches that nobody has touched, without a message store."""

    def __init__(self) -> None:
        super().__init__(now)


def servicer(
    orchestrator: Orchestrator,
    switch: ModelSwitch,
    tools: GrpcTools | None = None,
    switches: AgentSwitches | None = None,
    memory: Memory | None = None,
) -> OrchestratorServicer:
    return OrchestratorServicer(
        orchestrator.runs,
        orchestrator.deletion,
        switch,
        ProviderWatch(switch.models),
        orchestrator.tally,
        tools or unreachable_tools(),
        switches or NoSwitches(),
        QuizAnswers(memory or FakeMemory(), NoModel(), no_run),
        orchestrator.rules,
        orchestrator.reservations,
    )


def without_ids(stored: bytes | None) -> str:
    """What is stored, as text, without the ids in it: one of them may hold any number."""
    return re.sub("[0-9a-f]{12,}", "", (stored or b"").decode(errors="replace"))


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    async with asyncio.timeout(seconds):
        yield


async def collect(events: AsyncIterator[RunEvent]) -> list[RunEvent]:
    """All events up to `done`, checked to be numbered without gaps."""
    collected: list[RunEvent] = []
    async with asyncio.timeout(60):
        async for event in events:
            collected.append(event)
            if isinstance(event.payload, Done):
                break
    return collected
