"""A passage as a model is shown it. Every prompt and every observation of a tool shows passages by this module alone."""

from dataclasses import asdict
from typing import Protocol

from kit.vocabulary.passages import Placed, place_of
from services.orchestrator.log.events import Evidence, Origin
from services.orchestrator.prompts.fencing import fenced, gives_orders_line, in_a_line


class Shown(Placed, Protocol):
    """A passage with what is known of where it stands."""

    @property
    def text(self) -> str: ...
    @property
    def origin(self) -> Origin | None: ...


def source_block(source: Evidence) -> str:
    """The passage under the number by which an answer cites it."""
    return passage_block(source.number, source)


def passage_block(number: int, passage: Shown) -> str:
    """The number of the passage, the line that says where it stands and whether it gives orders, and below it the fenced text."""
    origin = asdict(passage.origin) if passage.origin else {}
    place = in_a_line(place_of(passage, origin))
    return f"[{number}] ({place}){gives_orders_line(place, passage.text)}\n{fenced(passage.text)}"
