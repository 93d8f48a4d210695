"""What a process measures of itself."""

import asyncio
import time

from prometheus_client import REGISTRY

from kit.observability.process_metrics import show_build, watch_loop


def lags(bound: str) -> float:
    return REGISTRY.get_sample_value("groundwork_event_loop_lag_seconds_bucket", {"le": bound}) or 0.0


async def test_loop_that_is_blocked_is_seen_to_be_late() -> None:
    slow = lags("+Inf") - lags("0.1")
    watching = asyncio.create_task(watch_loop(interval_s=0.01))
    await asyncio.sleep(0.05)
    time.sleep(0.2)  # noqa: ASYNC251 - the blocking is what is measured
    async with asyncio.timeout(60):
        while lags("+Inf") - lags("0.1") == slow:
            await asyncio.sleep(0.01)
    watching.cancel()


def test_build_is_told_by_service_and_version() -> None:
    show_build("probe")
    labels = [
        sample.labels
        for family in REGISTRY.collect()
        for sample in family.samples
        if sample.name.endswith("build_info")
    ]
    (ours,) = [each for each in labels if each.get("service") == "probe"]
    assert ours["version"]
