"""An open connection (kit.jetstream.opening). Calls that get no answer within their time fail with Unavailable."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NoStreamResponseError, ServiceUnavailableError

from kit.errors import Unavailable
from kit.waiting import Waiting

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
    waiting: Waiting | None = None
    """Where it is said that what is being opened is waited for; without it, opening raises Unavailable instead of waiting."""

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
    except (*_NO_ANSWER, ServiceUnavailableError) as error:
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
