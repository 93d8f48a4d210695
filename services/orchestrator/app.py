"""Composition root of the orchestrator."""

from contextlib import AsyncExitStack

from groundwork.memory.v1 import memory_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from groundwork.reranker.v1 import reranker_pb2
from groundwork.retriever.v1 import retriever_pb2

from kit.channel import open_channel
from kit.jetstream import Nats, connect
from kit.llm import open_chat_model
from kit.service import Service
from services.orchestrator.adapters.event_log import JetStreamEventLog
from services.orchestrator.adapters.memory import MemoryThreads
from services.orchestrator.adapters.model_server import RerankerSentenceScorer
from services.orchestrator.adapters.retriever import RetrieverSearcher
from services.orchestrator.adapters.run_store import KeyValueRunStore
from services.orchestrator.drafting import Drafter
from services.orchestrator.generation import Generator
from services.orchestrator.handlers import OrchestratorServicer
from services.orchestrator.models import RunLimits
from services.orchestrator.pipeline import Limits, Pipeline
from services.orchestrator.runs import Runs
from services.orchestrator.settings import OrchestratorSettings


async def run(settings: OrchestratorSettings) -> None:
    """Runs the orchestrator until it is told to stop."""
    async with Service("orchestrator", settings) as service:
        nats = await service.stack.enter_async_context(connect(settings.nats_url, name="orchestrator"))
        pipeline = await _pipeline(service, settings)
        runs = await _runs(nats, pipeline, settings)
        service.stack.push_async_callback(runs.close)
        service.spawn(runs.watch_cancels())
        service.spawn(runs.watch_running())
        service.spawn(runs.sweep())
        service.require("nats", nats.check)
        service.add_servicer(
            orchestrator_pb2_grpc.add_OrchestratorServiceServicer_to_server,
            OrchestratorServicer(runs),
            orchestrator_pb2.DESCRIPTOR.services_by_name["OrchestratorService"],
        )
        await service.serve()


async def _runs(nats: Nats, pipeline: Pipeline, settings: OrchestratorSettings) -> Runs:
    retention_days = settings.run_retention_days
    limits = RunLimits(settings.run_wall_clock_s, settings.run_lease_s, settings.max_concurrent_runs)
    store = await KeyValueRunStore.open(nats, lease_s=settings.run_lease_s, retention_days=retention_days)
    return Runs(store, await JetStreamEventLog.open(nats, retention_days=retention_days), pipeline, limits)


async def _pipeline(service: Service, settings: OrchestratorSettings) -> Pipeline:
    enter = service.stack.enter_async_context
    signer = service.signer
    retriever = await enter(
        open_channel(
            settings.retriever_address,
            signer,
            [retriever_pb2.DESCRIPTOR.services_by_name["RetrieverService"]],
            passed_on_to=["reranker"],
        )
    )
    reranker = await enter(
        open_channel(settings.reranker_address, signer, [reranker_pb2.DESCRIPTOR.services_by_name["RerankerService"]])
    )
    memory = await enter(
        open_channel(settings.memory_address, signer, [memory_pb2.DESCRIPTOR.services_by_name["MemoryService"]])
    )
    return Pipeline(
        RetrieverSearcher(retriever, timeout_s=settings.run_search_timeout_s),
        MemoryThreads(memory, timeout_s=settings.run_memory_timeout_s),
        Drafter(
            RerankerSentenceScorer(reranker, timeout_s=settings.run_score_timeout_s),
            await _generator(service.stack, settings),
        ),
        Limits(
            evidence_top_k=settings.evidence_top_k,
            history_turns=settings.history_turns,
            answer_tokens=settings.answer_tokens,
            wall_clock_s=settings.run_wall_clock_s,
            prompt_usd_per_million_tokens=settings.llm_prompt_usd_per_million_tokens,
            completion_usd_per_million_tokens=settings.llm_completion_usd_per_million_tokens,
        ),
    )


async def _generator(stack: AsyncExitStack, settings: OrchestratorSettings) -> Generator | None:
    if settings.llm_base_url is None:
        return None
    model = await stack.enter_async_context(
        open_chat_model(
            settings.llm_base_url,
            settings.llm_api_key.get_secret_value(),
            settings.llm_model,
            stall_timeout_s=settings.llm_stall_timeout_s,
        )
    )
    return Generator(model, context_tokens=settings.context_tokens)
