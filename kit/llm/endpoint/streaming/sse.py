"""The lines of a stream of server-sent events. Chat APIs send each event as one `data:` line."""

from collections.abc import Iterator
from dataclasses import dataclass

_FIELDS = ("data", "error", "event", "id", "retry")
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class Line:
    """One line. `field` is empty for what is no event stream at all (HTML, plain JSON); comments have the field ":"."""

    field: str
    value: str


class LineReader:
    """Cuts bytes into lines. Bytes that are no UTF-8 are replaced."""

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def held_bytes(self) -> int:
        """Length of the line that has not ended yet."""
        return len(self._held)

    def feed(self, data: bytes) -> Iterator[Line]:
        """The lines that have ended, without empty ones."""
        searched = len(self._held)
        self._held += data
        start = 0
        while (end := self._held.find(b"\n", max(start, searched))) >= 0:
            if (line := _parsed(self._held[start:end])) is not None:
                yield line
            start = end + 1
        del self._held[:start]

    def finish(self) -> Iterator[Line]:
        """A last line without its end."""
        held, self._held = self._held, bytearray()
        if (line := _parsed(held)) is not None:
            yield line


def _parsed(raw: bytearray) -> Line | None:
    text = raw.decode(errors="replace").lstrip(_BYTE_ORDER_MARK).rstrip("\r")
    if not text.strip():
        return None
    if text.startswith(":"):
        return Line(":", text[1:])
    name, colon, value = text.partition(":")
    if not colon or name not in _FIELDS:
        return Line("", text)
    return Line(name, value.removeprefix(" "))
