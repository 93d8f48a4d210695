"""What a bad file is, and has to become."""

from collections.abc import Callable
from dataclasses import dataclass

WORDS = "The ferry to Norderney leaves at seven"
MANY = 100_000


@dataclass(frozen=True)
class BadFile:
    """A bad file. `reason` is the only right refusal; `keeps` is what a reading of it must hold; with both, either will do."""

    name: str
    make: Callable[[], bytes]
    reason: str = ""
    keeps: str = ""
