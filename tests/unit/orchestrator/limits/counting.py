"""Counters in memory."""

from datetime import UTC, datetime

from kit.limits.counters import Counter
from kit.limits.rules import Rules
from services.orchestrator.limits.reservations import Reservations
from services.orchestrator.log.events import Budgets

AT = datetime(2026, 1, 31, 13, 20, tzinfo=UTC)


class MemoryCounters:
    """As the message store counts: the same entry is added once."""

    def __init__(self) -> None:
        self.sums: dict[Counter, int] = {}
        self._added: set[tuple[Counter, str]] = set()

    async def add(self, counter: Counter, amount: int, once: str = "") -> int:
        if not once or (counter, once) not in self._added:
            self._added.add((counter, once))
            self.sums[counter] = self.sums.get(counter, 0) + amount
        return self.sums.get(counter, 0)

    async def value(self, counter: Counter) -> int:
        return self.sums.get(counter, 0)


def unlimited() -> Reservations:
    """Nothing limits anybody."""
    return Reservations(Rules(), MemoryCounters(), Budgets(), lambda: AT)
