"""Addresses that a model writes. One that it was not shown and that could carry data away is taken out, an image becomes a link,
and a tag that would fetch something becomes text: a client that renders the answer fetches nothing."""

import html
import re
from collections.abc import Callable, Collection

_STOP = r"\s<>\"'`()\[\]{}|^，。！？；：、）」』】»”’"
_BEGINS = r"(?:[a-z][a-z0-9+.-]{1,15}:[/\\]*|www\.|[/\\]{2})"
ADDRESS = re.compile(rf"{_BEGINS}[^{_STOP}]+", re.IGNORECASE)
_SCHEMES = ("http", "https", "ftp", "ws", "wss")
_DANGEROUS_SCHEMES = ("data", "javascript", "vbscript", "file", "blob")
_ENTITY = re.compile(
    r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|colon|sol|bsol|period|num|quest|equals|newline|tab);", re.IGNORECASE
)
_TAG = re.compile(
    r"<(?=/?\s*(?:a|applet|area|audio|base|bgsound|body|button|embed|form|frame|frameset|iframe|image|img|input|link|math|meta|object|"
    r"picture|portal|script|source|style|svg|table|td|track|video)\b)",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"!(?=\[)")
_TRAILING = ".,;:!?*_~"
_PENDING = re.compile(
    rf"(?:!|<[/\s]*[a-z]{{0,9}}|&[#a-z0-9]{{0,9}}|[a-z0-9+.:/\\-]{{1,20}}(?:&[#a-z0-9]{{0,9}})?|{_BEGINS}[^{_STOP}]*)$",
    re.IGNORECASE,
)
"""The end of a text that may yet become one of these."""
_LONGEST_HELD = 2_000
_SCHEME_AND_SLASHES = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?[/\\]*", re.IGNORECASE)
_PATH_BEGINS = re.compile(r"[/\\?#]")
_HAS_HOST = re.compile(r"(?:www\.|[/\\]{2})[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_LONGEST_LABEL, _MOST_LABELS = 20, 4
_LONGEST_SEGMENT = 40
_LONGEST_HOST = 60


class AddressFilter:
    """Passes a streamed text on without such addresses. Wherever the stream is cut, the whole of what comes out is the same."""

    def __init__(self, known: Callable[[], Collection[str]], *, is_strict: bool) -> None:
        """`known` gives the addresses that the model was shown; it is asked when the first address is met. Where `is_strict`, an
        unknown address with a path is taken out, too: text of others was in the prompt."""
        self._known = known
        self._is_strict = is_strict
        self._held = ""
        self.removed: list[str] = []
        """Hosts of the addresses that were taken out."""

    def feed(self, piece: str) -> str:
        """What can be shown now."""
        return self._passed(self._held + piece, is_end=False)

    def finish(self) -> str:
        """What was still held back."""
        return self._passed(self._held, is_end=True)

    def _passed(self, text: str, *, is_end: bool) -> str:
        while "&" in text and (plain := _ENTITY.sub(lambda match: html.unescape(match[0]), text)) != text:
            text = plain
        pending = None if is_end else _PENDING.search(text, max(0, len(text) - _LONGEST_HELD))
        cut = pending.start() if pending else len(text)
        ready, self._held = text[:cut], text[cut:]
        if ":" in ready or "/" in ready or "\\" in ready or "." in ready:
            ready = ADDRESS.sub(self._checked, ready)
        return _TAG.sub("< ", _IMAGE.sub("! ", ready))

    def _checked(self, match: re.Match[str]) -> str:
        address = match[0].rstrip(_TRAILING)
        if not self._may_carry_data(address):
            return match[0]
        host = host_of(address)
        self.removed.append(host)
        return f"address removed: {host}{match[0][len(address) :]}"

    def _may_carry_data(self, address: str) -> bool:
        scheme, colon, _ = address.partition(":")
        scheme = scheme.lower() if colon else ""
        if scheme in _DANGEROUS_SCHEMES:
            return True
        is_address = scheme in _SCHEMES or _HAS_HOST.match(address.removeprefix(scheme + colon)) is not None
        return is_address and address not in self._known() and carries_data(address, is_strict=self._is_strict)


def addresses_in(text: str) -> set[str]:
    """The addresses that stand in a text."""
    return {match[0].rstrip(_TRAILING) for match in ADDRESS.finditer(text)}


def host_of(address: str) -> str:
    """The name that an address is of, without what may be data in it."""
    labels = _parts(address)[0].rpartition("@")[2].partition(":")[0].split(".")
    kept = labels[-3:] if all(len(each) <= _LONGEST_LABEL for each in labels[-3:]) else labels[-2:]
    return ".".join(kept)[-_LONGEST_HOST:]


def carries_data(address: str, *, is_strict: bool) -> bool:
    """Whether asking for the address could give something away."""
    host, path = _parts(address)
    labels = host.partition(":")[0].split(".")
    if "@" in host or len(labels) > _MOST_LABELS or any(len(each) > _LONGEST_LABEL for each in labels):
        return True
    if is_strict:
        return path not in ("", "/")
    return any(sign in path for sign in "?#%") or any(len(each) > _LONGEST_SEGMENT for each in path.split("/"))


def _parts(address: str) -> tuple[str, str]:
    """The host, with its port and user, and what follows."""
    rest = _SCHEME_AND_SLASHES.sub("", address)
    begins = _PATH_BEGINS.search(rest)
    return (rest[: begins.start()], rest[begins.start() :]) if begins else (rest, "")
