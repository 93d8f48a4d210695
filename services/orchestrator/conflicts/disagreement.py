"""What it means that sources disagree: two or more values for the one thing that a question asks for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

WORDING, MODEL = "wording", "model"
"""How a disagreement was found: by sentences of the same wording, or by a model that has compared the passages."""


class Source(Protocol):
    """A passage that may disagree with another; `number` is what a citation says."""

    @property
    def number(self) -> int: ...

    @property
    def document_id(self) -> str: ...

    @property
    def document_name(self) -> str: ...

    @property
    def heading_path(self) -> Sequence[str]: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class Value:
    """What one passage says. Spans are characters of its text."""

    source: int
    """Number of the passage in the evidence set."""
    text: str
    start: int
    end: int
    unit_start: int
    """The sentence or row that holds the value."""
    unit_end: int


@dataclass(frozen=True)
class Disagreement:
    """Values that cannot all be right."""

    what: str
    """The statement that the passages share, with a gap for the value; of a row, its name and column."""
    values: tuple[Value, ...]
    """One for each value that is said, at least two."""
    found_by: str = WORDING
