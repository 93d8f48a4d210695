"""Finds the runs whose owner is gone, or whose wait is over, and has them taken over. Once a round it reads which markers have
changed, and asks which of their owners live; it touches no run of one that does. A watch would bring each marker three times in a
short run, to every orchestrator (ADR 13).

All orchestrators sweep. Each run has an order in which they try it, so that the runs of one that died are spread over those that
live: whose turn it is takes the run at once, and leaves it to the next, a moment later, when it is full or stopping.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import structlog

from kit.errors import Unavailable
from services.orchestrator.metrics import RUNS_ORPHANED, RUNS_WAITING
from services.orchestrator.models import MarkerChange, RunKey, RunMarker, Wait
from services.orchestrator.ports import Markers
from services.orchestrator.runs.ownership import Ownership

_log = structlog.get_logger()
_AT_ONCE = 8
_TURN_S = 0.2
"""Until the next orchestrator tries a run. One that has room takes a run within milliseconds."""
_MAX_BACKOFF_S = 60.0
_RETRY_AFTER_S = 1.0
_READ_WITHIN_S = 5.0
"""After a start all markers are read: 10 000 take well below a second. Later, what has changed."""
_LAG_S = 0.05
"""Until a replica that lags is asked again."""


class Sweeper:
    """Calls `adopt` for every run that nobody works on. One that fails waits twice as long each time; the others do not wait for
    it. `on_lost` gets each run of this process whose marker names another owner."""

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
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = markers
        self._ownership = ownership
        self._adopt = adopt
        self._on_lost = on_lost
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._now = now
        self._pause = pause
        self._markers: dict[RunKey, RunMarker] = {}
        self._backoffs: dict[RunKey, tuple[float, float]] = {}
        """By run: when it may be tried again, and how long it waited."""
        self._was_released = asyncio.Event()
        self._revision = 0
        """Of the last change that is known."""
        self._reading = asyncio.Lock()

    async def listen(self) -> None:
        """Has a round begin when runs were let go. Runs until cancelled."""
        async for _ in patiently(self._store.released):
            self._was_released.set()

    async def refresh(self) -> None:
        """Brings what is known of the markers up to date. Raises Unavailable."""
        try:
            async with asyncio.timeout(_READ_WITHIN_S), self._reading:
                await self._read(await self._store.last_revision())
        except TimeoutError:
            raise Unavailable("the markers of runs are still being read; try again", retry_after_s=1.0) from None

    async def _read(self, last: int) -> None:
        if last < self._revision:  # the store was lost, and begins anew
            self._markers.clear()
            self._revision = 0
        while self._revision < last:
            async with aclosing(self._store.changes(self._revision)) as changes:
                async for change in changes:
                    self._note(change)
            if self._revision < last:
                await asyncio.sleep(_LAG_S)

    def _note(self, change: MarkerChange) -> None:
        key, marker = change.key, change.marker
        self._revision = change.revision
        if marker is None:
            self._markers.pop(key, None)
            self._backoffs.pop(key, None)
            return
        self._markers[key] = marker
        if self._ownership.has_lost(key, marker):
            self._on_lost(key)

    def is_parked(self, key: RunKey) -> bool:
        """As far as is known here."""
        marker = self._markers.get(key)
        return marker is not None and marker.parked

    async def parked(self, tenant_id: str) -> Mapping[RunKey, Wait]:
        """The tenant's runs that wait for a person, those included that another orchestrator has just parked. Raises
        Unavailable."""
        await self.refresh()
        return {
            key: marker.wait
            for key, marker in self._markers.items()
            if marker.wait is not None and key.tenant_id == tenant_id
        }

    async def run(self) -> None:
        """Sweeps, and at once when a run was let go. Runs until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._next_round_s()):
                    await self._was_released.wait()
            except TimeoutError:
                pass
            self._was_released.clear()
            await self.sweep()

    def _next_round_s(self) -> float:
        """Until the next round: all orchestrators begin theirs at the same time, so that each can wait for its turn."""
        return self._interval_s - self._now().timestamp() % self._interval_s

    async def sweep(self) -> None:
        """One round."""
        for turn, keys in enumerate(await self._by_turn(await self._orphans())):
            if turn:
                await self._pause(_TURN_S)
                await self._refreshed()
            await self._try_all([key for key, marker in keys if self._markers.get(key) is marker])

    async def _refreshed(self) -> bool:
        try:
            await self.refresh()
        except Unavailable:
            return False
        return True

    async def _by_turn(self, orphans: Sequence[RunKey]) -> Sequence[Sequence[tuple[RunKey, RunMarker]]]:
        """The runs that this process is the first to try, then those that it is the second to try, …; with their markers."""
        if not orphans:
            return []
        try:
            turn = await self._ownership.turn()
        except Unavailable:
            return []
        turns: defaultdict[int, list[tuple[RunKey, RunMarker]]] = defaultdict(list)
        for key in orphans:
            if (marker := self._markers.get(key)) is not None:
                turns[turn(key)].append((key, marker))
        return [turns[number] for number in range(max(turns, default=-1) + 1)]

    async def _try_all(self, keys: Sequence[RunKey]) -> None:
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(key: RunKey) -> None:
            async with slots:
                await self._try(key)

        async with asyncio.TaskGroup() as group:
            for key in keys:
                group.create_task(one(key))

    async def _orphans(self) -> list[RunKey]:
        if not await self._refreshed():
            return []
        ours = self._ownership.owner
        owners = {marker.owner for marker in self._markers.values()} - {"", ours}
        try:
            gone = {owner for owner in owners if not await self._ownership.is_alive(owner)}
        except Unavailable:
            return []
        free = gone | {"", ours}
        at, now = self._now(), self._monotonic()
        RUNS_WAITING.set(sum(marker.parked and marker.wait is not None for marker in self._markers.values()))
        orphans = [
            key
            for key, marker in self._markers.items()
            if (marker.is_due(at) if marker.parked else marker.owner in free)
            and not self._ownership.holds(key)
            and self._backoffs.get(key, (now, 0.0))[0] <= now
        ]
        RUNS_ORPHANED.set(len(orphans))
        return orphans

    async def _try(self, key: RunKey) -> None:
        try:
            await self._adopt(key)
        except Exception as error:
            _, waited_s = self._backoffs.get(key, (0.0, 0.0))
            wait_s = min(max(2 * waited_s, self._interval_s), _MAX_BACKOFF_S)
            self._backoffs[key] = (self._monotonic() + wait_s, wait_s)
            _log.warning(
                "run_cannot_be_taken_over",
                tenant_id=key.tenant_id,
                run_id=key.run_id,
                error=repr(error),
                retry_after_s=wait_s,
            )
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
