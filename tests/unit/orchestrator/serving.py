"""Modes over fakes, as an orchestrator serves them."""

from collections.abc import Sequence
from typing import Any, Protocol

from kit.llm import LanguageModel, ModelInfo, Operation, Request
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.log.events import RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord
from services.orchestrator.modes.agents import Agents, discover_agents
from services.orchestrator.modes.documents import Limits
from services.orchestrator.modes.grounded import Grounded
from services.orchestrator.modes.mode import ModeServices
from services.orchestrator.modes.qa import Qa
from services.orchestrator.modes.serving import Modes, discover_modes
from services.orchestrator.modes.threads import Threads
from services.orchestrator.ports import Library, Memory, RunSources, Searcher, SentenceScorer, Tools
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.verification.checks import Checks
from services.orchestrator.verification.judges import ClaimJudge, WordJudge
from tests.unit.orchestrator.fakes import FakeLibrary, FakeMemory, FakeScorer, FakeSearcher, FakeSources, FakeTools


class NoModel:
    """An installation without a language model: nobody may ask it."""

    def info(self, operation: Operation) -> ModelInfo:
        return ModelInfo("", "", 4096)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        raise AssertionError("there is no model")

    def complete(self, request: Request) -> Any:
        raise AssertionError("there is no model")


def mode_services(
    drafter: Drafter | None = None,
    *,
    model: LanguageModel | None = None,
    searcher: Searcher | None = None,
    memory: Memory | None = None,
    sources: RunSources | None = None,
    tools: Tools | None = None,
    agents: Agents | None = None,
    scorer: SentenceScorer | None = None,
    library: Library | None = None,
    judges: Sequence[ClaimJudge] = (WordJudge(),),
) -> ModeServices:
    """What is not given is a fake."""
    sources, searcher = sources or FakeSources(), searcher or FakeSearcher()
    return ModeServices(
        searcher,
        tools or FakeTools(),
        sources,
        Threads(memory or FakeMemory(), sources, turns=8),
        model or NoModel(),
        drafter or Drafter(FakeScorer(), None),
        agents or discover_agents(),
        scorer or FakeScorer(),
        library or FakeLibrary(),
        checks=Checks(judges, searcher=searcher, sources=sources),
    )


def document_modes(services: ModeServices, limits: Limits = Limits()) -> Modes:  # noqa: B008 - frozen
    """The modes qa and grounded."""
    return Modes([Qa(services, limits), Grounded(services, limits)], services)


class Worker(Protocol):
    async def run(self, record: RunRecord, journal: Journal) -> RunStatus: ...


class WorkedBy(Modes):
    """The modes of an orchestrator, whose runs a worker takes to their end."""

    def __init__(self, worker: Worker, memory: Memory | None = None) -> None:
        services = mode_services(memory=memory)
        super().__init__(discover_modes(services, OrchestratorSettings()).all, services)
        self._worker = worker

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        return await self._worker.run(record, journal)
