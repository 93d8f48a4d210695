"""What may be done to an installation while it is used, without one request failing: the users of the benchmark's traffic try
nothing again."""

import asyncio
from collections.abc import Callable

from bench.operation.traffic import Tally, lost_uploads, traffic
from evals.samples import Samples
from tests.cluster.release import Release
from tests.cluster.report import Section
from tests.integration.api import Api

CALM_REQUESTS = 40
"""Before and after what is done, so that both ends of it are seen."""


def used_meanwhile(release: Release, key: str, action: Callable[[], object], section: Section) -> Tally:
    """Has the release used while the action is done and a little before and after. Raises AssertionError when a request failed or
    an acknowledged upload was lost."""
    with release.api(key) as api:
        collection_id = _unused_id(api)
    tally, lost = asyncio.run(_used(release.addresses[0], collection_id, key, action))
    seconds = Samples.of(tally.seconds)
    section.figure("requests", tally.requests)
    section.figure("failed", len(tally.failures))
    section.figure("acknowledged uploads", len(tally.uploads))
    section.figure("lost or doubled", len(lost))
    section.figure("answers that went without a part of the system", f"{tally.degraded} of {tally.answers}")
    section.figure("seconds of a request, median", f"{seconds.median:.2f}")
    section.figure("seconds of the longest", seconds.largest)
    assert not tally.failures, "\n".join(tally.failures[:20])
    assert not lost, lost
    return tally


def _unused_id(api: Api) -> str:
    """Of a collection that the traffic makes itself."""
    return f"used-{api.new_collection()}"


async def _used(url: str, collection_id: str, key: str, action: Callable[[], object]) -> tuple[Tally, list[str]]:
    headers = {"authorization": f"Bearer {key}"}
    async with traffic(url, collection_id, headers, talks=True) as tally:
        await _until(tally, CALM_REQUESTS)
        await asyncio.to_thread(action)
        await _until(tally, tally.requests + CALM_REQUESTS)
    return tally, await lost_uploads(url, collection_id, tally, headers)


async def _until(tally: Tally, requests: int) -> None:
    while tally.requests < requests:  # the tally offers no event
        await asyncio.sleep(0.1)
