"""What is counted under limits, and how it is counted for all processes together."""

from dataclasses import dataclass
from typing import Protocol

from kit.limits.rules import Per, What, Whose

UNITS = {What.DOLLARS: 1_000_000}
"""Counters count whole numbers: of dollars, millionths. One for all else."""


@dataclass(frozen=True)
class Counter:
    """The sum of what was used of something in one window."""

    whose: Whose
    what: What
    window: str

    @property
    def is_balance(self) -> bool:
        """Whether the window never ends."""
        return self.window == Per.EVER.value

    @property
    def is_rate(self) -> bool:
        """Whether the window is a second or a minute: what is in it is soon of no use."""
        return self.window.startswith((Per.SECOND.value, Per.MINUTE.value))


class Counters(Protocol):
    """Counts across all processes. Both raise Unavailable."""

    async def add(self, counter: Counter, amount: int, once: str = "") -> int:
        """Adds `amount`, which may be negative. A second call with the same `once` adds nothing. Returns the sum after it."""
        ...

    async def value(self, counter: Counter) -> int:
        """The sum; 0 where nothing was counted."""
        ...
