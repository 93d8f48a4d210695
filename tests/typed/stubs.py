"""Wrong calls of services: a misspelt call, a wrong request, a wrong field of an answer, an option that no call has."""

from groundwork.ingest.v1 import ingest_pb2
from groundwork.memory.v1 import memory_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2
from groundwork.store.v1 import store_pb2
from grpc_health.v1 import health_pb2

from kit.rpc.calls import HealthStub, responses
from services.gateway.backends import Backends


async def misspelt_calls(backends: Backends, health: HealthStub) -> None:
    backends.ingest.GetColection  # type: ignore[attr-defined]
    backends.retriever.Serch  # type: ignore[attr-defined]
    backends.memory.GetThreads  # type: ignore[attr-defined]
    backends.orchestrator.StartRuns  # type: ignore[attr-defined]
    backends.store.GetConditions  # type: ignore[attr-defined]
    health.Chek  # type: ignore[attr-defined]


async def wrong_requests(backends: Backends, health: HealthStub) -> None:
    await backends.ingest.GetCollection(ingest_pb2.GetDocumentRequest(), timeout=1)  # type: ignore[arg-type]
    await backends.memory.GetThread(memory_pb2.GetThreadRequest(thread=""), timeout=1)  # type: ignore[call-arg]
    await health.Check(store_pb2.GetConditionRequest(), timeout=1)  # type: ignore[arg-type]


async def wrong_answers(backends: Backends, health: HealthStub) -> None:
    (await backends.memory.GetThread(memory_pb2.GetThreadRequest(), timeout=1)).threads  # type: ignore[attr-defined]
    (await health.Check(health_pb2.HealthCheckRequest(), timeout=1)).state  # type: ignore[attr-defined]
    async for event in responses(backends.orchestrator.AttachRun(orchestrator_pb2.AttachRunRequest(), timeout=1)):
        event.events  # type: ignore[attr-defined]


async def wrong_options(backends: Backends) -> None:
    await backends.memory.GetThread(memory_pb2.GetThreadRequest(), timeout_s=1)  # type: ignore[call-arg]
