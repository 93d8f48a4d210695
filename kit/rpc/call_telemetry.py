"""Spans and measurements of gRPC calls, on both sides: each attempt at a call is a span of its caller's, and a span of its server's
below it. Methods are those of the contracts, codes those of gRPC, so that both may be labels."""

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import grpc
from google.protobuf import descriptor_pool
from opentelemetry.trace import INVALID_SPAN, SpanKind, StatusCode
from prometheus_client import Counter, Gauge, Histogram

from kit.observability.logging import passed_on
from kit.observability.telemetry import TRACEPARENT, begun_span, continued_span, current_traceparent, traceparent_of
from kit.rpc.interception import HEALTH_PREFIX, Around, Behaviour

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SERVED = Counter("groundwork_grpc_server_requests", "Calls that were answered, by code of gRPC.", ["method", "code"])
_SERVED_SECONDS = Histogram(
    "groundwork_grpc_server_seconds",
    "Seconds from a call's arrival to its end; of a stream, for as long as it is read.",
    ["method"],
    buckets=_SECONDS,
)
_IN_HAND = Gauge("groundwork_grpc_server_requests_in_hand", "Calls that are being answered.", ["method"])
_MADE = Counter(
    "groundwork_grpc_client_requests", "Attempts at calls of other services, by code of gRPC.", ["method", "code"]
)
_MADE_SECONDS = Histogram(
    "groundwork_grpc_client_seconds",
    "Seconds of an attempt at a call of another service; of a stream, for as long as it is read.",
    ["method"],
    buckets=_SECONDS,
)
_SERVER_FAULTS = {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
"""Codes that mark a server's span as failed; others say what the caller did wrong (OpenTelemetry, conventions for gRPC)."""
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


class ServerTelemetry(Around):
    """The outermost interceptor."""

    def _around_unary(self, inner: Behaviour, method: str) -> Behaviour:
        async def unary(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            with _served(method, context):
                return await inner(request, context)

        return unary

    def _around_stream(self, inner: Behaviour, method: str) -> Behaviour:
        async def stream(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
            with _served(method, context):
                async with aclosing(inner(request, context)) as responses:
                    async for response in responses:
                        yield response

        return stream


@contextmanager
def _served(method: str, context: grpc.aio.ServicerContext[Any, Any]) -> Iterator[None]:
    traceparent = next((str(value) for key, value in context.invocation_metadata() or () if key == TRACEPARENT), "")
    name, label = method.removeprefix("/"), _label(method)
    attributes = {"rpc.system.name": "grpc", "rpc.method": name}
    in_hand = _IN_HAND.labels(label)
    in_hand.inc()
    began = time.perf_counter()
    code = "OK"
    with continued_span(name, traceparent, attributes, SpanKind.SERVER, notes_errors=False) as span:
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            code = "CANCELLED"
            raise
        except BaseException:
            code = _code_of(context)
            raise
        finally:
            in_hand.dec()
            _SERVED.labels(label, code).inc()
            _SERVED_SECONDS.labels(label).observe(time.perf_counter() - began)
            span.set_attribute("rpc.response.status_code", code)
            if code in _SERVER_FAULTS:
                span.set_attribute("error.type", code)
                span.set_status(StatusCode.ERROR, code)


def _code_of(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """The code that the call was aborted with."""
    code: Any = context.code()
    name = code.name if isinstance(code, grpc.StatusCode) else _CODES.get(code, "UNKNOWN")
    return "UNKNOWN" if name == "OK" else name


class ClientCall:
    """One attempt at a call. Its span is not the current one: the steps of a stream's reader may run in several contexts."""

    def __init__(self, method: str) -> None:
        name = method.removeprefix("/")
        self._label = _label(method)
        self._began = time.perf_counter()
        attributes = {"rpc.system.name": "grpc", "rpc.method": name}
        is_probe = method.startswith(HEALTH_PREFIX)
        self._span = INVALID_SPAN if is_probe else begun_span(name, attributes, SpanKind.CLIENT)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What tells the server which trace, run and document the call belongs to."""
        traceparent = traceparent_of(self._span) or current_traceparent()
        return (*(((TRACEPARENT, traceparent),) if traceparent else ()), *passed_on())

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around the attempt."""
        code = "OK"
        try:
            yield
        except grpc.aio.AioRpcError as error:
            code = error.code().name
            raise
        except GeneratorExit:  # of a stream whose reader has read enough
            raise
        except BaseException:
            code = "CANCELLED"
            raise
        finally:
            self._ended(code)

    def _ended(self, code: str) -> None:
        _MADE.labels(self._label, code).inc()
        _MADE_SECONDS.labels(self._label).observe(time.perf_counter() - self._began)
        self._span.set_attribute("rpc.response.status_code", code)
        if code not in ("OK", "CANCELLED"):
            self._span.set_attribute("error.type", code)
            self._span.set_status(StatusCode.ERROR, code)
        self._span.end()


@functools.lru_cache(maxsize=1024)
def _label(method: str) -> str:
    """ "RetrieverService/Search" of "/groundwork.retriever.v1.RetrieverService/Search"; "other" of what no contract has: a server
    that is not open yet refuses whatever it is asked."""
    try:
        descriptor_pool.Default().FindMethodByName(method.removeprefix("/").replace("/", "."))
    except KeyError:
        return "other"
    return method.rsplit(".", 1)[-1]
