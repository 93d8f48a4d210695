"""The headers of a message: they stand above its text, and are no text to quote. The date of a message is not that of what it is
about, and its subject answers no question that repeats it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from services.ingest.reading.models import Block, BlockKind

SHOWN = ("From", "To", "Cc", "Date", "Subject")
MAX_HEADER_CHARS = 1000
_PEOPLE = ("From", "To", "Cc")
_MAX_ABOVE_CHARS = 200
"""Of a header that is repeated with each passage. A longer list of people is text."""


def header_lines(headers: Mapping[str, str]) -> list[Block]:
    """All headers as text: of a message that has no other."""
    return [Block(BlockKind.LIST, f"{name}: {headers[name]}") for name in SHOWN if headers[name]]


def people_lines(headers: Mapping[str, str]) -> list[Block]:
    """Who wrote a message, which is asked for as often as what it says, and whom it went to where those are many."""
    shown = (name for name in _PEOPLE if name == "From" or len(headers[name]) > _MAX_ABOVE_CHARS)
    return [Block(BlockKind.LIST, f"{name}: {headers[name]}") for name in shown if headers[name]]


def below_headers(
    blocks: Sequence[Block], headers: Mapping[str, str], metadata: Mapping[str, str], *, has_heading: bool = False
) -> Iterator[Block]:
    """The blocks of a message with its fields to filter by, below its headers. `has_heading`: its subject is one already."""
    shown = (name for name in SHOWN[:-1] if 0 < len(headers[name]) <= _MAX_ABOVE_CHARS)
    sent = "; ".join(f"{name}: {headers[name]}" for name in shown)
    subject = "" if has_heading else headers["Subject"][:_MAX_ABOVE_CHARS]
    above = tuple(name for name in (sent, subject) if name)
    yield from (replace(block, metadata=metadata, context=above) for block in blocks)
