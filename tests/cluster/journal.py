"""What the users of a broken system saw."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Failure:
    """A request that was not answered, or not well, at its first try."""

    at_s: float
    what: str
    reason: str


@dataclass
class Journal:
    """Written on the event loop of the traffic; a test reads it once that has ended, but for the counts, on which it may wait."""

    uploads: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """By user and word the ids of the documents that were acknowledged: one, or none yet."""
    failures: list[Failure] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    """Answers that were wrong or somebody else's, and streams with gaps."""
    unfinished: list[str] = field(default_factory=list)
    """Uploads that nobody acknowledged and streams that did not end, however often they were tried."""
    answers: int = 0
    unavailable: int = 0
    """Of them those that said that they could not search."""
    open_streams: int = 0
    read_on: int = 0
    """Times that a stream went on at another gateway."""
    seconds: list[float] = field(default_factory=list)
    """From a question in one piece to its answer."""
    _began: float = field(default_factory=time.monotonic)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def acknowledged(self) -> int:
        """Uploads so far."""
        return sum(bool(ids) for ids in list(self.uploads.values()))

    def failed(self, what: str, reason: str) -> None:
        self.failures.append(Failure(round(time.monotonic() - self._began, 1), what, reason))

    def failures_by_reason(self) -> Counter[str]:
        return Counter(f"{each.what}: {each.reason}" for each in list(self.failures))

    def noted(self) -> None:
        """Something has changed: whoever waits looks again."""
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(condition, timeout_s)
