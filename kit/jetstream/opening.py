"""Connecting to the message store and opening what lies in it. It may be away: a process that starts before it waits, and a
connection that is lost is made again, for ever."""

import asyncio
import functools
import math
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

import nats.errors
import structlog
from nats.aio.client import DEFAULT_BUFFER_SIZE, Client
from nats.aio.transport import TcpTransport
from nats.js.errors import APIError

from kit.errors import Unavailable
from kit.file_source import FileSource
from kit.jetstream.cluster import ServerChoice
from kit.jetstream.connection import REQUEST_TIMEOUT_S, Nats
from kit.jetstream.failures import cancellation_kept
from kit.jetstream.metrics import CONNECTED, RECONNECTIONS
from kit.jetstream.names import KnownAddresses, Transport
from kit.process.waiting import Waiting

_log = structlog.get_logger()
P = ParamSpec("P")
T = TypeVar("T")
OwnerT = TypeVar("OwnerT")

_CONNECTED_WITHIN_S = 0.5
"""After this long it is said that the connection is waited for."""
_REFUSAL_EVERY_S = 30.0
_REFUSAL_HOLDS_S = 10.0
"""A server that refuses us then closes the connection, which may be reported as an error of its own: that is not the reason."""
_PING_INTERVAL_S, _PINGS_UNANSWERED_MAX = 1, 2
"""A server that freezes is left after 3 s: its connections stay open, and nothing else tells."""


@asynccontextmanager
async def connect(
    url: str,
    *,
    name: str,
    replicas: int = 1,
    waiting: Waiting | None = None,
    tls: FileSource[ssl.SSLContext] | None = None,
    addresses: KnownAddresses | None = None,
) -> AsyncIterator[Nats]:
    """Connects to `url` ("nats://user:password@host:4222", several by comma), waiting for a server that is not up yet. With `tls`
    (kit.network.tls.nats_context) to no server without TLS; each connection is made with what the files hold by then.

    Answers come to subjects below `_INBOX.<user>`, so that a server can keep a user from listening to those of another. With
    `waiting` everything that is opened over this connection is waited for as well, and it is said there.
    """
    servers = url.split(",")
    first = urlsplit(servers[0])
    user = first.username
    client, choice = _Client(tls, addresses or KnownAddresses()), ServerChoice()
    events = _Events(f"NATS at {', '.join(map(_place, servers))}", choice, client)
    connecting = asyncio.create_task(
        client.connect(
            servers,
            name=name,
            # For the servers that a server tells of as well, whose addresses come without.
            user=user if first.password else None,
            password=first.password,
            inbox_prefix=f"_INBOX.{user}" if user else "_INBOX",
            error_cb=events.on_error,
            disconnected_cb=events.on_disconnect,
            reconnected_cb=events.on_reconnect,
            connect_timeout=2,
            reconnect_time_wait=0.2,  # type: ignore[arg-type] # seconds for asyncio.sleep
            max_reconnect_attempts=-1,
            ping_interval=_PING_INTERVAL_S,
            max_outstanding_pings=_PINGS_UNANSWERED_MAX,
            pending_size=8 * 1024 * 1024,
            reconnect_to_server_handler=choice.next,
        )
    )
    try:
        await _connected(connecting, events.place, choice, waiting)
        choice.connected(client)
        CONNECTED.set(1)
        yield Nats(client, client.jetstream(timeout=REQUEST_TIMEOUT_S), choice, replicas, waiting)
    finally:
        events.leaving = True
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)
        await _close(client)


async def _close(client: Client) -> None:
    with suppress(TimeoutError, nats.errors.Error, OSError):
        if client.is_connected:
            async with asyncio.timeout(2.0):
                await client.drain()
    with suppress(OSError, nats.errors.Error):  # the server may be gone: there is nobody to say goodbye to
        await client.close()


async def _connected(
    connecting: "asyncio.Task[None]", place: str, choice: ServerChoice, waiting: Waiting | None
) -> None:
    if waiting is None:
        await connecting
        return

    async def attempt() -> None:
        done, _ = await asyncio.wait([connecting], timeout=_CONNECTED_WITHIN_S)
        if not done:
            raise Unavailable(f"{place} cannot be used: {choice.problem or 'no answer'}")
        await connecting

    await waiting.until("message store", attempt)


def _place(server: str) -> str:
    """Host and port, without the password."""
    return urlsplit(server).netloc.rpartition("@")[2]


class _Client(Client):
    """The library's client (2.16), mended in six places."""

    def __init__(self, tls: FileSource[ssl.SSLContext] | None, addresses: KnownAddresses) -> None:
        super().__init__()
        self._tls = tls
        self._addresses = addresses

    @property
    def ssl_context(self) -> ssl.SSLContext:
        return self._tls.current() if self._tls else super().ssl_context

    def _connect_command(self) -> bytes:
        # It would tell its password in plain text to a server that asks for no TLS, whatever the address says.
        if self._tls and not self._server_info.get("tls_required"):
            raise nats.errors.Error(
                "nats: the server does not require TLS, so it is not used (tls in its configuration)"
            )
        return super()._connect_command()

    async def _process_err(self, err_msg: str) -> None:
        # It closes for good when a running server refuses it, for instance while its password is being changed.
        if "permissions violation" in err_msg.lower():
            await super()._process_err(err_msg)
        else:
            await self._process_op_err(nats.errors.Error(f"nats: {err_msg}"))

    async def close(self) -> None:
        # It leaves the last connection open where the one before it had been refused.
        await super().close()
        self._hang_up()
        if self._transport is not None:
            await self._transport.wait_closed()  # type: ignore[no-untyped-call] # the library leaves it untyped

    def _hang_up(self) -> None:
        if isinstance(self._transport, TcpTransport):
            self._transport.close()  # type: ignore[no-untyped-call] # the library leaves it untyped

    async def _connect_to_server(self, s: Any) -> None:
        # It forgets to close the socket of a connection that was refused, and where servers were while no name server answers.
        self._hang_up()
        s.last_attempt = time.monotonic()
        self._transport = Transport(self._addresses)
        with cancellation_kept():
            await self._transport.connect(s.uri, DEFAULT_BUFFER_SIZE, self.options["connect_timeout"])

    async def _process_connect_init(self) -> None:
        with cancellation_kept():
            await super()._process_connect_init()


class _Events:
    """What happens to a connection, in the log and to those who choose its server."""

    def __init__(self, place: str, choice: ServerChoice, client: Client) -> None:
        self.place = place
        self._choice = choice
        self._client = client
        self.leaving = False
        self._refusal_told_at_s = self._last_refused_at_s = -math.inf

    async def on_error(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        if "permissions violation" in text.lower():
            # The call itself only hears nothing, and reports a message store that does not answer.
            _log.error("nats_permission_missing", error=text)
        elif "authorization violation" in text.lower():
            self._choice.problem = "it refuses our user or password (GROUNDWORK_NATS_URL)"
            self._last_refused_at_s = time.monotonic()
            self._tell_refusal()
        else:
            # Five a second while a server is away; the disconnect is what an operator needs to see.
            if time.monotonic() - self._last_refused_at_s >= _REFUSAL_HOLDS_S:
                self._choice.problem = text
            _log.debug("nats_error", error=repr(error))

    async def on_disconnect(self) -> None:
        self._choice.disconnected()
        CONNECTED.set(0)
        if not self.leaving:
            _log.warning("nats_disconnected")

    async def on_reconnect(self) -> None:
        self._last_refused_at_s = -math.inf
        CONNECTED.set(1)
        RECONNECTIONS.inc()
        _log.info("nats_reconnected")
        self._choice.connected(self._client)

    def _tell_refusal(self) -> None:
        now = time.monotonic()
        if now - self._refusal_told_at_s >= _REFUSAL_EVERY_S:
            self._refusal_told_at_s = now
            _log.error("nats_refuses_credentials", server=self.place)


def patient(
    opening: Callable[Concatenate[OwnerT, Nats, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[OwnerT, Nats, P], Coroutine[Any, Any, T]]:
    """Has a class method that opens something in the message store wait until it can, where the connection knows how the process
    reports what it waits for. A refusal of the server is tried again too: another server may have to come up first, or an operator
    to make room."""

    @functools.wraps(opening)
    async def wait(owner: OwnerT, nats_: Nats, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if nats_.waiting is None:
            return await opening(owner, nats_, *args, **kwargs)

        async def attempt() -> T:
            try:
                return await opening(owner, nats_, *args, **kwargs)
            except APIError as error:
                said = error.description or type(error).__name__
                raise Unavailable(f"the message store refuses to open what is needed: {said}") from error

        return await nats_.waiting.until("message store", attempt)

    return wait
