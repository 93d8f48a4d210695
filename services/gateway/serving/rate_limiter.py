"""A rate limiter with a token bucket for each name. It forgets the least recently used buckets, so that its memory is bounded."""

from collections import OrderedDict
from collections.abc import Callable

_REMEMBERED = 10_000
"""Buckets at a time, 100 bytes each. A client with more addresses gets fresh buckets, and still needs 2^255 guesses."""


class RateLimiter:
    """Each name may take `per_minute` tokens at once; its bucket fills again within a minute."""

    def __init__(self, per_minute: int, clock: Callable[[], float], *, remembered: int = _REMEMBERED) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60.0
        self._clock = clock
        self._remembered = remembered
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Tokens left in the bucket of a name, and when that was."""

    def take(self, name: str) -> float:
        """Takes a token. Returns 0 if there was one, else the seconds until there is."""
        now = self._clock()
        left, at = self._left.pop(name, (self._most, now))
        left = min(self._most, left + (now - at) * self._per_second)
        taken = left >= 1.0
        self._left[name] = (left - 1.0 if taken else left, now)
        if len(self._left) > self._remembered:
            self._left.popitem(last=False)
        return 0.0 if taken else (1.0 - left) / self._per_second

    def give_back(self, name: str) -> None:
        """Puts back a token that was taken for nothing."""
        if (bucket := self._left.get(name)) is not None:
            left, at = bucket
            self._left[name] = (min(self._most, left + 1.0), at)
