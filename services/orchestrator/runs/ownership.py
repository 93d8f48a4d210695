"""Which runs this process works on.

A process has one lease, however many runs it has. Each run that has not ended has a marker with the id of its owner; taking a run
over is a compare-and-set of the marker, and allowed only once the owner's lease is gone. A process that was frozen or cut off may
still believe that it owns a run: the log refuses what it appends, since it names an entry as the last that is not the last any
more.

    marker of a run          may be taken by
    ─────────────────────────────────────────────────────────────────────────
    owner lives              nobody (its own process: when it does not hold the run any more)
    owner's lease is gone    anybody
    no owner                 anybody
    parked                   who resumes it; anybody when its wait is over
"""

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import structlog

from kit.errors import Unavailable
from kit.process.waiting import FailureLogLimit
from services.orchestrator.errors import FencedOff
from services.orchestrator.log.events import RunEvent
from services.orchestrator.models import RunKey, RunMarker, Wait
from services.orchestrator.ports import Markers, RunLog

_log = structlog.get_logger()


class Ownership:
    """The lease of this process, and the runs that it holds."""

    def __init__(
        self,
        markers: Markers,
        lease_s: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.owner = secrets.token_hex(8)
        self._markers = markers
        self._lease_s = lease_s
        self._monotonic = monotonic
        self._now = now
        self._held_until = float("-inf")
        """By our own clock, counted from before the renewal was sent: the store's lease lasts at least as long."""
        self._trusts_absence_from = float("-inf")
        """By our own clock. Until then nobody is taken for dead: the store was away, and the leases of others may have run out with
        it; they need a lease's time at most to renew theirs."""
        self._held: dict[RunKey, RunMarker] = {}
        self._marking: set[RunKey] = set()
        """Runs whose marker is being written."""

    async def keep_lease(self) -> None:
        """Renews the lease three times in its lifetime. Runs until cancelled."""
        complaints = FailureLogLimit()
        while True:
            try:
                # An answer that is lost with its connection must not be waited for longer than the lease lasts.
                async with asyncio.timeout(self._lease_s / 3):
                    await self._renew()
            except (Unavailable, TimeoutError) as error:
                self._trusts_absence_from = float("inf")
                if complaints.is_due():
                    _log.warning("lease_not_renewed", error=repr(error))
            else:
                if self._trusts_absence_from == float("inf"):
                    self._trusts_absence_from = self._monotonic() + self._lease_s
                if complaints.is_over():
                    _log.info("lease_renewed_again")
            await asyncio.sleep(self._lease_s / 3)

    async def leave(self) -> None:
        """Gives the lease up: another process that finds a run of this one takes it over at once."""
        await self._markers.leave(self.owner)

    async def is_alive(self, owner: str) -> bool:
        """As far as is known: True also of one whose lease is gone, while the store may have taken it along. Raises Unavailable."""
        return self._monotonic() < self._trusts_absence_from or await self._markers.is_alive(owner)

    async def turn(self) -> Callable[[RunKey], int]:
        """By run, how many of the living processes are to try it before this one. Each process reckons the same order for a run,
        and another one for another run. Raises Unavailable."""
        others = set(await self._markers.living()) - {self.owner}

        def of(key: RunKey) -> int:
            ours = _lot(self.owner, key)
            return sum(_lot(owner, key) < ours for owner in others)

        return of

    def holds(self, key: RunKey) -> bool:
        return key in self._held or key in self._marking

    def has_lost(self, key: RunKey, marker: RunMarker) -> bool:
        """Whether a run that we hold is another's, as its marker says that was written after ours."""
        held = self._held.get(key)
        return held is not None and marker.revision > held.revision and marker.owner not in ("", self.owner)

    async def claim(self, key: RunKey) -> bool:
        """Makes a new run ours. False when it has an owner, or is parked. Raises Unavailable."""
        return await self._take(key, RunMarker(self.owner), is_new=True) is not None

    async def adopt(self, key: RunKey, *, resume: bool = False) -> RunMarker | None:
        """Makes a run ours that nobody works on; with `resume` a parked one too. None when it may not be taken.

        A run without a marker ended a moment ago, or the marker was lost: then the run counts as begun.
        """
        return await self._take(key, RunMarker(self.owner, begun=True), resume=resume)

    async def _take(
        self, key: RunKey, new: RunMarker, *, is_new: bool = False, resume: bool = False
    ) -> RunMarker | None:
        # While the marker is written, another task of this process could read it and take the run for one that was let go.
        if self.holds(key):
            return None
        self._marking.add(key)
        try:
            await self._renew_if_spent()
            marker = await self._marked(key, new, is_new=is_new, resume=resume)
            if marker is not None:
                self._held[key] = marker
            return marker
        finally:
            self._marking.discard(key)

    async def _marked(self, key: RunKey, new: RunMarker, *, is_new: bool, resume: bool) -> RunMarker | None:
        """The marker with us as the owner; `new` where there was none."""
        if is_new and (revision := await self._markers.create(key, new)) is not None:
            return replace(new, revision=revision)
        marker = await self._markers.read(key)
        if marker is None:
            revision = await self._markers.create(key, new)
        elif await self._is_free(marker, resume=resume):
            new = replace(marker, owner=self.owner, parked=False, wait=None)
            revision = await self._markers.update(key, new)
        else:
            return None
        return None if revision is None else replace(new, revision=revision)

    async def _is_free(self, marker: RunMarker, *, resume: bool) -> bool:
        if marker.parked:
            return resume or marker.is_due(self._now())
        if marker.owner == self.owner:
            return True  # our work on it ended, and the marker could not say so
        return not marker.owner or not await self.is_alive(marker.owner)

    async def note_begun(self, key: RunKey) -> None:
        """Notes that the run's log has entries. Raises FencedOff when the run is another's."""
        marker = self._held.get(key)
        if marker is not None and not marker.begun:
            await self._change(key, replace(marker, begun=True))

    async def note_wait(self, key: RunKey, wait: Wait) -> None:
        """Notes what a run of ours is about to wait for, so that it is listed. Raises FencedOff when the run is another's."""
        if (marker := self._held.get(key)) is not None:
            await self._change(key, replace(marker, wait=wait))

    async def _change(self, key: RunKey, marker: RunMarker) -> None:
        revision = await self._markers.update(key, marker)
        if revision is None:
            raise FencedOff(f"run {key.run_id} was taken over by another orchestrator")
        self._held[key] = replace(marker, revision=revision)

    def drop(self, key: RunKey) -> None:
        """Stops holding a run without telling the store: it has ended, or is another's."""
        self._held.pop(key, None)

    async def release(self, key: RunKey) -> None:
        """Leaves a run to the next process that takes it. Raises Unavailable."""
        await self._give_up(key, None)

    async def park(self, key: RunKey, wait: Wait) -> None:
        """Leaves a run to the process that resumes it, and to any process once the wait is over. Raises Unavailable."""
        await self._give_up(key, wait)

    async def wake_by(self, key: RunKey, at: datetime) -> None:
        """Lets anybody go on with a parked run from `at` on, if not earlier. Does nothing with one that is not parked, or is being
        taken up. Raises Unavailable."""
        marker = await self._markers.read(key)
        if marker is not None and marker.parked and marker.wait is not None and marker.wait.until > at:
            await self._markers.update(key, replace(marker, wait=replace(marker.wait, until=at)))

    async def _give_up(self, key: RunKey, wait: Wait | None) -> None:
        marker = self._held.pop(key, None)
        if marker is None:
            return
        self._marking.add(key)  # until the marker says so, a task of ours that reads it would take the run back
        try:
            # Refused when it is another's by now. When only the answer was lost, our own sweeper finds it.
            await self._markers.update(key, replace(marker, owner="", parked=wait is not None, wait=wait))
        finally:
            self._marking.discard(key)

    async def _renew_if_spent(self) -> None:
        """No run may be marked as ours without a lease: it would be taken from us at once."""
        if self._monotonic() >= self._held_until:
            await self._renew()

    async def _renew(self) -> None:
        sent_at = self._monotonic()
        await self._markers.renew(self.owner)
        if sent_at > self._held_until > 0:
            _log.warning("lease_had_expired", owner=self.owner)
        self._held_until = sent_at + self._lease_s


def _lot(owner: str, key: RunKey) -> bytes:
    """What a process draws for a run (highest random weight hashing, Thaler and Ravishankar 1998)."""
    return hashlib.blake2b(f"{owner} {key.name}".encode(), digest_size=8).digest()


class OwnedLog:
    """The log of one run of ours for writing. Its first entry is noted in the run's marker before anything follows: a log that is
    empty later has been lost, and the run must not be done again."""

    def __init__(self, log: RunLog, ownership: Ownership) -> None:
        self._log = log
        self._ownership = ownership

    async def append(self, key: RunKey, event: RunEvent, last_position: int) -> int:
        position = await self._log.append(key, event, last_position)
        await self._ownership.note_begun(key)
        return position

    async def read(self, key: RunKey) -> tuple[Sequence[RunEvent], int]:
        return await self._log.read(key)
