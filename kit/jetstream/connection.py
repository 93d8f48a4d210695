"""The connection. It reconnects for ever; calls that meanwhile get no answer within their time fail with Unavailable."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import nats
import nats.errors
import structlog
from nats.aio.client import Client
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NoStreamResponseError

from kit.errors import Unavailable

_log = structlog.get_logger()

REQUEST_TIMEOUT_S = 5.0
"""Longest wait for one JetStream answer. An ack takes 0.4 ms on a healthy server; a leader election takes seconds."""

_STREAM_NAME_IN_USE = 10058


@dataclass(frozen=True)
class Nats:
    """One connection and its JetStream context."""

    nc: Client
    js: JetStreamContext
    replicas: int = 1
    """On how many servers whatever is made over this connection is kept."""

    @property
    def reconnections(self) -> int:
        """How often the connection was made anew: the server may be another since, or may have lost its last seconds."""
        return self.nc.stats["reconnects"]

    async def check(self) -> None:
        """Raises Unavailable unless the server answers: for readiness."""
        with translated_errors("NATS"):
            await self.js.account_info()

    async def ensure_stream(self, config: api.StreamConfig) -> None:
        """Makes the stream, or brings an existing one to `config`. Safe to call from several processes at once."""
        with translated_errors(f"stream {config.name}"):
            try:
                await self.js.add_stream(config)
            except APIError as error:
                if error.err_code != _STREAM_NAME_IN_USE:
                    raise
                await self.js.update_stream(config)


@asynccontextmanager
async def connect(url: str, *, name: str, replicas: int = 1) -> AsyncIterator[Nats]:
    """Connects to `url` ("nats://user:password@host:4222", several by comma), waiting for a server that is not up yet.

    Answers come to subjects below `_INBOX.<user>`, so that a server can keep a user from listening to those of another.
    """
    servers = url.split(",")
    user = urlsplit(servers[0]).username

    async def on_error(error: Exception) -> None:
        if "permissions violation" in str(error).lower():
            # The call itself only hears nothing, and reports a message store that does not answer.
            _log.error("nats_permission_missing", error=str(error))
            return
        # Five a second while a server is away; the disconnect is what an operator needs to see.
        _log.debug("nats_error", error=repr(error))

    leaving = False

    async def on_disconnect() -> None:
        if not leaving:
            _log.warning("nats_disconnected")

    async def on_reconnect() -> None:
        _log.info("nats_reconnected")

    nc = await nats.connect(
        servers,
        name=name,
        inbox_prefix=f"_INBOX.{user}" if user else "_INBOX",
        error_cb=on_error,
        disconnected_cb=on_disconnect,
        reconnected_cb=on_reconnect,
        connect_timeout=2,
        reconnect_time_wait=0.2,
        max_reconnect_attempts=-1,
        ping_interval=10,
        max_outstanding_pings=2,
        pending_size=8 * 1024 * 1024,
    )
    try:
        yield Nats(nc, nc.jetstream(timeout=REQUEST_TIMEOUT_S), replicas)
    finally:
        leaving = True
        await _close(nc)


async def _close(nc: Client) -> None:
    try:
        async with asyncio.timeout(2.0):
            await nc.drain()
    except (TimeoutError, nats.errors.Error, OSError):
        with suppress(OSError, nats.errors.Error):  # the server may be gone: there is nobody to say goodbye to
            await nc.close()


@contextmanager
def cancellation_kept() -> Iterator[None]:
    """Raises CancelledError when the block was cancelled and went on all the same, or ended with another error.

    Before Python 3.12 asyncio.wait_for, with which the client awaits every answer, forgets a cancellation that comes together
    with the answer (https://github.com/python/cpython/issues/86296): a loop that should end would go on for ever.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        yield
    finally:
        if task and task.cancelling() > before:
            raise asyncio.CancelledError


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """Raises Unavailable, naming `what`, where the client says that the server could not be asked or could not do it."""
    try:
        with cancellation_kept():
            yield
    except _NO_ANSWER as error:
        raise _unavailable(f"{what}: the message store does not answer") from error
    except APIError as error:
        code = getattr(error, "code", None)  # the client's KeyNotFoundError is an APIError that lacks its fields
        if code is None or code < 500:
            raise
        raise _unavailable(f"{what}: the message store cannot do it ({error.description})") from error


_NO_ANSWER = (
    TimeoutError,
    nats.errors.TimeoutError,
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionDrainingError,
    nats.errors.NoServersError,
    nats.errors.OutboundBufferLimitError,
    nats.errors.ConnectionReconnectingError,
    NoStreamResponseError,
)


def _unavailable(problem: str) -> Unavailable:
    return Unavailable(f"{problem}; try again in a few seconds", reason="NATS_UNAVAILABLE", retry_after_s=2.0)
