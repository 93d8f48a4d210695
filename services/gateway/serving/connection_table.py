"""How many connections there may be, how many of one client, and who has to go when there are too many.

A connection that waits for a request may be closed at any time to make room: for a newcomer from its own address when that has its
share, for anybody when all places are taken. One with a request in hand is never cut off for another: then the newcomer is refused.
"""

import ipaddress
import resource
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

import structlog

from kit.errors import GroundworkError
from kit.process.settings import Networks
from services.gateway.errors import TooManyConnections, TooManyFromAddress
from services.gateway.metrics import CONNECTIONS
from services.gateway.settings import GatewaySettings

_log = structlog.get_logger()
_OWN_DESCRIPTORS = 128
"""File descriptors kept back for what is no client: channels to services, logs, the operator's door. Some 30 are in use."""
_FEWEST, _MOST = 16, 4096
"""Bounds of the number that is derived. An event stream costs about 50 KB: 4 096 of them, 200 MB."""
_SPARE = 32
"""Connections beyond the limit that are read from, to answer that there are too many, or how the system is."""
_IPV6_CLIENT_BITS = 64
"""A client commands the whole /64 that it was given (RFC 6177)."""


@dataclass(frozen=True)
class ConnectionLimits:
    """What a client may take; see settings.py for the reasons."""

    max_connections: int
    max_per_address: int
    proxies: Networks
    head_timeout_s: float
    idle_timeout_s: float
    send_timeout_s: float


def connection_limits(settings: GatewaySettings) -> ConnectionLimits:
    """The limits in force."""
    most, room = _most(settings), _room()
    if settings.max_connections and settings.max_connections > room:
        _log.warning("max_connections_lowered", configured=settings.max_connections, limit=room)
    return ConnectionLimits(
        max_connections=most,
        max_per_address=settings.max_connections_per_address or _half(most),
        proxies=settings.proxies,
        head_timeout_s=settings.request_head_timeout_s,
        idle_timeout_s=settings.connection_idle_timeout_s,
        send_timeout_s=settings.send_timeout_s,
    )


def stream_limit(settings: GatewaySettings) -> int:
    """How many event streams one tenant may have open here."""
    most = _most(settings)
    return min(most, settings.max_event_streams or _half(most))


def _most(settings: GatewaySettings) -> int:
    """As many connections as are configured and the limit of open files (RLIMIT_NOFILE) has room for."""
    room = _room()
    return min(room, settings.max_connections or _MOST)


def _room() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(_FEWEST, soft - _OWN_DESCRIPTORS - _SPARE)


def _half(most: int) -> int:
    return max(1, most // 2)


def origin_of(address: str, proxies: Networks) -> str | None:
    """The client behind an address, as a network. None for an address that stands for many: this machine's own, where users and
    sidecars come from, and a proxy's."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return None
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.is_loopback or any(ip in network for network in proxies):
        return None
    return str(ipaddress.ip_network((ip, ip.max_prefixlen if ip.version == 4 else _IPV6_CLIENT_BITS), strict=False))


class OpenConnection(Protocol):
    """A connection, as far as the table knows it."""

    origin: str | None

    def close(self, why: str) -> None:
        """Ends it."""
        ...


class ConnectionTable:
    """All connections of the server, and which of them wait, longest first."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._all: set[OpenConnection] = set()
        self._waiting: dict[OpenConnection, None] = {}
        self._of_origin: Counter[str] = Counter()
        self.is_draining = False
        """Shutting down: each answer says that it is the last one of its connection."""
        self.is_closed = False
        """No connection comes in any more; those that are here end once they have their answers."""

    def enter(self, connection: OpenConnection) -> GroundworkError | None:
        """Counts a new connection and makes room for it. Returns the refusal when there is no room: it may ask for health only."""
        self._all.add(connection)
        CONNECTIONS.set(len(self._all))
        if connection.origin is not None:
            self._of_origin[connection.origin] += 1
            if self._of_origin[connection.origin] > self.limits.max_per_address:
                return None if self._made_room(connection.origin) else _from_address(connection.origin, self.limits)
        if len(self._all) > self.limits.max_connections:
            return None if self._made_room() else overcrowded()
        return None

    def _made_room(self, origin: str | None = None) -> bool:
        """Closes the connection that has waited longest, of all or of those of one client; False when none waits."""
        longest = next((each for each in self._waiting if origin is None or each.origin == origin), None)
        if longest is None:
            return False
        self.leave(longest)
        longest.close("evicted")
        return True

    @property
    def is_overrun(self) -> bool:
        """Whether there are more connections than can even be read from."""
        return len(self._all) > self.limits.max_connections + _SPARE

    def leave(self, connection: OpenConnection) -> None:
        if connection in self._all and connection.origin is not None:
            self._of_origin[connection.origin] -= 1
            if not self._of_origin[connection.origin]:
                del self._of_origin[connection.origin]
        self._all.discard(connection)
        self._waiting.pop(connection, None)
        CONNECTIONS.set(len(self._all))

    def wait(self, connection: OpenConnection) -> None:
        """The connection waits from now on."""
        if connection in self._all:
            self._waiting.setdefault(connection)

    def busy(self, connection: OpenConnection) -> None:
        """A request is in hand: the connection is not to be closed for another."""
        self._waiting.pop(connection, None)


def overcrowded() -> GroundworkError:
    """The refusal when all places are taken."""
    return TooManyConnections(
        "this gateway has as many connections as it takes; close some, or wait a moment and try again. The operator may raise "
        "GROUNDWORK_MAX_CONNECTIONS, and the limit of open files (ulimit -n) with it"
    )


def _from_address(origin: str, limits: ConnectionLimits) -> GroundworkError:
    return TooManyFromAddress(
        f"{origin} has {limits.max_per_address} connections at work, as many as one address may have; close some, or wait until "
        "one ends. If it is a proxy that many clients share, the operator lists it in GROUNDWORK_PROXIES; otherwise "
        "GROUNDWORK_MAX_CONNECTIONS_PER_ADDRESS may be raised"
    )
