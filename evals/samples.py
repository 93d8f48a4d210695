"""What repeated measurements say together."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Samples:
    """Measurements of one quantity."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> "Samples":
        return cls(tuple(values))

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def p95(self) -> float:
        """The nearest rank: a value that was measured, none interpolated."""
        ordered = sorted(self.values)
        return ordered[-(-95 * len(ordered) // 100) - 1]

    @property
    def smallest(self) -> float:
        return min(self.values)

    @property
    def largest(self) -> float:
        return max(self.values)

    def spread(self, digits: int = 1) -> str:
        """ "median (min to max)"."""
        return f"{self.median:.{digits}f} ({self.smallest:.{digits}f} to {self.largest:.{digits}f})"
