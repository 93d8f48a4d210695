"""Reading a stream for ever. The client's own ordered consumers live in the server's memory: after the server was restarted they
are found dead only 10 to 20 seconds later. This reader asks again from where it stopped as soon as the server is back."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError

from kit.errors import Unavailable
from kit.jetstream.connection import Nats
from kit.jetstream.failures import cancellation_kept, translated_errors
from kit.process.waiting import FailureLogLimit

_log = structlog.get_logger()
_RECHECK_AFTER_S = 1.0
"""How long a reader is deaf at most after the server came back."""
_RECHECKS_BEFORE_PROOF, _RECHECKS_BEFORE_PROOF_IN_CLUSTER = 10, 2
"""After so many silent rechecks the server is asked whether the consumer still exists. It is in the memory of one server of a
cluster, which may be lost without breaking the connection."""

_PROOF_TIMEOUT_S = 2.0

Subscription = JetStreamContext.PushSubscription


async def follow(
    nats_: Nats,
    stream: str,
    subject: str,
    *,
    last_per_subject: bool = False,
    after: int = 0,
    headers_only: bool = False,
) -> AsyncGenerator[Msg | None, None]:
    """Messages on `subject` in order, each once: those stored, then None once, then new ones until closed.

    With `last_per_subject` only the last stored one of each subject; with `after` only those whose sequence number is higher, of a
    stream that keeps one a subject; with `headers_only` without their data. Raises Unavailable when the server does not answer at
    the start; a server that goes away later is waited for.
    """
    policy = api.DeliverPolicy.LAST_PER_SUBJECT if last_per_subject else api.DeliverPolicy.ALL
    reader = _Reader(nats_, stream, subject, policy, after=after, headers_only=headers_only)
    await nats_.persist(f"stream {stream}", reader.begin)
    caught_up, silent = False, True
    try:
        while True:
            # Each stored message says how many are behind it; the server is asked only where none came to say so.
            if not caught_up and silent and await reader.has_caught_up():
                caught_up = True
                yield None
            message = await reader.next()
            silent = message is None
            if message is not None:
                yield message
                if not caught_up and message.metadata.num_pending == 0:
                    caught_up = True
                    yield None
    finally:
        await reader.close()


class _Reader:
    """One reader's place in the stream, and the subscription that it has at the moment."""

    def __init__(
        self, nats_: Nats, stream: str, subject: str, policy: api.DeliverPolicy, *, after: int, headers_only: bool
    ) -> None:
        self._nats = nats_
        self._stream = stream
        self._subject = subject
        self._policy = policy
        self._headers_only = headers_only
        self._position = after
        self._subscription: Subscription | None = None
        self._connection = 0
        self._silences = 0
        self._complaints = FailureLogLimit()

    async def begin(self, timeout_s: float) -> None:
        """Subscribes within that time. Raises TimeoutError, and as `subscribe`."""
        async with asyncio.timeout(timeout_s):
            await self.subscribe()

    async def subscribe(self) -> None:
        """Begins, or goes on behind the last message. Raises Unavailable."""
        await self.close()
        self._connection = self._reconnects()
        with translated_errors(f"stream {self._stream}"):
            self._nats.require_connection()
            if self._position and await self._was_emptied():
                self._position = 0
            config = api.ConsumerConfig(deliver_policy=self._policy, headers_only=self._headers_only or None)
            if self._position:
                config.deliver_policy = api.DeliverPolicy.BY_START_SEQUENCE
                config.opt_start_seq = self._position + 1
            self._subscription = await self._nats.js.subscribe(
                self._subject, stream=self._stream, ordered_consumer=True, config=config
            )
        self._silences = 0

    async def next(self) -> Msg | None:
        """The next message, or None when there was none for a while. Raises Unavailable once we have closed the connection."""
        if self._nats.nc.is_closed:
            # The client (2.14) turns a cancellation that meets a closed connection into an error, which would be waited out here:
            # the reader would go on for ever, and keep its process from ending.
            raise Unavailable(f"stream {self._stream}: this process has closed its connection to the message store")
        if self._subscription is None or self._reconnects() != self._connection:
            await self._resubscribe()
            return None
        try:
            with cancellation_kept():
                message = await self._subscription.next_msg(timeout=_RECHECK_AFTER_S)
        except nats.errors.TimeoutError:
            await self._after_silence()
            return None
        except nats.errors.Error:
            await self.close()
            return None
        self._silences = 0
        position = message.metadata.sequence.stream
        if position <= self._position:
            return None
        self._position = position
        return message

    async def has_caught_up(self) -> bool:
        """Whether nothing that was stored is still to come, as the server says; False when it cannot be asked."""
        try:
            info = await self._consumer()
        except (Unavailable, nats.errors.Error):
            return False
        if info is None or info.num_pending or info.delivered is None:
            return False
        return not info.delivered.consumer_seq or info.delivered.stream_seq <= self._position

    async def close(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with suppress(nats.errors.Error):
                await subscription.unsubscribe()

    async def _resubscribe(self) -> None:
        began = asyncio.get_running_loop().time()
        try:
            await self.subscribe()
        except (Unavailable, nats.errors.Error) as error:
            await self._nats.servers.failed(began)
            if self._complaints.is_due():
                _log.warning("stream_cannot_be_followed", stream=self._stream, error=str(error))
            await asyncio.sleep(_RECHECK_AFTER_S)
        else:
            if self._complaints.is_over():
                _log.info("stream_followed_again", stream=self._stream)

    async def _after_silence(self) -> None:
        self._silences += 1
        is_clustered = len(self._nats.nc.servers) > 1
        if self._silences % (_RECHECKS_BEFORE_PROOF_IN_CLUSTER if is_clustered else _RECHECKS_BEFORE_PROOF):
            return
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(_PROOF_TIMEOUT_S):
                await self._consumer()
        except NotFoundError:
            await self.close()
        except (Unavailable, TimeoutError, nats.errors.Error):
            # Its server may be the one that was lost: another consumer goes on from the same place.
            await self.close()
            await self._nats.servers.failed(began)

    async def _consumer(self) -> api.ConsumerInfo | None:
        if self._subscription is None:
            return None
        with translated_errors(f"stream {self._stream}"):
            return await self._subscription.consumer_info()

    async def _was_emptied(self) -> bool:
        """Whether the stream was made anew, so that its numbers begin again."""
        info = await self._nats.js.stream_info(self._stream)
        return info.state.last_seq < self._position

    def _reconnects(self) -> int:
        return int(self._nats.nc.stats["reconnects"])
