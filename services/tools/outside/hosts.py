"""Names of hosts that an operator allows: exact, or all below a name."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kit.network.egress import Place, UrlRefused, place_of
from kit.network.hosts import ascii_host

_WILDCARD = "*."
_WEB_PATTERN = re.compile(r"(?:\*|(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::[0-9]{1,5})?", re.IGNORECASE)
_WEB_PORTS = (80, 443)
_PATTERN = re.compile(r"(?P<scheme>https?://)?(?P<wildcard>\*\.)?(?P<rest>[^/?#@*\s]+)")


@dataclass(frozen=True)
class HostPattern:
    """An allowed host: the scheme and the port are part of it."""

    name: str
    """As the operator wrote it."""
    place: Place
    is_wildcard: bool
    """Whether the rule covers all names below `place.host`, and not the host itself."""

    def matches(self, place: Place) -> bool:
        """Whether `place` is what the operator allowed."""
        own = self.place
        if (place.scheme, place.port) != (own.scheme, own.port):
            return False
        host = place.host.lower()
        return host.endswith(f".{own.host}") if self.is_wildcard else host == own.host


def parse_host_patterns(names: Iterable[str]) -> tuple[HostPattern, ...]:
    """From `api.example.com`, `*.example.org`, `http://intern.example.com:80`. Without a scheme it is https. Raises ValueError."""
    return tuple(_parse(name.strip().lower()) for name in names)


def name_is_listed(name: str, listed: Iterable[str]) -> bool:
    """Whether a domain is one of the listed ones, or below one that is listed as `*.example.com`. Case does not count."""
    name = name.lower()
    return any(
        name.endswith(pattern[1:]) if pattern.startswith(_WILDCARD) else name == pattern
        for pattern in map(str.lower, listed)
    )


def web_host_is_listed(place: Place, listed: Iterable[str]) -> bool:
    """Whether a page may be read there. `*` lists all hosts; a host without a port is listed at the usual ports of the web."""
    for pattern in listed:
        name, _, port = _in_ascii(pattern).partition(":")
        ports = (int(port),) if port else _WEB_PORTS
        if place.port in ports and (name == "*" or name_is_listed(place.host, [name])):
            return True
    return False


def check_web_hosts(listed: Iterable[str]) -> None:
    """Raises ValueError for what is no host of web_host_is_listed."""
    for pattern in listed:
        if _WEB_PATTERN.fullmatch(_in_ascii(pattern)) is None:
            raise ValueError(
                f"{pattern!r:.80} is not a host; write it as * or docs.example.com or *.example.org, with a port if need be"
            )


def _in_ascii(pattern: str) -> str:
    """A pattern with its name as name servers know it. Raises ValueError."""
    wildcard = _WILDCARD if pattern.startswith(_WILDCARD) else ""
    name, colon, port = pattern.removeprefix(wildcard).partition(":")
    return f"{wildcard}{ascii_host(name)}{colon}{port}"


def _parse(name: str) -> HostPattern:
    match = _PATTERN.fullmatch(name)
    if match is None:
        raise ValueError(
            f"{name!r:.80} is not a host; write it as api.example.com or *.example.org, with a port if need be"
        )
    try:
        place = place_of(f"{match['scheme'] or 'https://'}{match['rest']}")
    except UrlRefused as error:
        raise ValueError(f"{name!r:.80} is not a host: {error.message}") from error
    return HostPattern(name, place, is_wildcard=match["wildcard"] is not None)
