"""The life of a process: ready once its dependencies have answered, and an orderly end with streams in flight."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import httpx
import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc as rpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from opentelemetry import trace
from opentelemetry.trace import SpanKind

import kit.process.service
from kit.errors import BY_CODE, Code, GroundworkError, InvalidArgument, Unavailable
from kit.observability.ops import Trouble
from kit.process.service import Service
from kit.process.settings import ServiceSettings
from kit.testing.harness import free_port, open_test_channel, running_service, running_servicer
from kit.testing.telemetry import recorded_spans

DESCRIPTOR = pb.DESCRIPTOR.services_by_name["OrchestratorService"]


class Servicer(rpc.OrchestratorServiceServicer):
    """Streams one event, waits for the gate, streams another, then raises `error`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.gate = asyncio.Event()
        self.closed = asyncio.Event()
        self.error = error

    async def AttachRun(self, request: pb.AttachRunRequest, context: Any) -> AsyncIterator[pb.AttachRunResponse]:
        try:
            yield pb.AttachRunResponse(event=pb.RunEvent(seq=1))
            await self.gate.wait()
            if self.error is not None:
                raise self.error
            yield pb.AttachRunResponse(event=pb.RunEvent(seq=2))
        finally:
            self.closed.set()


class Process:
    """A service with that servicer, and what its adapters saw."""

    def __init__(self, drain_grace_s: float) -> None:
        self.settings = ServiceSettings(
            grpc_address=f"127.0.0.1:{free_port()}", drain_delay_s=0, drain_grace_s=drain_grace_s
        )
        self.servicer = Servicer()
        self.dependency = asyncio.Event()
        self.adapters_closed = asyncio.Event()

    async def run(self, settings: ServiceSettings) -> None:
        async with Service("test", settings) as service:
            service.stack.callback(self.adapters_closed.set)
            service.require("dependency", self._check)
            service.add_servicer(rpc.add_OrchestratorServiceServicer_to_server, self.servicer, DESCRIPTOR)
            await service.serve()

    async def _check(self) -> None:
        if not self.dependency.is_set():
            raise Unavailable("not yet")


async def test_service_is_not_serving_until_its_dependencies_have_answered() -> None:
    process = Process(drain_grace_s=1.0)
    running = asyncio.create_task(process.run(process.settings))
    async with grpc.aio.insecure_channel(process.settings.grpc_address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest()
        first = await stub.Check(request, timeout=60, wait_for_ready=True)
        assert first.status == health_pb2.HealthCheckResponse.NOT_SERVING
        process.dependency.set()
        async with asyncio.timeout(60):
            while (await stub.Check(request, timeout=60)).status != health_pb2.HealthCheckResponse.SERVING:
                await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def starting(check: Callable[[], Awaitable[object]]) -> AsyncIterator[Any]:
    """A service whose port waits for the check, as asked for its health."""
    settings = ServiceSettings(grpc_address=f"127.0.0.1:{free_port()}", drain_grace_s=0)

    async def run() -> None:
        async with Service("test", settings) as service:
            service.require("map", check, holds_port=True)
            await service.serve()

    running = asyncio.create_task(run())
    try:
        async with grpc.aio.insecure_channel(settings.grpc_address) as channel:
            yield health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_port_opens_when_what_holds_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit.process.service, "_PORT_HELD_FOR_S", 600.0)
    asked, known = asyncio.Event(), asyncio.Event()

    async def check() -> None:
        asked.set()
        await known.wait()

    async with starting(check) as health:
        await asyncio.wait_for(asked.wait(), 60)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await health.Check(health_pb2.HealthCheckRequest(), timeout=60)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        known.set()
        await health.Check(health_pb2.HealthCheckRequest(), timeout=60, wait_for_ready=True)


async def test_port_is_not_held_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit.process.service, "_PORT_HELD_FOR_S", 0.1)
    async with starting(asyncio.Event().wait) as health:
        found = await health.Check(health_pb2.HealthCheckRequest(), timeout=60, wait_for_ready=True)
        assert found.status == found.NOT_SERVING


async def test_troubles_are_shown_and_only_those_that_stop_the_service_take_it_out() -> None:
    troubles: list[Trouble] = []
    ops_port = free_port()
    settings = ServiceSettings(grpc_address=f"127.0.0.1:{free_port()}", ops_port=ops_port, drain_grace_s=0)

    async def run(settings: ServiceSettings) -> None:
        async with Service("test", settings) as service:
            service.report(lambda: tuple(troubles))
            await service.serve()

    async def seen(text: str, status_code: int) -> None:
        async with asyncio.timeout(60), httpx.AsyncClient(trust_env=False) as http:
            while True:
                answer = await http.get(f"http://127.0.0.1:{ops_port}/readyz")
                if (answer.text, answer.status_code) == (text, status_code):
                    return
                await asyncio.sleep(0.05)

    async with running_service(run, settings) as address, grpc.aio.insecure_channel(address) as channel:
        await seen("ok\n", 200)
        troubles.append(Trouble("lexical", "it does not answer"))
        await seen("ok\nlexical: it does not answer\n", 200)
        call = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)  # type: ignore[no-untyped-call]
        assert (await call).status == health_pb2.HealthCheckResponse.SERVING
        trailing = dict(await call.trailing_metadata())
        assert trailing["groundwork-detail-bin"] == b"lexical: it does not answer"
        assert trailing["groundwork-kinds"] == "other"
        troubles[:] = [Trouble("store", "cut off", stops_service=True)]
        await seen("not ok\nstore: cut off\n", 503)
        call = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)  # type: ignore[no-untyped-call]
        assert (await call).status == health_pb2.HealthCheckResponse.NOT_SERVING
        troubles.clear()
        await seen("ok\n", 200)


@pytest.mark.parametrize(("grpc_host", "ops_host"), [("0.0.0.0", "0.0.0.0"), ("[::]", "::")])
async def test_a_service_that_listens_everywhere_is_asked_at_any_address_of_its_machine(
    grpc_host: str, ops_host: str
) -> None:
    port, ops_port = free_port(), free_port()
    settings = ServiceSettings(
        grpc_address=f"{grpc_host}:{port}", ops_host=ops_host, ops_port=ops_port, drain_delay_s=0, drain_grace_s=0
    )

    async def run(settings: ServiceSettings) -> None:
        async with Service("test", settings) as service:
            await service.serve()

    async with (
        running_service(run, settings),
        httpx.AsyncClient(trust_env=False, timeout=60) as http,
        grpc.aio.insecure_channel(f"127.0.0.2:{port}") as channel,
    ):
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=60)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        for path in ("livez", "readyz", "metrics"):
            assert (await http.get(f"http://127.0.0.2:{ops_port}/{path}")).status_code == 200


@pytest.mark.parametrize("ends_in_time", [True, False])
async def test_stream_in_flight_is_given_the_grace_when_told_to_stop(ends_in_time: bool) -> None:
    process = Process(drain_grace_s=60.0 if ends_in_time else 0.3)
    process.dependency.set()
    async with (
        running_service(process.run, process.settings) as address,
        open_test_channel(address) as channel,
    ):
        stream = rpc.OrchestratorServiceStub(channel).AttachRun(pb.AttachRunRequest(), timeout=60)
        assert (await anext(stream)).event.seq == 1
        signal.raise_signal(signal.SIGTERM)
        if ends_in_time:
            await asyncio.sleep(0.1)  # the drain has begun
            assert not process.adapters_closed.is_set()
            process.servicer.gate.set()
            assert (await anext(stream)).event.seq == 2
        else:
            with pytest.raises(Unavailable):
                await anext(stream)
        async with asyncio.timeout(60):
            await process.adapters_closed.wait()
        assert process.servicer.closed.is_set()


@pytest.mark.parametrize("code", list(Code))
async def test_error_in_the_middle_of_a_stream_arrives_as_what_it_was(code: Code) -> None:
    servicer = Servicer(BY_CODE[code]("it went wrong", reason="SO_WRONG", retryable=True, retry_after_s=1.5, field="x"))
    servicer.gate.set()
    async with (
        running_servicer(rpc.add_OrchestratorServiceServicer_to_server, servicer) as address,
        open_test_channel(address) as channel,
    ):
        stream = rpc.OrchestratorServiceStub(channel).AttachRun(pb.AttachRunRequest(), timeout=60)
        assert (await anext(stream)).event.seq == 1
        with pytest.raises(GroundworkError) as caught:
            await anext(stream)
    error = caught.value
    assert type(error) is BY_CODE[code]
    assert (error.message, error.reason, error.retryable) == ("it went wrong", "SO_WRONG", True)
    assert (error.retry_after_s, error.metadata) == (1.5, {"field": "x"})


@pytest.mark.parametrize("text", ["x" * 1_000_000, "💥" * 20_000, "name \udcff"])
async def test_error_that_does_not_fit_into_a_status_is_shortened(text: str) -> None:
    servicer = Servicer(InvalidArgument(text, name=text))
    servicer.gate.set()
    async with (
        running_servicer(rpc.add_OrchestratorServiceServicer_to_server, servicer) as address,
        open_test_channel(address) as channel,
    ):
        stream = rpc.OrchestratorServiceStub(channel).AttachRun(pb.AttachRunRequest(), timeout=60)
        await anext(stream)
        with pytest.raises(InvalidArgument) as caught:
            await anext(stream)
    assert caught.value.message[:4] == text[:4]


async def test_handler_is_closed_when_its_client_hangs_up() -> None:
    servicer = Servicer()
    async with (
        running_servicer(rpc.add_OrchestratorServiceServicer_to_server, servicer) as address,
        open_test_channel(address) as channel,
    ):
        stream = rpc.OrchestratorServiceStub(channel).AttachRun(pb.AttachRunRequest(), timeout=60)
        await anext(stream)
        await stream.aclose()
        async with asyncio.timeout(60):
            await servicer.closed.wait()


async def test_stream_is_a_span_of_its_caller_also_when_it_is_not_read_to_its_end() -> None:
    servicer = Servicer()
    with recorded_spans() as spans:
        async with (
            running_servicer(rpc.add_OrchestratorServiceServicer_to_server, servicer) as address,
            open_test_channel(address) as channel,
        ):
            with trace.get_tracer("test").start_as_current_span("request") as request:
                stream = rpc.OrchestratorServiceStub(channel).AttachRun(pb.AttachRunRequest(), timeout=60)
                await anext(stream)
                await stream.aclose()
            async with asyncio.timeout(60):
                await servicer.closed.wait()
        calls = {span.kind: span for span in spans.get_finished_spans() if span.name.endswith("/AttachRun")}
    assert calls[SpanKind.CLIENT].parent == request.get_span_context()
    server_side = calls[SpanKind.SERVER].parent
    assert server_side is not None
    assert calls[SpanKind.CLIENT].context is not None
    assert server_side.span_id == calls[SpanKind.CLIENT].context.span_id
