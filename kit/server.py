"""The gRPC server: the only place with server options and interceptors.

Order, outermost first: OpenTelemetry, errors, request context (principal and deadline), the handler.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, NoReturn

import grpc
import structlog
from opentelemetry.instrumentation.grpc import aio_server_interceptor

from kit import deadline
from kit.errors import GroundworkError, Internal
from kit.principal import set_principal
from kit.scopes import scope_of
from kit.status import DETAILS_KEY, to_status
from kit.telemetry import current_trace_id
from kit.tokens import TOKEN_METADATA_KEY, TokenVerifier

_log = structlog.get_logger()
_HEALTH_PREFIX = "/grpc.health.v1.Health/"
HEALTH_DETAIL_KEY = "groundwork-detail-bin"
"""Trailing metadata of a health check: UTF-8, what is wrong though the service may serve."""
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Largest message in either direction: a search answer of 200 chunks, or a batch of vectors, fits with room to spare."""

SERVER_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # Must be no stricter than the client's keepalive in kit.channel, or the server answers pings with GOAWAY.
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # Two processes on one port would answer each other's callers.
    ("grpc.so_reuseport", 0),
]


def make_server(verifier: TokenVerifier) -> grpc.aio.Server:
    """A server with all interceptors; bind, add servicers and start it through kit.service."""
    telemetry = aio_server_interceptor()  # type: ignore[no-untyped-call] # the library leaves it untyped
    interceptors = [telemetry, _Errors(), _RequestContext(verifier)]
    return grpc.aio.server(interceptors=interceptors, options=SERVER_OPTIONS)


Behaviour = Callable[[Any, Any], Any]
"""A handler: request or request iterator, and the servicer context."""


class _Around(grpc.aio.ServerInterceptor):
    """Wraps unary and streaming handlers alike; a subclass says what happens around them."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        method: str = handler_call_details.method
        if handler is None or method.startswith(_HEALTH_PREFIX):
            return handler
        return self._wrapped(handler, method)

    def _wrapped(self, handler: Any, method: str) -> Any:
        if handler.response_streaming:
            kind = "stream_stream" if handler.request_streaming else "unary_stream"
            around: Behaviour = self._around_stream(getattr(handler, kind), method)
        else:
            kind = "stream_unary" if handler.request_streaming else "unary_unary"
            around = self._around_unary(getattr(handler, kind), method)
        make = getattr(grpc, f"{kind}_rpc_method_handler")
        return make(around, handler.request_deserializer, handler.response_serializer)

    def _around_unary(self, inner: Behaviour, method: str) -> Behaviour:
        raise NotImplementedError

    def _around_stream(self, inner: Behaviour, method: str) -> Behaviour:
        raise NotImplementedError


class _Errors(_Around):
    """Turns what a handler raises into a status. An unknown error is logged here, once, and shows a trace id only."""

    def _around_unary(self, inner: Behaviour, method: str) -> Behaviour:
        async def unary(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            try:
                return await inner(request, context)
            except (grpc.aio.AbortError, asyncio.CancelledError):
                raise
            except Exception as error:
                await _abort(context, error, method)

        return unary

    def _around_stream(self, inner: Behaviour, method: str) -> Behaviour:
        async def stream(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
            try:
                # Closed here, not by the garbage collector: a handler whose client hung up lets go of what it holds at once.
                async with aclosing(inner(request, context)) as responses:
                    async for response in responses:
                        yield response
            except (grpc.aio.AbortError, asyncio.CancelledError):
                raise
            except Exception as error:
                await _abort(context, error, method)

        return stream


class _RequestContext(_Around):
    """Verifies the caller's token and scope, and sets principal and deadline for the handler's task."""

    def __init__(self, verifier: TokenVerifier) -> None:
        self._verifier = verifier

    def _enter(self, context: grpc.aio.ServicerContext[Any, Any], method: str) -> None:
        metadata = dict(context.invocation_metadata() or ())
        token = str(metadata.get(TOKEN_METADATA_KEY, "")).removeprefix("Bearer ")
        principal = self._verifier.verify(token, method)
        scope = scope_of(method)
        if scope is not None:
            principal.require(scope)
        set_principal(principal)
        deadline.set_remaining(context.time_remaining())
        structlog.contextvars.bind_contextvars(tenant_id=principal.tenant_id)

    def _around_unary(self, inner: Behaviour, method: str) -> Behaviour:
        async def unary(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            self._enter(context, method)
            return await inner(request, context)

        return unary

    def _around_stream(self, inner: Behaviour, method: str) -> Behaviour:
        async def stream(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
            self._enter(context, method)
            async with aclosing(inner(request, context)) as responses:
                async for response in responses:
                    yield response

        return stream


async def _abort(context: grpc.aio.ServicerContext[Any, Any], error: Exception, method: str) -> NoReturn:
    if not isinstance(error, GroundworkError):
        trace_id = current_trace_id()
        _log.error("rpc_failed", method=method, trace_id=trace_id, exc_info=error)
        error = Internal(f"something went wrong on our side; give this trace id to the operator: {trace_id}")
        error.metadata["trace_id"] = trace_id
    status = to_status(error)
    code = next(code for code in grpc.StatusCode if code.value[0] == error.code.grpc_number)
    await context.abort(code, status.message, ((DETAILS_KEY, status.SerializeToString()),))
