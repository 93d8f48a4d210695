"""What waits in a work queue, reported to operators by those who work on it. Each queue has metrics of its own, without labels:
autoscalers that read /metrics themselves find them by name."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from prometheus_client import REGISTRY, CollectorRegistry, Gauge

BACKLOG_INTERVAL_S = 15.0


@dataclass(frozen=True)
class Backlog:
    """Jobs in a queue, those in hand included, and since when the oldest is there."""

    jobs: int
    oldest_at: datetime | None


class BacklogGauges:
    """The gauges `<name>_depth` and `<name>_oldest_seconds`. `reported_by` says in the description which process reports them."""

    def __init__(
        self,
        name: str,
        reported_by: str,
        registry: CollectorRegistry = REGISTRY,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._now = now
        self._depth = Gauge(
            f"{name}_depth", f"Jobs in the queue, those in hand included; {reported_by}.", registry=registry
        )
        self._oldest = Gauge(
            f"{name}_oldest_seconds",
            f"Age of the oldest job in the queue, in hand or not; {reported_by}.",
            registry=registry,
        )

    def set(self, backlog: Backlog) -> None:
        """Tells it."""
        age_s = (self._now() - backlog.oldest_at).total_seconds() if backlog.oldest_at else 0.0
        self._depth.set(backlog.jobs)
        self._oldest.set(max(0.0, age_s))

    def leave(self) -> None:
        """From now on somebody else tells."""
        self._depth.set(0)
        self._oldest.set(0)
