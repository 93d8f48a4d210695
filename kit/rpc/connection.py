"""What a channel stands on: the gRPC channel that calls are made on, whether it has a server, and since when it has none.

Another gRPC channel is made beside it, and takes over once it is connected, in two cases. Its certificates have changed: in Python
they are fixed when it is made (grpc/grpc#41779), and once it is connected the servers take the new ones. Or it has had no server
for a while: gRPC looks a name that leads nowhere up more and more seldom, after half a minute every ten seconds and at last every
two minutes, and the name of a headless Service leads nowhere while none of its pods is ready. Calls in hand end on the channel that
they began on, which is closed after the last.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import grpc
import structlog

from kit.file_source import RECHECK_AFTER_S
from kit.network.tls import Certificates, CertificateSource
from kit.rpc.addresses import resolved

LOOKED_UP_EVERY_S = 5.0
"""By a channel without a server. A restart takes about as long."""
_log = structlog.get_logger()


@dataclass(frozen=True)
class Method:
    """A method as generated code asks for it: `kind` is "unary_unary", "unary_stream" or "stream_unary"."""

    kind: str
    name: str
    arguments: Sequence[Any]
    options: dict[str, Any]


class InnerChannel:
    """A gRPC channel and the number of calls on it."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self._methods: dict[str, Callable[..., Any]] = {}
        self._calls = 0
        self._unused = asyncio.Event()
        self._unused.set()

    @contextmanager
    def using(self, method: Method) -> Iterator[Callable[..., Any]]:
        """Makes calls of that method within the block, which ends after the last of their answers."""
        self._calls += 1
        self._unused.clear()
        try:
            yield self._callable(method)
        finally:
            self._calls -= 1
            if not self._calls:
                self._unused.set()

    def _callable(self, method: Method) -> Callable[..., Any]:
        if method.name not in self._methods:
            make = getattr(self.channel, method.kind)
            self._methods[method.name] = make(method.name, *method.arguments, **method.options)
        return self._methods[method.name]

    async def close_after_use(self) -> None:
        """Returns after the last call; at once, with the calls in hand cut off, when cancelled."""
        try:
            await self._unused.wait()
        finally:
            await self.channel.close()


class Connection:
    """The way to an address. `make` makes a gRPC channel, with those certificates if there are any."""

    def __init__(
        self,
        make: Callable[[Certificates | None], grpc.aio.Channel],
        address: str,
        patience_s: float,
        *,
        certificates: CertificateSource | None = None,
        looked_up_every_s: float = LOOKED_UP_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._address = address
        self._patience_s = patience_s
        self._certificates = certificates
        self._looked_up_every_s = looked_up_every_s
        self._clock = clock
        self._made_with = self._latest()
        self.inner = InnerChannel(make(self._made_with))
        """For new calls."""
        self._is_ready = asyncio.Event()
        self._lost_at: float | None = None

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Notes each change, and follows the certificates, within the block; closes everything at its end."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait({watching})
            await self.inner.channel.close()

    async def _watch(self) -> None:
        async with asyncio.TaskGroup() as group:
            noting = group.create_task(self._note_changes())
            while True:
                successor = await self._successor()
                noting.cancel()
                group.create_task(self.inner.close_after_use())
                self.inner = successor
                noting = group.create_task(self._note_changes())
                _log.info("channel_renewed", address=self._address)

    async def _note_changes(self) -> None:
        channel = self.inner.channel
        while True:
            await channel.wait_for_state_change(self._look())

    async def _successor(self) -> InnerChannel:
        """A channel that is connected and is to take over: with the latest certificates, once they have changed, or to servers that
        this one has not found."""
        pause_s = min(RECHECK_AFTER_S, self._looked_up_every_s)
        while True:
            while not (self._is_outdated() or self._is_long_lost()):  # noqa: ASYNC110 - files offer no event to wait on
                await asyncio.sleep(pause_s)
            latest, began = self._latest(), self._clock()
            async with AsyncExitStack() as stack:
                channel = await stack.enter_async_context(self._make(latest))
                while self._latest() is latest and self._may_be_succeeded(began):
                    if await _is_connected(channel, pause_s):
                        self._made_with = latest
                        stack.pop_all()
                        return InnerChannel(channel)

    def _may_be_succeeded(self, began: float) -> bool:
        """Whether a channel that was made then is still good for it: one that did not connect is as slow to look again as its
        predecessor."""
        if self._is_long_lost():
            return self._clock() - began < self._looked_up_every_s
        return self._is_outdated()

    def _latest(self) -> Certificates | None:
        return self._certificates.current() if self._certificates else None

    def _is_outdated(self) -> bool:
        return self._latest() is not self._made_with

    def _is_long_lost(self) -> bool:
        return self._lost_at is not None and self._clock() - self._lost_at >= self._looked_up_every_s

    def _look(self, *, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        state = self.inner.channel.get_state(try_to_connect)
        if state is grpc.ChannelConnectivity.READY:
            self._lost_at = None
            self._is_ready.set()
        else:
            self._is_ready.clear()
            if self._lost_at is None and state is not grpc.ChannelConnectivity.IDLE:
                self._lost_at = self._clock()
        return state

    async def ready(self, within_s: float | None) -> bool:
        """Waits for a server as long as the channel is patient, counted from when it lost the last one, and no longer than
        `within_s`. Whether there is one."""
        self._look(try_to_connect=True)
        now = self._clock()
        left_s = (now if self._lost_at is None else self._lost_at) + self._patience_s - now
        try:
            async with asyncio.timeout(max(0.0, left_s if within_s is None else min(left_s, within_s))):
                await self._is_ready.wait()
        except TimeoutError:
            return False
        return True

    async def replicas(self) -> int:
        """How many servers there are behind the channel's address."""
        return len(await resolved(self._address))


async def _is_connected(channel: grpc.aio.Channel, within_s: float) -> bool:
    """Whether the channel finds a server in that time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await channel.channel_ready()
            return True
    return False
