"""What the client's errors mean: the store is silent, it cannot do what it was asked, or it says no. Only the first is worth asking
again at once."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import nats.errors
from nats.js.errors import APIError, NoStreamResponseError, ServiceUnavailableError

from kit.errors import FailedPrecondition, Unavailable

_TOO_FEW_SERVERS = 10005
_SINGLE_SERVER = 10074
WRONG_LAST_SEQUENCE = (10071, 10164)
"""Codes of the server for a write that expected another one before it."""
PASSING = (_TOO_FEW_SERVERS, 10008, 10009, 10118, 10119, 10158)
"""What a server of a cluster says while others are away, while there is no leader, or while the same message is being stored: it
may be over in seconds."""


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


class StoreSilent(Unavailable):
    """The store does not answer now; nobody knows whether it did what it was asked."""


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """Raises Unavailable, naming `what`, where the client says that the server could not be asked or could not do it; StoreSilent
    where asking again may help soon."""
    try:
        with cancellation_kept():
            yield
    except _NO_ANSWER as error:
        raise _unavailable(StoreSilent, f"{what}: the message store does not answer") from error
    except APIError as error:
        # Some of the client's errors are APIErrors that lack their fields: KeyNotFoundError; and this one where nobody listened.
        code, err_code = getattr(error, "code", None), getattr(error, "err_code", None)
        if err_code is None and isinstance(error, ServiceUnavailableError):
            raise _unavailable(StoreSilent, f"{what}: the message store does not answer") from error
        if err_code in PASSING:
            raise _unavailable(StoreSilent, f"{what}: the message store has no leader ({error.description})") from error
        if code is None or code < 500:
            raise
        raise _unavailable(Unavailable, f"{what}: the message store cannot do it ({error.description})") from error


_NO_ANSWER = (
    TimeoutError,
    nats.errors.TimeoutError,
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionDrainingError,
    nats.errors.NoRespondersError,
    nats.errors.NoServersError,
    nats.errors.OutboundBufferLimitError,
    nats.errors.ConnectionReconnectingError,
    NoStreamResponseError,
)


def _unavailable(kind: type[Unavailable], problem: str) -> Unavailable:
    return kind(f"{problem}; try again in a few seconds", reason="NATS_UNAVAILABLE", retry_after_s=2.0)


@contextmanager
def replicas_explained(stream: str, replicas: int) -> Iterator[None]:
    """Says what to do where the server has no place for so many replicas."""
    try:
        yield
    except Unavailable as error:
        code = getattr(error.__cause__, "err_code", None)
        if code == _TOO_FEW_SERVERS:
            raise Unavailable(
                f"stream {stream} is to be kept on {replicas} servers (GROUNDWORK_NATS_REPLICAS), and fewer have joined the NATS "
                "cluster: start the others, or ask for fewer replicas",
                reason="NATS_SERVERS_MISSING",
                retry_after_s=2.0,
            ) from error
        if code == _SINGLE_SERVER:
            raise FailedPrecondition(
                f"stream {stream} cannot be kept on {replicas} servers: this NATS server is not part of a cluster. Set "
                "GROUNDWORK_NATS_REPLICAS=1, or name the servers of a cluster in GROUNDWORK_NATS_URL",
                reason="NATS_NOT_CLUSTERED",
            ) from error
        raise
