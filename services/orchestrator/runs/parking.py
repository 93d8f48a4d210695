"""Runs that wait for somebody's decision. A parked run has no task, no lease and no clock: its record says `waiting` and what it
asks, its log ends with `parked`, its marker has no owner but says how long it waits, and any orchestrator may resume it. When the
wait is over a sweeper does.

A decision is an entry of the run's log. It may be written while the run is being parked, when resuming it would find that it still
has an owner: so the process that parks a run looks, after the marker says so, whether the log has grown since.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from services.orchestrator.errors import RunDamaged
from services.orchestrator.log.events import RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord, Wait
from services.orchestrator.ports import EventLog, RunStore
from services.orchestrator.runs.ownership import Ownership


class Parking:
    """Parks runs of this process, and lets parked ones go on elsewhere."""

    def __init__(self, store: RunStore, log: EventLog, ownership: Ownership) -> None:
        self._store = store
        self._log = log
        self._ownership = ownership

    async def park(self, record: RunRecord, journal: Journal, until: datetime) -> None:
        """Says that the run waits, and leaves it to the orchestrator that resumes it, and at `until` to any. When there is a
        decision already, the log has an entry that `journal` does not know, or there is a wish to cancel, any may take it at once.
        Raises FencedOff, Unavailable."""
        waiting = replace(record, status=RunStatus.WAITING, pending=journal.progress.pending)
        wait = _wait(waiting, journal, until)
        # A client that reads `parked` finds the run waiting and its questions listed. The run is ours until the last step: should
        # this process die before, the run is taken up again, and parks itself again.
        await self._store.set_status(waiting)
        await self._ownership.note_wait(record.key, wait)
        await journal.park(until)
        await self._ownership.park(record.key, wait)
        has_grown = await self._log.position(record.key) > journal.position
        if has_grown or journal.progress.has_unread_decision or await self._store.is_cancelled(record.key):
            await self.unpark(record.key)

    async def unpark(self, key: RunKey) -> None:
        """Leaves a parked run to the next process that takes it: it waits for a worker from now on, and for nobody's decision. Does
        nothing when it is not parked. Raises Unavailable."""
        if await self._ownership.adopt(key, resume=True) is None:
            return
        try:
            with suppress(RunDamaged):
                record = await self._store.get(key)
                if record is not None:
                    await self._store.set_status(replace(record, status=RunStatus.RUNNING, pending=()))
        finally:
            await self._ownership.release(key)


def _wait(record: RunRecord, journal: Journal, until: datetime) -> Wait:
    subjects = {record.subject}.union(*(each.may_decide for each in record.pending))
    return Wait(journal.progress.waiting_since or journal.now(), until, tuple(sorted(subjects)))
