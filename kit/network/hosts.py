"""Names in a Host header. A page that the user happens to visit can point a name of its own at this machine and then read what
answers there (DNS rebinding), so a door answers only under names that it knows."""

import ipaddress
import re

import idna

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{0,5})?", re.IGNORECASE | re.ASCII)
"""A name and a port, and nothing else: what a client sends here stands in front of links that others are shown."""


def host_name(host: str) -> str:
    """The name in a Host header, without port, lower case; IPv6 without brackets. Empty when it cannot be read."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""


def ascii_host(name: str) -> str:
    """A name of any alphabet as name servers know it (IDNA 2008, RFC 5891): two names that look alike differ in it. Raises
    ValueError for what is no name."""
    if name.isascii():
        return name
    try:
        return idna.encode(name.lower()).decode()
    except idna.IDNAError as error:
        raise ValueError(f"{name!r:.80} is no name of a host: {error}") from error


def is_loopback_name(name: str) -> bool:
    """Whether a name always means this machine, whatever a name server says."""
    address = _address(name)
    address = getattr(address, "ipv4_mapped", None) or address
    return name == "localhost" or (address is not None and address.is_loopback)


def is_loopback_address(address: str) -> bool:
    """Whether only this machine reaches a socket that is bound to an IP address. Raises ValueError for what is none."""
    ipaddress.ip_address(address)
    return is_loopback_name(address)


def is_address(name: str) -> bool:
    """Whether it is an IP address: nobody can point that elsewhere."""
    return _address(name) is not None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
