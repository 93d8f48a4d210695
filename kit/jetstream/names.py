"""The addresses of the message store's servers. A connection that is lost has to be made again also while no name server answers:
in a cluster the only one may have run on the machine that is lost."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import ParseResult

from nats.aio.transport import TcpTransport

_LOOK_UP_TIMEOUT_S = 1.0
"""A name server takes a millisecond. One that has gone takes the resolver of the C library ten seconds and more."""
_CLOSED_WITHIN_S = 1.0
LookUp = Callable[[str, int], Awaitable[Sequence[Any]]]


async def _look_up(host: str, port: int) -> Sequence[Any]:
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


class KnownAddresses:
    """Looks names up, and remembers what came of it for when nothing does."""

    def __init__(self, look_up: LookUp = _look_up, *, timeout_s: float = _LOOK_UP_TIMEOUT_S) -> None:
        self._look_up = look_up
        self._timeout_s = timeout_s
        self._known: dict[str, str] = {}
        self._pending: dict[str, asyncio.Task[None]] = {}

    async def of(self, host: str, port: int) -> str:
        """The address of the host now, or else the last that it had. Raises OSError where there is none."""
        pending = self._pending.get(host)
        if pending is None:
            pending = self._pending[host] = asyncio.create_task(self._learn(host, port))
            pending.add_done_callback(lambda _: self._pending.pop(host, None))
        # Not cancelled when it takes long: the resolver would go on, and every further try would begin another.
        await asyncio.wait({pending}, timeout=self._timeout_s)
        if host not in self._known:
            raise OSError(f"the name {host} cannot be looked up")
        return self._known[host]

    async def _learn(self, host: str, port: int) -> None:
        try:
            found = await self._look_up(host, port)
        except OSError:
            return
        if found:
            self._known[host] = str(found[0][4][0])


class Transport(TcpTransport):
    """A connection to a server by its name."""

    def __init__(self, addresses: KnownAddresses) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # the library leaves it untyped
        self._addresses = addresses

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        address = await self._addresses.of(uri.hostname or "", uri.port or 0)
        place = f"[{address}]:{uri.port}" if ":" in address else f"{address}:{uri.port}"
        await super().connect(uri._replace(netloc=place), buffer_size, connect_timeout)

    async def wait_closed(self) -> None:
        # The stream on which a TLS handshake fails never hears that its connection has gone: it would be waited for for ever.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSED_WITHIN_S):
                await super().wait_closed()  # type: ignore[no-untyped-call] # the library leaves it untyped
