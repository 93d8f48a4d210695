"""So many a minute for each of many: token buckets, of which the least recently used are forgotten, so that memory is bounded."""

from collections import OrderedDict
from collections.abc import Callable

_REMEMBERED = 10_000
"""Names at a time, 100 bytes each. Who commands more addresses gets a fresh allowance for some, and still needs 2^255 guesses."""


class Allowance:
    """`per_minute` at once, and again as time passes, for each name."""

    def __init__(self, per_minute: int, clock: Callable[[], float], *, remembered: int = _REMEMBERED) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60.0
        self._clock = clock
        self._remembered = remembered
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By name what was left, and when."""

    def take(self, name: str) -> float:
        """Takes one. 0 when there was one; else the seconds until there is."""
        now = self._clock()
        left, at = self._left.pop(name, (self._most, now))
        left = min(self._most, left + (now - at) * self._per_second)
        taken = left >= 1.0
        self._left[name] = (left - 1.0 if taken else left, now)
        if len(self._left) > self._remembered:
            self._left.popitem(last=False)
        return 0.0 if taken else (1.0 - left) / self._per_second
