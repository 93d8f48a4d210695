"""What this process has just written: an activation that follows at once need not count it again."""

from collections.abc import Callable

from services.retriever.models import RevisionKey

FRESH_S = 60.0
"""Of what other processes do to the indexes nobody tells. They remove a revision that is not active when it is an hour old."""


class WrittenRevisions:
    """Revisions that were seen whole on disk in both indexes, and how many chunks they had, for a minute."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._written: dict[RevisionKey, tuple[int, float]] = {}
        """Chunks and time; the oldest come first."""

    def forget(self, key: RevisionKey) -> None:
        """To be called before a revision is written again or removed."""
        self._written.pop(key, None)

    def note(self, key: RevisionKey, chunk_count: int) -> None:
        now = self._clock()
        while self._written and not self._is_fresh(oldest := next(iter(self._written)), now):
            del self._written[oldest]
        self._written[key] = chunk_count, now

    def chunk_count(self, key: RevisionKey) -> int | None:
        """None when it has to be counted."""
        return self._written[key][0] if key in self._written and self._is_fresh(key, self._clock()) else None

    def _is_fresh(self, key: RevisionKey, now: float) -> bool:
        return now - self._written[key][1] < FRESH_S
