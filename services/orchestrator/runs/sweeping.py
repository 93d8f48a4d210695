"""Finds the runs whose owner is gone, or whose wait is over, and has them taken over. It knows all markers by a watch, asks once a
round which of their owners live, and touches no run of one that does."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import structlog

from kit.errors import Unavailable
from services.orchestrator.models import RunKey, RunMarker, Wait
from services.orchestrator.ports import Markers
from services.orchestrator.runs.ownership import Ownership

_log = structlog.get_logger()
_AT_ONCE = 8
_MAX_BACKOFF_S = 60.0
_RETRY_AFTER_S = 1.0
_CAUGHT_UP_WITHIN_S = 5.0
"""After a start the markers are read once: 10 000 take well below a second."""


class Sweeper:
    """Calls `adopt` for every run that nobody works on. One that fails waits twice as long each time; the others do not wait for
    it. `on_lost` is told of each run whose marker names another owner."""

    def __init__(
        self,
        markers: Markers,
        ownership: Ownership,
        adopt: Callable[[RunKey], Awaitable[None]],
        on_lost: Callable[[RunKey], None],
        interval_s: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = markers
        self._ownership = ownership
        self._adopt = adopt
        self._on_lost = on_lost
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._now = now
        self._markers: dict[RunKey, RunMarker] = {}
        self._backoffs: dict[RunKey, tuple[float, float]] = {}
        """By run: when it may be tried again, and how long it waited."""
        self._was_released = asyncio.Event()
        self._has_caught_up = asyncio.Event()

    async def watch(self) -> None:
        """Keeps the markers. Runs until cancelled."""
        async for change in patiently(self._store.watch):
            if change is None:
                self._has_caught_up.set()
                continue
            key, marker = change
            if marker is None:
                self._markers.pop(key, None)
                self._backoffs.pop(key, None)
                continue
            self._markers[key] = marker
            if marker.owner not in ("", self._ownership.owner):
                self._on_lost(key)
            if not marker.owner and not marker.parked:
                self._was_released.set()

    async def caught_up(self) -> None:
        """Waits until the markers have been read since the start."""
        await self._has_caught_up.wait()

    def is_parked(self, key: RunKey) -> bool:
        """As far as is known here."""
        marker = self._markers.get(key)
        return marker is not None and marker.parked

    async def parked(self, tenant_id: str) -> Mapping[RunKey, Wait]:
        """The tenant's runs that wait for a person. Raises Unavailable while the markers have not been read since the start."""
        try:
            async with asyncio.timeout(_CAUGHT_UP_WITHIN_S):
                await self.caught_up()
        except TimeoutError:
            raise Unavailable("the list of waiting runs is still being read; try again", retry_after_s=1.0) from None
        return {
            key: marker.wait
            for key, marker in self._markers.items()
            if marker.parked and marker.wait is not None and key.tenant_id == tenant_id
        }

    async def run(self) -> None:
        """Sweeps, and at once when a run was let go. Runs until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._was_released.wait()
            except TimeoutError:
                pass
            self._was_released.clear()
            await self.sweep()

    async def sweep(self) -> None:
        """One round."""
        orphans = await self._orphans()
        # Several orchestrators sweep: each begins elsewhere, so that they share the work.
        random.shuffle(orphans)
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(key: RunKey) -> None:
            async with slots:
                await self._try(key)

        async with asyncio.TaskGroup() as group:
            for key in orphans:
                group.create_task(one(key))

    async def _orphans(self) -> list[RunKey]:
        ours = self._ownership.owner
        owners = {marker.owner for marker in self._markers.values()} - {"", ours}
        try:
            gone = {owner for owner in owners if not await self._ownership.is_alive(owner)}
        except Unavailable:
            return []
        free = gone | {"", ours}
        at, now = self._now(), self._monotonic()
        return [
            key
            for key, marker in self._markers.items()
            if (marker.is_due(at) if marker.parked else marker.owner in free)
            and not self._ownership.holds(key)
            and self._backoffs.get(key, (now, 0.0))[0] <= now
        ]

    async def _try(self, key: RunKey) -> None:
        try:
            await self._adopt(key)
        except Exception as error:
            _, waited_s = self._backoffs.get(key, (0.0, 0.0))
            wait_s = min(max(2 * waited_s, self._interval_s), _MAX_BACKOFF_S)
            self._backoffs[key] = (self._monotonic() + wait_s, wait_s)
            _log.warning("run_cannot_be_taken_over", run_id=key.run_id, error=repr(error), retry_after_s=wait_s)
        else:
            self._backoffs.pop(key, None)


async def patiently(watch: Callable[[], AsyncIterator[Any]]) -> AsyncIterator[Any]:
    """A watch that begins anew when the store goes away and comes back."""
    while True:
        try:
            async with aclosing(watch()) as updates:  # type: ignore[type-var] # a generator in fact
                async for update in updates:
                    yield update
        except Unavailable:
            await asyncio.sleep(_RETRY_AFTER_S)
