"""Composition root of the orchestrator."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from groundwork.ingest.v1 import ingest_pb2
from groundwork.memory.v1 import memory_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from groundwork.reranker.v1 import reranker_pb2
from groundwork.retriever.v1 import retriever_pb2
from groundwork.tools.v1 import tools_pb2

from kit.access.sealing import Sealer
from kit.errors import GroundworkError
from kit.jetstream import Nats
from kit.language.detection import FastTextLanguages
from kit.language.question_language import QuestionLanguages
from kit.limits.store import JetStreamCounters, LimitRules
from kit.llm.models import Models, open_models
from kit.llm.opening import endpoint_opener
from kit.llm.prices import PriceTable
from kit.llm.provider_watch import ProviderWatch
from kit.llm.switching import ModelSwitch
from kit.network.egress import EgressGuard, parse_networks
from kit.process.service import Service
from kit.rpc.channel import Channel
from kit.shared_state import LIMIT_COUNTS, LIMIT_CREDITS, LIMIT_RATES, LIMIT_SECONDS
from kit.stores.forgetting import ForgetQueue
from kit.stores.message_store import lasting, open_message_store
from services.orchestrator.adapters.jetstream.agent_switches import AgentSwitches
from services.orchestrator.adapters.jetstream.brought_models import SealedModelStore
from services.orchestrator.adapters.jetstream.collections import NatsCollections
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.adapters.jetstream.markers import KeyValueMarkers
from services.orchestrator.adapters.jetstream.run_store import KeyValueRunStore
from services.orchestrator.adapters.jetstream.sources import KeyValueRunSources
from services.orchestrator.adapters.jetstream.tally import KeyValueTally
from services.orchestrator.adapters.services.facts import MemoryFacts, NatsTurnQueue
from services.orchestrator.adapters.services.memory import MemoryThreads
from services.orchestrator.adapters.services.model_server import ModelServerJudge, RerankerSentenceScorer
from services.orchestrator.adapters.services.retriever import RetrieverSearcher, ServiceLibrary
from services.orchestrator.adapters.services.tools import ASKED_BY_TOOLS, GrpcTools
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.guard.canary import new_canary
from services.orchestrator.guard.model import GuardedModel
from services.orchestrator.guard.policy import Guard
from services.orchestrator.handlers import ForgetHandler, LearningHandler, OrchestratorServicer
from services.orchestrator.limits.reservations import Prices, Reservations
from services.orchestrator.metrics import FORGET_QUEUE
from services.orchestrator.models import RunLimits
from services.orchestrator.modes.agents import discover_agents
from services.orchestrator.modes.mode import ModeServices
from services.orchestrator.modes.serving import Modes, discover_modes
from services.orchestrator.modes.threads import ReadRun, Threads
from services.orchestrator.ports import Library
from services.orchestrator.quizzes.answers import QuizAnswers
from services.orchestrator.remembering.learning import Learning
from services.orchestrator.remembering.recalling import RememberedFacts, Remembering
from services.orchestrator.runs.access import AccessWatch
from services.orchestrator.runs.brought_models import BroughtModels
from services.orchestrator.runs.execution import RunServices
from services.orchestrator.runs.forgetting import Forgetting, RunDeletion, note_stored_runs
from services.orchestrator.runs.service import Runs
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.budgets import most_budgets
from services.orchestrator.steps.usage import Metered
from services.orchestrator.verification.checks import Checks
from services.orchestrator.verification.judges import ClaimJudge, WordJudge
from services.orchestrator.verification.model_judge import ModelJudge
from services.orchestrator.verification.verdicts import Verify
from services.orchestrator.without_model import ExtractiveSettings

_log = structlog.get_logger()
_RETRY_AFTER_S = 2.0
_LEARN_AT_ONCE = 4
_FORGET_AT_ONCE = 4
"""Deletions worked on at once. Each erases several runs at a time."""


async def run(settings: OrchestratorSettings) -> None:
    """Runs the orchestrator until a signal stops it."""
    async with Service("orchestrator", settings) as service:
        nats = await open_message_store(service, settings)
        state = await _State.open(nats, settings, service)
        memory = await _memory(service, settings)
        guard = EgressGuard(parse_networks(settings.egress_allowed_networks))
        switch = await _model_switch(service, settings, nats, guard)
        tools = await _tools(service, settings)
        switches = await AgentSwitches.open(nats, _now)
        facts = await _facts(service, settings)
        turns = await NatsTurnQueue.open(nats, service.signer, service.verifier)
        remembering = RememberedFacts(
            facts, turns, state.sources, usual=settings.memory, timeout_s=settings.run_memory_timeout_s
        )
        retriever = await service.channel(
            settings.retriever_address, [retriever_pb2.DESCRIPTOR.services_by_name["RetrieverService"]]
        )
        library = await _library(service, settings, retriever)
        modes = await _modes(
            service,
            settings,
            memory,
            state.sources,
            switch.models,
            tools,
            switches,
            remembering,
            retriever,
            library,
            state.store.get,
        )
        learning = LearningHandler(Learning(facts, GuardedModel(switch.models, canary="")))
        credentials = await SealedModelStore.open(
            nats, Sealer(settings.signing_key()), life_s=settings.model_credentials_life_s
        )
        limits = RunLimits(settings.run_wall_clock_s, settings.run_lease_s, settings.max_concurrent_runs)
        tally = await KeyValueTally.open(nats, retention_days=settings.usage_retention_days)
        brought = BroughtModels(credentials, guard)
        rules = await LimitRules.open(nats)
        reservations = Reservations(
            rules.rules,
            await JetStreamCounters.open(nats, (LIMIT_COUNTS, LIMIT_CREDITS, LIMIT_RATES, LIMIT_SECONDS)),
            most_budgets(settings),
            _now,
            Prices(settings.run_credits, settings.research_credits),
        )
        collections = await NatsCollections.open(nats)
        runs = Runs(
            RunServices(
                state.store,
                state.markers,
                state.log,
                state.sources,
                modes,
                limits,
                brought,
                tally,
                reservations,
                collections,
                _now,
            )
        )
        service.spawn(lasting("collections", collections.follow))
        forgetting = Forgetting(state.store, state.log, state.sources, memory, credentials, tools, now=_now)
        service.stack.push_async_callback(runs.close)
        service.spawn(lasting("forgetting", lambda: _forget(state, forgetting)))
        service.spawn(lasting("backlog", lambda: state.forget_queue.queue.report_backlog(FORGET_QUEUE)))
        service.spawn(lasting("learning", lambda: turns.queue.consume(learning.handle, concurrency=_LEARN_AT_ONCE)))
        service.spawn(lasting("tail of the log", state.log.work))
        service.spawn(lasting("runs", runs.work))
        service.spawn(
            lasting("access", AccessWatch(runs.under_way, state.sources, library, settings.run_access_check_s).work)
        )
        service.spawn(_drain(runs, service.stopping))
        service.spawn(lasting("model settings", switch.settings.follow))
        service.spawn(lasting("agent switches", switches.settings.follow))
        service.spawn(lasting("limits", rules.settings.follow))
        watch = ProviderWatch(switch.models)
        service.report(watch.troubles)
        service.spawn(watch.run())
        service.add_servicer(
            orchestrator_pb2_grpc.add_OrchestratorServiceServicer_to_server,
            OrchestratorServicer(
                runs,
                RunDeletion(forgetting, state.forget_queue.request, _now),
                switch,
                watch,
                tally,
                tools,
                switches,
                QuizAnswers(memory, GuardedModel(Metered(switch.models), canary=""), state.store.get),
                rules,
                reservations,
            ),
            orchestrator_pb2.DESCRIPTOR.services_by_name["OrchestratorService"],
        )
        await service.serve()


@dataclass(frozen=True)
class _State:
    """What the orchestrator keeps in the message store."""

    store: KeyValueRunStore
    markers: KeyValueMarkers
    log: JetStreamEventLog
    sources: KeyValueRunSources
    forget_queue: ForgetQueue

    @classmethod
    async def open(cls, nats: Nats, settings: OrchestratorSettings, service: Service) -> "_State":
        days = settings.run_retention_days
        return cls(
            await KeyValueRunStore.open(nats, retention_days=days, key_ttl_s=settings.run_key_ttl_s),
            await KeyValueMarkers.open(nats, lease_s=settings.run_lease_s),
            await JetStreamEventLog.open(nats, retention_days=days),
            await KeyValueRunSources.open(nats, retention_days=days),
            await ForgetQueue.open(nats, service.signer, service.verifier),
        )


async def _drain(runs: Runs, stopping: asyncio.Event) -> None:
    await stopping.wait()
    runs.drain()


async def _forget(state: _State, forgetting: Forgetting) -> None:
    """Works on the queue of what is to be forgotten, until cancelled. Where the notes of sources are lost they are made
    anew first: nothing that a run quotes is to be missed."""
    while True:
        try:
            await note_stored_runs(state.store, state.log, state.sources)
            break
        except GroundworkError as error:
            _log.warning("stored_runs_not_noted", reason=error.reason, error=error.message)
            await asyncio.sleep(_RETRY_AFTER_S)
    await state.forget_queue.queue.consume(ForgetHandler(forgetting).handle, concurrency=_FORGET_AT_ONCE)


async def _memory(service: Service, settings: OrchestratorSettings) -> MemoryThreads:
    contract = [memory_pb2.DESCRIPTOR.services_by_name["MemoryService"]]
    channel = await service.channel(settings.memory_address, contract)
    return MemoryThreads(
        channel, timeout_s=settings.run_memory_timeout_s, write_timeout_s=settings.run_memory_write_timeout_s
    )


async def _facts(service: Service, settings: OrchestratorSettings) -> MemoryFacts:
    contract = [memory_pb2.DESCRIPTOR.services_by_name["MemoryService"]]
    channel = await service.channel(settings.memory_address, contract)
    return MemoryFacts(
        channel, timeout_s=settings.run_memory_timeout_s, learn_timeout_s=settings.memory_learn_timeout_s
    )


async def _tools(service: Service, settings: OrchestratorSettings) -> GrpcTools:
    contract = [tools_pb2.DESCRIPTOR.services_by_name["ToolsService"]]
    channel = await service.channel(settings.tools_address, contract, passed_on_to=ASKED_BY_TOOLS)
    return GrpcTools(channel, list_timeout_s=settings.run_tools_timeout_s)


async def _model_switch(
    service: Service, settings: OrchestratorSettings, nats: Nats, guard: EgressGuard
) -> ModelSwitch:
    """The language models. Without a provider there are none but those that users bring."""
    opener = endpoint_opener(
        guard,
        stall_timeout_s=settings.llm_stall_timeout_s,
        completion_timeout_s=settings.llm_completion_timeout_s,
    )
    models = await service.stack.enter_async_context(open_models(settings.model_catalog(), opener))
    return await ModelSwitch.open(nats, models, _now)


async def _library(service: Service, settings: OrchestratorSettings, retriever: Channel) -> Library:
    ingest = await service.channel(settings.ingest_address, [ingest_pb2.DESCRIPTOR.services_by_name["IngestService"]])
    return ServiceLibrary(ingest, retriever, timeout_s=settings.run_search_timeout_s)


async def _modes(
    service: Service,
    settings: OrchestratorSettings,
    memory: MemoryThreads,
    sources: KeyValueRunSources,
    models: Models,
    tools: GrpcTools,
    switches: AgentSwitches,
    remembering: Remembering,
    retriever: Channel,
    library: Library,
    read_run: ReadRun,
) -> Modes:
    catalog = settings.model_catalog()
    prices = catalog.prices() if catalog else PriceTable({})
    reranker = await service.channel(
        settings.reranker_address, [reranker_pb2.DESCRIPTOR.services_by_name["RerankerService"]]
    )
    guarded = GuardedModel(Metered(models, prices.cost_usd), new_canary() if settings.guard_canary else "")
    scorer = RerankerSentenceScorer(reranker, timeout_s=settings.run_score_timeout_s)
    drafter = Drafter(
        scorer,
        Generator(guarded, held=models.held),
        ExtractiveSettings(scorer_timeout_s=settings.run_score_timeout_s),
        languages=QuestionLanguages(FastTextLanguages()),
    )
    searcher = RetrieverSearcher(retriever, timeout_s=settings.run_search_timeout_s)
    agents = discover_agents(settings.agents_folders)
    threads = Threads(memory, sources, turns=settings.history_turns, runs=read_run)
    learned = ModelServerJudge(reranker, timeout_s=settings.verify_timeout_s)
    by_model = ModelJudge(
        guarded, models.held, timeout_s=settings.verify_model_timeout_s, figures=settings.measured_judges()
    )
    checks = Checks(_judges(settings, by_model, learned), Verify(settings.verify), searcher, sources)
    return discover_modes(
        ModeServices(
            searcher,
            tools,
            sources,
            threads,
            guarded,
            drafter,
            agents,
            scorer,
            library,
            models.held,
            checks,
            remembering,
            Guard(settings.guard),
            settings.approval_life_s,
            switches.is_on,
        ),
        settings,
    )


def _judges(settings: OrchestratorSettings, by_model: ClaimJudge, learned: ClaimJudge) -> Sequence[ClaimJudge]:
    """The judges of claims, each with those that stand in for it."""
    match settings.verify_judge:
        case "words":
            return [WordJudge()]
        case "learned":
            return [learned, WordJudge()]
        case _:
            return [by_model, learned, WordJudge()]


def _now() -> datetime:
    return datetime.now(UTC)
