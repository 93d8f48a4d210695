"""Outgoing calls: the only place with channel options. A channel carries the principal's token and the trace, refuses a call
without a deadline, makes calls again where that is safe (kit.rpc.attempts), and raises GroundworkError instead of RpcError."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

from kit import deadline
from kit.access.principal import current_principal
from kit.access.tokens import TOKEN_METADATA_KEY, TokenSigner, call_of
from kit.errors import DeadlineExceeded, Internal
from kit.network.local_models import sent_binding
from kit.network.tls import Certificates, CertificateSource
from kit.rpc.addresses import addresses, host, target
from kit.rpc.attempts import Attempts, Requests
from kit.rpc.call_telemetry import ClientCall
from kit.rpc.calls import WholeRequests
from kit.rpc.connection import LOOKED_UP_EVERY_S, Connection, InnerChannel, Method
from kit.rpc.credentials import channel_credentials
from kit.rpc.server import MAX_MESSAGE_BYTES, MAX_METADATA_BYTES
from kit.rpc.status import answer_of, from_rpc_error

__all__ = ["Channel", "addresses", "open_channel"]

_OPTIONS = [
    ("grpc.max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # A service that was restarted on the same address should be found again within a second, not in two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # In truth how long a connection may take to be made: more than a server on a busy machine needs, less than anybody would wait.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    # A name is looked up again when one of its servers goes away, and no more often than this: a pod that has taken its place
    # should be found soon.
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),
]
PATIENCE_S = 10.0


@asynccontextmanager
async def open_channel(
    address: str,
    signer: TokenSigner,
    services: Sequence[ServiceDescriptor] = (),
    *,
    passed_on_to: Sequence[str] = (),
    patience_s: float = PATIENCE_S,
    certificates: CertificateSource | None = None,
    server_name: str = "",
    looked_up_every_s: float = LOOKED_UP_EVERY_S,
) -> AsyncIterator["Channel"]:
    """A channel to `address`: "host:port", or several with commas. Calls are balanced round robin over all servers behind it, as
    over the pods behind a headless service's name.

    `services` are the descriptors of the contracts that are called: their methods marked with an idempotency level are
    retried on UNAVAILABLE. `passed_on_to` are the rooms that the called service asks in the caller's name: its token is good for
    the called room and for those. Who calls while no server is there waits for one until the channel has been without for
    `patience_s`; from then on calls fail at once, until there is one again. A channel without a server looks the name up
    again every `looked_up_every_s`.

    With `certificates` the channel speaks TLS only. The certificate of every server must name `server_name`, or if that is empty
    the host of `address`, of several the first.
    """
    name = server_name or host(address)

    def make(known: Certificates | None) -> grpc.aio.Channel:
        options = [*_OPTIONS, ("grpc.service_config", _service_config(services))]
        if known is None:
            return grpc.aio.insecure_channel(target(address), options=options)
        # gRPC compares the certificate with this; with several addresses it would with all in one word.
        options.append(("grpc.default_authority", name))
        return grpc.aio.secure_channel(target(address), channel_credentials(known), options=options)

    connection = Connection(make, address, patience_s, certificates=certificates, looked_up_every_s=looked_up_every_s)
    async with connection.watched():
        yield Channel(signer, passed_on_to, connection)


def _service_config(services: Sequence[ServiceDescriptor]) -> str:
    repeatable = [
        {"service": service.full_name, "method": method.name}
        for service in services
        for method in service.methods
        if method.GetOptions().idempotency_level != MethodOptions.IDEMPOTENCY_UNKNOWN
    ]
    policy = {
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "1s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    methods = [{"name": repeatable, "retryPolicy": policy}] if repeatable else []
    return json.dumps({"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": methods})


class Channel(grpc.aio.Channel):
    """Wraps a grpc.aio channel so that generated stubs make calls with a token, a deadline and our errors.

    A unary answer is awaited; a streamed one is an async generator (kit.rpc.calls.responses). Calls take `timeout` in seconds;
    the smaller of it and the time left to the request in hand applies. `wait_for_ready` is None for the channel's patience, False
    not to wait for a server at all, True to wait until the deadline.
    """

    def __init__(self, signer: TokenSigner, passed_on_to: Sequence[str], connection: Connection) -> None:
        self._signer = signer
        self._passed_on_to = passed_on_to
        self._connection = connection

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._unary(Method("unary_unary", method, args, kwargs))

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._unary(Method("stream_unary", method, args, kwargs), has_stream=True)

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._stream(Method("unary_stream", method, args, kwargs))

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        # None could be begun again, since answers may have come of what was sent. The base class asks for the method.
        raise NotImplementedError(f"{method}: no contract has streams in both directions")

    def _unary(self, method: Method, *, has_stream: bool = False) -> Callable[..., "_UnaryCall"]:
        async def answer(
            request: Any, timeout: float | None, wait_for_ready: bool | None
        ) -> tuple[Any, grpc.aio.Metadata]:
            attempts = self._attempts(method.name, timeout, wait_for_ready)
            is_last = request.is_last if isinstance(request, WholeRequests) else None
            requests = Requests(request, is_last) if has_stream else None
            while True:
                sent = request if requests is None else requests.begin()
                telemetry = ClientCall(method.name)
                arguments = self._arguments(method.name, attempts.left_s, telemetry)
                try:
                    with self._connection.inner.using(method) as inner, telemetry.running():
                        made = inner(sent, wait_for_ready=wait_for_ready, **arguments)
                        answered = await (made if requests is None else answer_of(made))
                except grpc.aio.AioRpcError as error:
                    await attempts.again(error, requests)
                    continue
                return answered, await made.trailing_metadata()

        def call(request: Any, *, timeout: float | None = None, wait_for_ready: bool | None = None) -> _UnaryCall:
            return _UnaryCall(answer(request, timeout, wait_for_ready))

        return call

    def _stream(self, method: Method) -> Callable[..., AsyncIterator[Any]]:
        async def call(
            request: Any, *, timeout: float | None = None, wait_for_ready: bool | None = None
        ) -> AsyncIterator[Any]:
            attempts = self._attempts(method.name, timeout, wait_for_ready)
            has_begun = False
            while True:
                telemetry = ClientCall(method.name)
                arguments = self._arguments(method.name, attempts.left_s, telemetry)
                made = _responses(self._connection.inner, method, request, wait_for_ready, arguments, telemetry)
                try:
                    async with aclosing(made) as responses:
                        async for response in responses:
                            has_begun = True
                            yield response
                except grpc.aio.AioRpcError as error:
                    if has_begun:
                        raise from_rpc_error(error) from error
                    await attempts.again(error)
                else:
                    return

        return call

    def _attempts(self, method: str, timeout_s: float | None, wait_for_ready: bool | None) -> Attempts:
        bounded_s = deadline.bounded_timeout_s(timeout_s)
        if bounded_s is None:
            raise Internal(f"{method} was called without a deadline", reason="NO_DEADLINE")
        if bounded_s <= 0:
            raise DeadlineExceeded(f"no time was left to call {method}", reason="NO_TIME_LEFT")
        return Attempts(self._connection, is_patient=wait_for_ready is not False, deadline_s=bounded_s)

    def _arguments(self, method: str, timeout_s: float, telemetry: ClientCall) -> dict[str, Any]:
        token = self._signer.sign(current_principal(), call_of(method)[0], *self._passed_on_to)
        metadata = ((TOKEN_METADATA_KEY, f"Bearer {token}"), *sent_binding(), *telemetry.metadata)
        return {"timeout": timeout_s, "metadata": metadata}

    async def connected(self) -> bool:
        """Waits for a server for as long as the channel is patient. Whether there is one."""
        return await self._connection.ready(deadline.bounded_timeout_s(None))

    async def close(self, grace: float | None = None) -> None:
        await self._connection.inner.channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return self._connection.inner.channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._connection.inner.channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._connection.inner.channel.channel_ready()

    async def __aenter__(self) -> "Channel":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _UnaryCall:
    """A call with one answer: what a caller may do of grpc.aio's own."""

    def __init__(self, answer: Coroutine[Any, Any, tuple[Any, grpc.aio.Metadata]]) -> None:
        self._answer = answer

    def __await__(self) -> Generator[Any, Any, Any]:
        answered, self._trailing = yield from self._answer.__await__()
        return answered

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        """The metadata that came after the answer; the call has to be awaited first."""
        return self._trailing


async def _responses(
    channel: InnerChannel,
    method: Method,
    request: Any,
    wait_for_ready: bool | None,
    arguments: dict[str, Any],
    telemetry: ClientCall,
) -> AsyncGenerator[Any, None]:
    """One attempt at a streamed answer. Closing it cancels the call."""
    with channel.using(method) as inner:
        made = inner(request, wait_for_ready=wait_for_ready, **arguments)
        try:
            with telemetry.running():
                async for response in made:
                    yield response
        finally:
            made.cancel()
