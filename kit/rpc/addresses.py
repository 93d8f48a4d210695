"""Addresses of services, as settings write them: one "host:port", whose name may stand for many servers, or several with commas."""

import asyncio
import socket
from collections.abc import Sequence

from kit.errors import InvalidArgument, Unavailable
from kit.network.hosts import is_address


def addresses(text: str) -> list[str]:
    """The addresses in a setting, in their order: "host:port" each, or one gRPC target with a scheme ("unix:…", "dns:///…").

    Raises InvalidArgument for one that is neither.
    """
    if "://" in text or text.startswith("unix:"):
        return [text]
    listed = [each.strip() for each in text.split(",")]
    for each in listed:
        host, _, port = each.rpartition(":")
        if not host or not port.isdecimal() or (":" in host and not host.startswith("[")):
            raise InvalidArgument(
                f"{text!r} is no address of a service: write host:port (an IPv6 address in brackets), or several with commas"
            )
    return listed


def target(text: str) -> str:
    """The target for gRPC. It resolves one name, or takes several IP addresses of one family.

    Raises InvalidArgument for several that are not such.
    """
    listed = addresses(text)
    if len(listed) == 1:
        return listed[0] if "://" in text or text.startswith("unix:") else f"dns:///{listed[0]}"
    return f"{_family(text, listed)}:{','.join(listed)}"


def host(text: str) -> str:
    """The host of the first of these addresses, an IPv6 address in brackets; of a local socket "localhost"."""
    first = addresses(text)[0]
    return "localhost" if first.startswith("unix:") else first.rpartition("/")[2].rpartition(":")[0]


async def resolved(text: str) -> list[str]:
    """Host and port of each server: a headless service's name stands for all its pods. Raises Unavailable."""
    found = [each for address in addresses(text) for each in await _servers(address)]
    return list(dict.fromkeys(found))


async def _servers(address: str) -> list[str]:
    """IPv4 where there is any, as a name may stand for the same server twice."""
    host, _, port = address.rpartition(":")
    if "://" in address or address.startswith("unix:") or is_address(host):
        return [address]
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        raise Unavailable(f"the address {address} cannot be resolved: {error}") from error
    v4 = [f"{where[0]}:{port}" for family, *_, where in found if family == socket.AF_INET]
    v6 = [f"[{where[0]}]:{port}" for family, *_, where in found if family == socket.AF_INET6]
    return v4 or v6


def _family(text: str, listed: Sequence[str]) -> str:
    hosts = [each.rpartition(":")[0] for each in listed]
    if all(is_address(host) for host in hosts):
        return "ipv4"
    if all(is_address(host.strip("[]")) and host.startswith("[") for host in hosts):
        return "ipv6"
    raise InvalidArgument(
        f"{text!r} lists several addresses of a service: write all as IPv4 or all as IPv6 addresses, or one DNS name for all"
    )
