"""The gRPC server: the only place with server options and interceptors.

Order, outermost first: telemetry, errors, request context (principal and deadline), the handler.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NoReturn

import grpc
import structlog

from kit import deadline
from kit.access.principal import set_principal
from kit.access.scopes import scope_of
from kit.access.tokens import TOKEN_METADATA_KEY, TokenVerifier
from kit.errors import GroundworkError, Internal, Unavailable
from kit.network.local_models import take_up_binding
from kit.network.tls import CertificateSource
from kit.observability.logging import take_up
from kit.observability.telemetry import current_trace_id
from kit.rpc.call_telemetry import ServerTelemetry
from kit.rpc.credentials import server_credentials
from kit.rpc.interception import Around, Behaviour
from kit.rpc.status import DETAILS_KEY, to_status

_log = structlog.get_logger()
HEALTH_DETAIL_KEY = "groundwork-detail-bin"
"""Trailing metadata of a health check: UTF-8, what is wrong though the service may serve."""
HEALTH_KINDS_KEY = "groundwork-kinds"
"""Trailing metadata of a health check: the kinds of what is wrong, with commas between."""
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Largest message in either direction: a search answer of 200 chunks, or a batch of vectors, fits with room to spare."""
MAX_METADATA_BYTES = 256 * 1024
"""Of one call: a caller's token names all groups of the caller, and gRPC takes 8 KiB by default."""

SERVER_OPTIONS = [
    ("grpc.max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # Must be no stricter than the client's keepalive in kit.rpc.channel, or the server answers pings with GOAWAY.
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # Two processes on one port would answer each other's callers.
    ("grpc.so_reuseport", 0),
]
MAX_CONNECTION_AGE_S = 300.0
"""Each client's connection is renewed as often: a server that was added gets its share within these five minutes."""
_CUT_S = 2.0
"""How long a handler that is cut off may take to end."""
_FORGOTTEN_S = 3.0
"""Of what gRPC takes in while a server begins to stop, it now and then gives a call to no handler (1.85: seen once in 100 to 600
restarts of a busy machine): it would have no answer until its deadline. A server that is idle for so long ends it."""
_NEVER_S = 1e9


def make_server(verifier: TokenVerifier, *, max_connection_age_s: float = MAX_CONNECTION_AGE_S) -> Server:
    """A server with all interceptors; bind, add servicers and start it through kit.process.service.

    A client leaves a connection that is older than `max_connection_age_s` (gRPC varies it by a tenth) for a new one, and looks up
    the address anew for it. Calls in hand go on there for as long as they take: gRPC's grace for them is unlimited unless set.
    """
    in_hand = _InHand()
    interceptors = [ServerTelemetry(), _Errors(in_hand), _RequestContext(verifier)]
    options = [*SERVER_OPTIONS, ("grpc.max_connection_age_ms", round(max_connection_age_s * 1000))]
    return Server(grpc.aio.server(interceptors=interceptors, options=options), in_hand)


def end_when_draining() -> None:
    """Says of the call in hand that it has no end of its own, as a watch: it is ended as soon as the server stops, and its caller
    opens it again elsewhere. Others are given the grace."""
    call = _call.get()
    if call is not None:
        call.is_endless = True


class _Call:
    """A call in hand: its context, and the task of its handler."""

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any], task: asyncio.Task[Any]) -> None:
        self.context = context
        self.task = task
        self.is_endless = False
        self.is_cut = False


_call: ContextVar[_Call | None] = ContextVar("call", default=None)


class _InHand:
    """The calls that a server has in hand. One that the server cuts off gets a status that says so: what ends without a word from
    us was never begun, and its caller makes it again elsewhere (kit.rpc.attempts)."""

    def __init__(self) -> None:
        self._calls: set[_Call] = set()
        self._unfinished = 0
        self._is_closed = False
        self.idle = asyncio.Event()
        """Set while every call that was begun has its status written."""
        self.idle.set()

    @contextmanager
    def entered(self, context: grpc.aio.ServicerContext[Any, Any]) -> Iterator[_Call]:
        """Raises CancelledError when the server has closed."""
        if self._is_closed:
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None
        call = _Call(context, task)
        self._unfinished += 1
        self.idle.clear()
        context.add_done_callback(self._finished)  # type: ignore[arg-type] # to the stubs it is a class, not any callable
        self._calls.add(call)
        _call.set(call)  # for the rest of the task, which is the call's
        try:
            yield call
        finally:
            self._calls.discard(call)

    def _finished(self, _: grpc.aio.ServicerContext[Any, Any]) -> None:
        self._unfinished -= 1
        if not self._unfinished:
            self.idle.set()

    def cut(self, *, only_endless: bool = False) -> None:
        """Ends those calls with UNAVAILABLE."""
        for call in self._calls:
            if call.is_endless or not only_endless:
                call.is_cut = True
                call.task.cancel()

    async def close(self) -> None:
        """Ends all calls, also those whose handlers ignore the cancellation, and begins no other."""
        self._is_closed = True
        self.cut()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.idle.wait(), _CUT_S)
        for call in list(self._calls):
            with suppress(grpc.aio.AbortError, grpc.aio.UsageError):
                await _abort(call.context, _stopped(), "", "")


class Server(grpc.aio.Server):
    """Wraps a grpc.aio server so that it stops without leaving a caller in doubt."""

    def __init__(self, inner: grpc.aio.Server, in_hand: _InHand) -> None:
        self._inner = inner
        self._in_hand = in_hand

    async def stop(self, grace: float | None) -> None:
        """Tells all clients to go elsewhere and takes no new call. Those in hand have `grace` seconds to end; what is left is cut
        off with UNAVAILABLE and the reason SERVER_STOPPED."""
        stopping = asyncio.ensure_future(self._inner.stop(_NEVER_S))
        try:
            self._in_hand.cut(only_endless=True)
            async with asyncio.timeout(grace or 0.0):
                await self._finished(stopping)
        except TimeoutError:
            pass
        finally:
            await self._in_hand.close()
            await self._inner.stop(None)

    async def _finished(self, stopping: asyncio.Future[Any]) -> None:
        """Until it has stopped, or all that is left are calls that no handler was given."""
        idle = self._in_hand.idle
        while not stopping.done():
            becoming_idle = asyncio.ensure_future(idle.wait())
            try:
                await asyncio.wait({stopping, becoming_idle}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                becoming_idle.cancel()
            await asyncio.wait({stopping}, timeout=_FORGOTTEN_S)
            if idle.is_set():
                return

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        self._inner.add_generic_rpc_handlers(generic_rpc_handlers)

    def add_registered_method_handlers(self, service_name: str, method_handlers: Any) -> None:
        """Does nothing: generated code adds every method as a generic handler, too. With registered ones grpc.aio (1.85) waits for
        a call of each method at once, and a server that stops forgets those that came while it looked at another: they had no
        answer until their deadline."""

    def add_insecure_port(self, address: str) -> int:
        return self._inner.add_insecure_port(address)

    def bind(self, address: str, certificates: CertificateSource | None = None) -> int:
        """Opens the port, with TLS where there are certificates, and returns its number. Raises RuntimeError when it is taken."""
        if certificates is None:
            return self.add_insecure_port(address)
        return self.add_secure_port(address, server_credentials(certificates))

    def add_secure_port(self, address: str, server_credentials: grpc.ServerCredentials) -> int:
        return self._inner.add_secure_port(address, server_credentials)

    async def start(self) -> None:
        await self._inner.start()

    async def wait_for_termination(self, timeout: float | None = None) -> bool:
        return await self._inner.wait_for_termination(timeout)


class _Errors(Around):
    """Turns what a handler raises into a status. An unknown error is logged here, once, and shows a trace id only."""

    def __init__(self, in_hand: _InHand) -> None:
        self._in_hand = in_hand
        self._replica = secrets.token_hex(4)

    def _around_unary(self, inner: Behaviour, method: str) -> Behaviour:
        async def unary(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            with self._in_hand.entered(context) as call:
                try:
                    return await inner(request, context)
                except grpc.aio.AbortError:
                    raise
                except BaseException as error:
                    await self._end(context, call, error, method)

        return unary

    def _around_stream(self, inner: Behaviour, method: str) -> Behaviour:
        async def stream(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
            with self._in_hand.entered(context) as call:
                try:
                    # Closed here, not by the garbage collector: a handler whose client hung up lets go of what it holds at once.
                    async with aclosing(inner(request, context)) as responses:
                        async for response in responses:
                            yield response
                except (grpc.aio.AbortError, GeneratorExit):
                    raise
                except BaseException as error:
                    await self._end(context, call, error, method)

        return stream

    async def _end(
        self, context: grpc.aio.ServicerContext[Any, Any], call: _Call, error: BaseException, method: str
    ) -> NoReturn:
        if isinstance(error, asyncio.CancelledError):
            if not call.is_cut and call.task.cancelling():
                raise error  # its client hung up
            error = _stopped() if call.is_cut else error
        elif not isinstance(error, Exception):
            raise error
        await _abort(context, error, method, self._replica)


def _stopped() -> Unavailable:
    return Unavailable(
        "the service was stopped while it worked on this, and may have done it; ask again", reason="SERVER_STOPPED"
    )


class _RequestContext(Around):
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
        take_up_binding(metadata)
        deadline.set_remaining(context.time_remaining())
        structlog.contextvars.bind_contextvars(tenant_id=principal.tenant_id)
        take_up(metadata)

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


async def _abort(
    context: grpc.aio.ServicerContext[Any, Any], error: BaseException, method: str, replica: str
) -> NoReturn:
    if not isinstance(error, GroundworkError):
        trace_id = current_trace_id()
        _log.error("rpc_failed", method=method, trace_id=trace_id, exc_info=error)
        error = Internal(f"something went wrong on our side; give this trace id to the operator: {trace_id}")
        error.metadata["trace_id"] = trace_id
    status = to_status(error, replica)
    code = next(code for code in grpc.StatusCode if code.value[0] == error.code.grpc_number)
    await context.abort(code, status.message, ((DETAILS_KEY, status.SerializeToString()),))
