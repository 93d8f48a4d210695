"""Which addresses outside a user may have us connect to. A URL that a user brings must not reach what only this network may reach:
this machine, its neighbours, the metadata service of a cloud (server-side request forgery, CWE-918).

The name in a URL is looked up, and every address that it has is judged, when the URL is taken and again whenever it is connected
to; the connection then goes to the very address that was judged, so that a name server cannot answer differently in between (DNS
rebinding). Private networks can be allowed by the operator.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from kit.errors import FailedPrecondition, InvalidArgument, Unavailable
from kit.network.hosts import ascii_host

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
LookUp = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name and port."""

_LOOK_UP_TIMEOUT_S = 5.0
_LOOK_UPS_AT_ONCE = 4
_SCHEMES = {"http": 80, "https": 443}
_UNUSUAL_NUMBER = re.compile(r"(?i)^(0x[0-9a-f]*|[0-9]+)$")
"""A last label like this makes a name an IPv4 address in some spelling (WHATWG URL, "ends in a number")."""

_PUBLIC_V6 = ipaddress.ip_network("2000::/3")
"""All that was ever given out (IANA). What leads to IPv4 by another way (::ffff:0:0/96, 64:ff9b::/96) is outside of it."""

_NOT_PUBLIC = tuple(
    ipaddress.ip_network(network)
    for network in (
        "168.63.129.16/32",  # Azure's own services, metadata among them
        "192.0.0.0/24",  # protocol assignments, with the metadata of Oracle's cloud
        "192.88.99.0/24",  # relays to 6to4
        "2001::/23",  # protocol assignments, Teredo among them: an IPv4 address inside
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",  # documentation
    )
)
"""What the standard library takes to be global. Sources: the IANA special-purpose address registries."""


class UrlRefused(InvalidArgument):
    """The URL is not one that a user may have us connect to."""

    reason = "URL_REFUSED"


class AddressRefused(FailedPrecondition):
    """The name leads to an address that a user may not have us connect to."""

    reason = "ADDRESS_REFUSED"


class NameNotFound(Unavailable):
    """The name could not be looked up."""

    reason = "NAME_NOT_FOUND"


@dataclass(frozen=True)
class Place:
    """What a URL leads to."""

    scheme: str
    host: str
    port: int


class EgressGuard:
    """Judges URLs and addresses. `allowed` are networks that may be connected to although they are not public."""

    def __init__(
        self, allowed: Iterable[IpNetwork] = (), *, look_up: LookUp | None = None, permits_public: bool = True
    ) -> None:
        """`permits_public`: whether the public internet may be connected to beside `allowed`."""
        self._allowed = tuple(allowed)
        self._look_up = look_up or _Resolver().look_up
        self._permits_public = permits_public

    def only_listed(self) -> "EgressGuard":
        """A guard that permits the networks of the operator alone, for what travels in clear text."""
        return EgressGuard(self._allowed, look_up=self._look_up, permits_public=False)

    async def check(self, url: str) -> Place:
        """Raises UrlRefused, AddressRefused or NameNotFound."""
        place = place_of(url)
        await self.addresses(place.host, place.port)
        return place

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of `host` that may be connected to; never none. Raises AddressRefused or NameNotFound."""
        try:
            async with asyncio.timeout(_LOOK_UP_TIMEOUT_S):
                found = await self._look_up(host, port)
        except (OSError, UnicodeError, TimeoutError) as error:
            raise NameNotFound(f"{host} cannot be found ({str(error) or 'no answer'}); check the URL") from error
        permitted = [address for address in found if self.permits(address)]
        if not permitted:
            raise AddressRefused(
                f"{host} is not on the public internet, and this installation connects users to nothing else; an operator can "
                "allow its network in GROUNDWORK_EGRESS_ALLOWED_NETWORKS"
            )
        return permitted

    async def is_listed(self, host: str, port: int) -> bool:
        """Whether every address of `host` lies in a network that the operator lists. Raises AddressRefused or NameNotFound."""
        return all(self._lists(ipaddress.ip_address(address)) for address in await self.addresses(host, port))

    def _lists(self, ip: IpAddress) -> bool:
        ip = getattr(ip, "ipv4_mapped", None) or ip
        return any(ip in network for network in self._allowed)

    def permits(self, address: str) -> bool:
        """Whether an IP address may be connected to."""
        try:
            ip = ipaddress.ip_address(address)
        except ValueError:
            return False
        ip = getattr(ip, "ipv4_mapped", None) or ip
        if getattr(ip, "scope_id", None):
            return False
        return self._lists(ip) or (self._permits_public and is_public(ip))


def is_public(ip: IpAddress) -> bool:
    """Whether an address is one of the public internet, for everybody."""
    if isinstance(ip, ipaddress.IPv6Address) and ip not in _PUBLIC_V6:
        return False
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _NOT_PUBLIC)


def place_of(url: str) -> Place:
    """Scheme, host and port of a URL. A host in another alphabet is in its ASCII form, which is what is asked for and what the
    rules of operators are held against. Raises UrlRefused."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, ascii_host(parts.hostname or "").rstrip(".")
    except ValueError as error:
        raise UrlRefused(f"the URL cannot be read ({error})") from None
    if parts.scheme not in _SCHEMES:
        raise UrlRefused("the URL must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise UrlRefused("the URL must not carry a user or a password; give the key by itself")
    if not host or not url.isprintable() or any(map(str.isspace, url)) or "\\" in url or port == 0:
        raise UrlRefused("the URL has no usable host, as in https://api.example.com/v1")
    if _UNUSUAL_NUMBER.match(host.rpartition(".")[2]) and not _is_plain_address(host):
        raise UrlRefused("the URL's host is a number; write an IP address as four decimal numbers")
    return Place(parts.scheme, host, port or _SCHEMES[parts.scheme])


def parse_networks(text: str) -> tuple[IpNetwork, ...]:
    """Networks in CIDR notation with commas between them. Raises ValueError."""
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())


class GuardedBackend:
    """The network of an HTTP connection pool (httpcore's AsyncNetworkBackend): connects to judged addresses, and to those only."""

    def __init__(self, inner: Any, guard: EgressGuard) -> None:
        self._inner = inner
        self._guard = guard

    async def connect_tcp(self, host: str, port: int, **options: Any) -> Any:
        """Tries the addresses of the host in turn. TLS goes on to ask for the host's name."""
        failure: Exception | None = None
        for address in await self._guard.addresses(host, port):
            try:
                return await self._inner.connect_tcp(address, port, **options)
            except Exception as error:
                failure = error
        assert failure is not None
        raise failure

    async def connect_unix_socket(self, path: str, **_: Any) -> Any:
        raise AddressRefused(f"{path} is a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


def _is_plain_address(host: str) -> bool:
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True


class _Resolver:
    """Looks names up in threads of its own: a name server that does not answer holds a thread for long, and users choose names."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_LOOK_UPS_AT_ONCE, thread_name_prefix="look-up")

    async def look_up(self, host: str, port: int) -> Sequence[str]:
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, ask)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))
