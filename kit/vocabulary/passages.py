"""Where a passage stands, in the words in which models and tools are shown it: its document, page, headings and, of a message, its
channel, author, date and id. What a passage is about often stands there and nowhere in its text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

ORIGIN_FIELDS = ("channel", "author", "date", "message_id", "read_at")
"""Metadata of a passage that says who wrote it, when and where."""
_LABELS = {"message_id": "message id", "read_at": "read at"}
_NAME_CHARACTERS = 200
_HEADINGS = 4
"""The innermost: those further out say less of a passage."""
_HEADINGS_CHARACTERS = 240


class Placed(Protocol):
    """What is known of the place of a passage."""

    @property
    def document_name(self) -> str: ...
    @property
    def page(self) -> int: ...
    @property
    def heading_path(self) -> Sequence[str]: ...


def place_of(passage: Placed, origin: Mapping[str, str]) -> str:
    """One line: `handbook.pdf, page 3; Fleet > Petrel; author: Ann`. `origin` may have any of ORIGIN_FIELDS. All of it is as its
    documents say, bounded in length."""
    return "; ".join(_parts(passage, origin))


def subject_of(heading_path: Sequence[str]) -> str:
    """The headings above a passage in one line; empty where there are none."""
    path = " > ".join(innermost(heading_path))
    return path if len(path) <= _HEADINGS_CHARACTERS else f"…{path[1 - _HEADINGS_CHARACTERS :]}"


def innermost(heading_path: Sequence[str]) -> list[str]:
    """The last few headings of a path, each in one line."""
    return [one_line(heading) for heading in heading_path[-_HEADINGS:]]


def one_line(name: str) -> str:
    """A name without line breaks, shortened where it is very long."""
    words = " ".join(name.split())
    return words if len(words) <= _NAME_CHARACTERS else f"{words[: _NAME_CHARACTERS - 1]}…"


def _parts(passage: Placed, origin: Mapping[str, str]) -> Iterator[str]:
    page = f", page {passage.page}" if passage.page else ""
    yield f"{one_line(passage.document_name)}{page}"
    if subject := subject_of(passage.heading_path):
        yield subject
    for field in ORIGIN_FIELDS:
        if value := origin.get(field):
            yield f"{_LABELS.get(field, field)}: {one_line(value)}"
