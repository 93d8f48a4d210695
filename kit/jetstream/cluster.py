"""Which server of a cluster a connection uses. A server that is cut off from the others stays up and answers pings; what tells is
that nothing written over it is acknowledged any more."""

import asyncio
import random
from collections import Counter
from typing import Any
from urllib.parse import ParseResult

import structlog
from nats.aio.client import Client, Server
from nats.errors import ConnectionReconnectingError

_log = structlog.get_logger()

_LEAVE_AFTER_S = 2.0
"""Of nothing but failures. Leaving a server that is all right costs a reconnection: the others are no worse."""
_LEAVE_AGAIN_AFTER_S = 5.0
"""An election, which moving about does not shorten, takes as long."""
_RETRY_WAIT_S = 0.2


class ServerChoice:
    """Chooses the server, and leaves it. Made before its connection, which is handed over by `connected`."""

    def __init__(self) -> None:
        self._nc: Client | None = None
        self._current = ""
        self._tries: Counter[str] = Counter()
        """Since it was connected last."""
        self.problem = ""
        """What a server or the network last said that kept us from connecting; empty once it is done."""
        self.lost_at: float | None = None
        """Since when there is no connection; None while there is one. By the loop's clock, as the rest."""
        self._connected_at = self._failing_since = self._failed_at = self._stored_at = self._stay_until = 0.0

    def connected(self, nc: Client) -> None:
        self._nc = nc
        self._current = _place(nc.connected_url) if nc.connected_url else ""
        self.problem = ""
        self._tries.clear()
        self._connected_at = asyncio.get_running_loop().time()
        self.lost_at = None

    def disconnected(self) -> None:
        """What was asked over the lost connection is never answered: its callers get an error now, not after their time-out.
        The client (2.16) has no public way to say so."""
        self.lost_at = asyncio.get_running_loop().time()
        waiting = list(self._nc._resp_map.values()) if self._nc else []
        for answer in waiting:
            if not answer.done():
                answer.set_exception(ConnectionReconnectingError())

    def next(self, servers: list[Server], _: dict[str, Any]) -> tuple[Server | None, float]:
        """The server to connect to and the seconds to wait before: each in turn, the one that was left after the others."""

        def turn(server: Server) -> tuple[int, bool, float]:
            place = _place(server.uri)
            return self._tries[place], place == self._current, random.random()  # noqa: S311 - spreads the clients, keeps no secret

        chosen = min(servers, key=turn)
        self._tries[_place(chosen.uri)] += 1
        return chosen, _RETRY_WAIT_S if self._tries[_place(chosen.uri)] > 1 else 0.0

    def stored(self) -> None:
        """Something written was acknowledged, which takes a majority of the servers."""
        self._stored_at = asyncio.get_running_loop().time()

    async def failed(self, since: float) -> None:
        """Something asked for at `since` (by the loop's clock) has had no answer. Leaves the server if it was so on this connection
        for a while, and nothing was stored meanwhile."""
        now = asyncio.get_running_loop().time()
        if since - self._failed_at > _LEAVE_AFTER_S:
            self._failing_since = since
        self._failing_since, self._failed_at = max(self._failing_since, self._stored_at, self._connected_at), now
        nc = self._nc
        if nc is None or not nc.is_connected or len(nc.servers) < 2:
            return
        if now - self._failing_since < _LEAVE_AFTER_S or now < self._stay_until:
            return
        self._stay_until = now + _LEAVE_AGAIN_AFTER_S
        _log.warning("nats_server_left", server=self._current, reason="nothing was acknowledged")
        await nc.force_reconnect()


def _place(url: ParseResult) -> str:
    """Without user and password: it is logged."""
    return f"{url.hostname}:{url.port}"
