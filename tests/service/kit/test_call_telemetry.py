"""What a call between two services leaves behind: spans of both sides in one trace, counts by code, and whose run it belongs to."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import structlog
from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc as rpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind
from prometheus_client import REGISTRY

from kit.errors import GroundworkError, NotFound
from kit.observability.telemetry import current_trace_id
from kit.rpc.channel import Channel
from kit.testing.harness import open_test_channel, running_servicer
from kit.testing.telemetry import recorded_spans

SECRET = "hunter2"
METHOD = "groundwork.memory.v1.MemoryService/GetThread"
LABEL = "MemoryService/GetThread"


class Servicer(rpc.MemoryServiceServicer):
    """Answers, or raises."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.trace_ids: list[str] = []
        self.fields: list[dict[str, Any]] = []
        self.gate: asyncio.Event | None = None
        self.arrived = asyncio.Event()

    async def GetThread(self, request: pb.GetThreadRequest, context: Any) -> pb.GetThreadResponse:
        self.trace_ids.append(current_trace_id())
        self.fields.append(structlog.contextvars.get_contextvars())
        self.arrived.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return pb.GetThreadResponse()


@pytest.fixture
def servicer() -> Servicer:
    return Servicer()


@pytest.fixture
async def channel(servicer: Servicer) -> AsyncIterator[Channel]:
    async with (
        running_servicer(rpc.add_MemoryServiceServicer_to_server, servicer) as address,
        open_test_channel(address) as opened,
    ):
        yield opened


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    with recorded_spans() as exporter, trace.get_tracer("test").start_as_current_span("request"):
        yield exporter


async def sides(spans: InMemorySpanExporter) -> tuple[ReadableSpan, ReadableSpan]:
    """The client's and the server's span of the one call. The server's ends, and is counted, once its status has been sent: the
    client may have it before."""
    async with asyncio.timeout(60):
        while len(finished := spans.get_finished_spans()) < 2:
            await asyncio.sleep(0.01)
    by_kind = {span.kind: span for span in finished}
    return by_kind[SpanKind.CLIENT], by_kind[SpanKind.SERVER]


def counted(side: str, code: str, method: str = LABEL) -> float:
    name = f"groundwork_grpc_{side}_requests_total"
    return REGISTRY.get_sample_value(name, {"method": method, "code": code}) or 0.0


async def get(channel: Channel, timeout: float = 60.0) -> None:
    await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(), timeout=timeout)


async def test_call_is_a_span_of_its_caller_and_one_of_its_server_below_it(
    channel: Channel, spans: InMemorySpanExporter
) -> None:
    await get(channel)
    client, server = await sides(spans)
    assert client.parent == trace.get_current_span().get_span_context()
    assert server.parent is not None
    assert client.context is not None
    assert server.parent.span_id == client.context.span_id
    expected = {"rpc.system.name": "grpc", "rpc.method": METHOD, "rpc.response.status_code": "OK"}
    assert (client.name, dict(client.attributes or {})) == (METHOD, expected)
    assert (server.name, dict(server.attributes or {})) == (METHOD, expected)


@pytest.mark.parametrize(
    ("error", "code", "is_servers_fault"),
    [(NotFound(f"no thread {SECRET}"), "NOT_FOUND", False), (ValueError(f"cannot read {SECRET}"), "INTERNAL", True)],
)
async def test_failure_is_told_by_its_code_and_not_by_what_it_says(
    channel: Channel,
    servicer: Servicer,
    spans: InMemorySpanExporter,
    error: Exception,
    code: str,
    is_servers_fault: bool,
) -> None:
    servicer.error = error
    before = counted("server", code), counted("client", code)
    with pytest.raises(GroundworkError):
        await get(channel)
    client, server = await sides(spans)
    assert (client.status.is_ok, server.status.is_ok) == (False, not is_servers_fault)
    assert (client.attributes or {})["rpc.response.status_code"] == code
    assert (server.attributes or {})["rpc.response.status_code"] == code
    assert SECRET not in client.to_json() + server.to_json()
    assert (counted("server", code), counted("client", code)) == (before[0] + 1, before[1] + 1)


async def test_call_that_its_caller_gives_up_is_counted_as_cancelled(channel: Channel, servicer: Servicer) -> None:
    servicer.gate = asyncio.Event()
    before = counted("client", "CANCELLED")
    call = asyncio.create_task(get(channel))
    await servicer.arrived.wait()
    in_hand = {"method": LABEL}
    assert REGISTRY.get_sample_value("groundwork_grpc_server_requests_in_hand", in_hand) == 1
    call.cancel()
    await asyncio.wait([call])
    assert counted("client", "CANCELLED") == before + 1
    async with asyncio.timeout(60):
        while REGISTRY.get_sample_value("groundwork_grpc_server_requests_in_hand", in_hand):
            await asyncio.sleep(0.01)


async def test_trace_that_nobody_records_is_passed_on_by_its_id_without_spans(
    channel: Channel, servicer: Servicer
) -> None:
    with recorded_spans() as spans:
        unrecorded = TracerProvider(sampler=ALWAYS_OFF).get_tracer("test")
        with unrecorded.start_as_current_span("request") as request:
            await get(channel)
    assert servicer.trace_ids == [f"{request.get_span_context().trace_id:032x}"]
    assert not spans.get_finished_spans()


async def test_lines_of_the_called_service_name_run_and_document_of_the_caller(
    channel: Channel, servicer: Servicer
) -> None:
    await get(channel)
    with structlog.contextvars.bound_contextvars(run_id="run1", document_id="doc1", secret=SECRET):
        await get(channel)
    with structlog.contextvars.bound_contextvars(run_id="x" * 1000):
        await get(channel)
    alone = {"tenant_id": "local"}
    assert servicer.fields == [alone, {**alone, "run_id": "run1", "document_id": "doc1"}, alone]


async def test_health_is_asked_without_a_span(channel: Channel, spans: InMemorySpanExporter) -> None:
    with pytest.raises(GroundworkError):  # this server has none to tell
        await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
    assert not spans.get_finished_spans()


async def test_method_of_no_contract_is_counted_as_other(channel: Channel) -> None:
    before = counted("client", "UNIMPLEMENTED", "other")
    call = channel.unary_unary(f"/groundwork.memory.{SECRET}/Do")
    with pytest.raises(GroundworkError):
        await call(b"", timeout=60)
    assert counted("client", "UNIMPLEMENTED", "other") == before + 1
