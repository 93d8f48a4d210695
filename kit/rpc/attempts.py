"""Whether a call that failed is made again. The rules:

    the call                                         is made again
    was never sent: nobody is connected              when somebody is, for as long as the channel is patient
    was never taken up: its server was stopping      at once
    was refused: that replica is full                at once, until every replica has refused it
    was refused: its token has expired               with another token, for two seconds: clocks are being set
    may have been carried out                        only by gRPC, and only where the contract declares it safe to repeat

A stream of requests is begun anew only while what was sent of it is still at hand. Where the contract takes nothing from a stream
without its last message, one that broke before that was sent is made again as well.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import Any

import grpc

from kit.errors import GroundworkError
from kit.rpc.connection import Connection
from kit.rpc.status import from_rpc_error, full_replica, has_stale_token, is_own_status

_NOT_SENT = (
    "connections to all backends failing",
    "failed to connect to all addresses",
    "errors resolving",
    "DNS resolution failed",
    "empty address list",
)
"""How gRPC's messages begin when no server was there to send a call to (1.85; a test asks it). There is no code for it."""
_NOT_BEGUN = "Cancelling all calls"
"""What gRPC says of calls that a server of ours has taken in and not begun when it closes; others have the server's own word
(kit.rpc.server)."""
_BROKEN = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.INTERNAL})
"""What a stream of requests may end with when its connection breaks. INTERNAL: a write failed, and no status came."""
_MOST_CUT_SHORT = 8
"""How often a call may meet a server that stops. Each time another one is asked, or the same after its restart."""
_CLOCKS_APART_S, _TOKEN_PAUSE_S = 2.0, 0.1
"""When the clocks of two processes or machines are set, one is set first. A clock that stays wrong is an error for the caller."""
_MOST_KEPT_BYTES = 1024 * 1024
"""Of a stream of requests. The window of HTTP/2 lets about as much be sent to a server that does not read."""


class Attempts:
    """One call, made as often as it takes. After a failure `again` says whether to make it once more, or raises."""

    def __init__(self, connection: Connection, *, is_patient: bool, deadline_s: float) -> None:
        self._connection = connection
        self._is_patient = is_patient
        self._ends_at = time.monotonic() + deadline_s
        self._cut_short = 0
        self._refused_by: list[str] = []
        self._stale_since: float | None = None

    @property
    def left_s(self) -> float:
        return max(0.0, self._ends_at - time.monotonic())

    async def again(self, error: grpc.aio.AioRpcError, sent: "Requests | None" = None) -> None:
        """Returns when the call is to be made again, else raises what it failed with as a GroundworkError."""
        failure = from_rpc_error(error)
        if (sent is not None and not sent.can_begin_again) or not await self._is_worth_another(error, failure, sent):
            raise failure from error

    async def _is_worth_another(
        self, error: grpc.aio.AioRpcError, failure: GroundworkError, sent: "Requests | None"
    ) -> bool:
        replica = full_replica(error)
        if replica is not None:
            self._refused_by.append(replica)
            return await self._has_another()
        if has_stale_token(error) and self._is_patient:
            return await self._another_token()
        if is_own_status(error) or not self._is_patient:
            return False
        if error.code() is grpc.StatusCode.UNAVAILABLE and failure.message.startswith(_NOT_SENT):
            return await self._pause() and await self._connection.ready(self.left_s)
        was_not_taken_up = error.code() is grpc.StatusCode.CANCELLED or error.details() == _NOT_BEGUN
        is_unfinished = sent is not None and not sent.may_be_whole and error.code() in _BROKEN
        self._cut_short += 1
        if not (was_not_taken_up or is_unfinished) or self._cut_short > _MOST_CUT_SHORT:
            return False
        return await self._pause()

    async def _has_another(self) -> bool:
        """Round robin leads to each replica in turn; with calls of others in between, a few tries are needed."""
        replicas = await self._connection.replicas()
        return len(set(self._refused_by)) < replicas and len(self._refused_by) < 3 * replicas and self.left_s > 0

    async def _another_token(self) -> bool:
        now = time.monotonic()
        self._stale_since = now if self._stale_since is None else self._stale_since
        await asyncio.sleep(_TOKEN_PAUSE_S)
        return now - self._stale_since < _CLOCKS_APART_S and self.left_s > 0

    async def _pause(self) -> bool:
        """Lets the news of a lost connection come through. Whether there is time left."""
        await asyncio.sleep(random.uniform(0.005, 0.02))  # noqa: S311 - spreading load, no secret
        return self.left_s > 0


class Requests:
    """A stream of requests that can be begun again: what was given out is kept until it is too much."""

    def __init__(
        self,
        source: AsyncIterable[Any] | Iterable[Any],
        is_last: Callable[[Any], bool] | None = None,
        *,
        most_kept_bytes: int = _MOST_KEPT_BYTES,
    ) -> None:
        self._source = aiter(source if isinstance(source, AsyncIterable) else _each(source))
        self._is_last = is_last
        self._most_kept_bytes = most_kept_bytes
        self._turn = asyncio.Lock()
        self._kept: list[Any] = []
        self._kept_bytes = 0
        self._dropped = 0
        self._attempt = 0
        self._failure: BaseException | None = None
        self.may_be_whole = is_last is None
        """Whether enough was given out for the call to be carried out."""

    @property
    def can_begin_again(self) -> bool:
        return self._dropped == 0 and self._failure is None

    async def begin(self) -> AsyncIterator[Any]:
        """All requests, from the first. What an earlier attempt still waits for is not lost: it is kept for this one."""
        self._attempt += 1
        self.may_be_whole = self._is_last is None
        mine, position = self._attempt, 0
        while True:
            async with self._turn:
                is_new = mine == self._attempt and position == self._dropped + len(self._kept)
                has_more = await self._read() if is_new else True
                if mine != self._attempt or not has_more:
                    return
                request = self._kept[position - self._dropped]
                position += 1
                self.may_be_whole = self.may_be_whole or (self._is_last is not None and self._is_last(request))
                self._drop_before(position)
            yield request

    async def _read(self) -> bool:
        """Reads one more from the source; False at its end."""
        if self._failure is not None:
            raise self._failure
        try:
            request = await anext(self._source, None)
        except BaseException as error:
            self._failure = error
            raise
        if request is not None:
            self._kept.append(request)
            self._kept_bytes += request.ByteSize()
        return request is not None

    def _drop_before(self, position: int) -> None:
        if self._kept_bytes > self._most_kept_bytes:
            del self._kept[: position - self._dropped]
            self._dropped = position


async def _each(requests: Iterable[Any]) -> AsyncIterator[Any]:
    for request in requests:
        yield request
