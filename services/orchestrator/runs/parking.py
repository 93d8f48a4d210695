"""Runs that wait for somebody's decision. A parked run has no task, no lease and no clock: its record says `waiting`, its marker
has no owner, and any orchestrator may resume it.

A decision is an entry of the run's log. It may be written while the run is being parked, when resuming it would find that it still
has an owner: so whoever parks a run looks, after the marker says so, whether the log has grown since.
"""

from dataclasses import replace

from services.orchestrator.log.events import RunStatus
from services.orchestrator.models import RunRecord
from services.orchestrator.ports import EventLog, RunStore
from services.orchestrator.runs.ownership import Ownership


class Parking:
    """Parks the runs of this process."""

    def __init__(self, store: RunStore, log: EventLog, ownership: Ownership) -> None:
        self._store = store
        self._log = log
        self._ownership = ownership

    async def park(self, record: RunRecord, position: int) -> None:
        """Leaves the run to whoever resumes it; `position` is that of the last entry it knows. When there is a later one, which
        may be what it waits for, or a wish to cancel, anybody may take it. Raises Unavailable."""
        # The record first: a run that is marked as ours and not worked on is taken up again, and parks itself again.
        await self._store.set_status(replace(record, status=RunStatus.WAITING))
        await self._ownership.park(record.key)
        has_grown = await self._log.position(record.key) > position
        if has_grown or await self._store.is_cancelled(record.key):
            await self._ownership.unpark(record.key)
