"""What every process measures of itself: which version it is, whether it is ready, and how late its event loop is."""

import asyncio
import platform
from collections.abc import Callable

from prometheus_client import Gauge, Histogram

from kit.version import release

_INTERVAL_S = 0.25
_BUILD = Gauge("groundwork_build_info", "1; its labels say what runs here.", ["service", "version", "python"])
READY = Gauge("groundwork_ready", "Whether this process says that it is ready.")
_LAG_SECONDS = Histogram(
    "groundwork_event_loop_lag_seconds",
    "How late a timer of the event loop was, four times a second: whatever blocks it holds up everybody.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


def show_build(service: str) -> None:
    """Says what runs here."""
    _BUILD.labels(service, release(), platform.python_version()).set(1)


async def watch_loop(*, interval_s: float = _INTERVAL_S, clock: Callable[[], float] | None = None) -> None:
    """Measures until cancelled."""
    now = clock or asyncio.get_running_loop().time
    while True:
        due = now() + interval_s
        await asyncio.sleep(interval_s)
        _LAG_SECONDS.observe(max(0.0, now() - due))
