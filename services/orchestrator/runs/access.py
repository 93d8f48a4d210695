"""Ends runs whose callers have lost access to a document that the run has read: their membership of its collection, or their place
on its access list. Groups count as they were when the run began."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import structlog

from kit.access.principal import use_principal
from kit.errors import GroundworkError
from services.orchestrator.models import RunRecord
from services.orchestrator.ports import Library, RunSources

_log = structlog.get_logger()
_CHECKED_AT_ONCE = 8


class RunUnderWay(Protocol):
    """A run that this process works on."""

    @property
    def record(self) -> RunRecord: ...

    def withdraw(self) -> None:
        """Ends the run, and says that access was withdrawn."""


class AccessWatch:
    """Looks again and again whether each run under way may still read its documents."""

    def __init__(
        self, under_way: Callable[[], Sequence[RunUnderWay]], sources: RunSources, library: Library, every_s: float
    ) -> None:
        self._under_way = under_way
        self._sources = sources
        self._library = library
        self._every_s = every_s

    async def work(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            await self.look()

    async def look(self) -> None:
        """Once over all runs under way. Runs that cannot be checked now go on until the next time."""
        at_once = asyncio.Semaphore(_CHECKED_AT_ONCE)

        async def check(execution: RunUnderWay) -> None:
            async with at_once:
                await self._check(execution)

        await asyncio.gather(*(check(each) for each in self._under_way()))

    async def _check(self, execution: RunUnderWay) -> None:
        key = execution.record.key
        try:
            with use_principal(execution.record.principal):
                unreadable = await self._unreadable(execution.record)
        except GroundworkError as error:
            _log.warning("access_not_checked", run_id=key.run_id, reason=error.reason, error=error.message)
            return
        if unreadable:
            _log.info("access_withdrawn", tenant_id=key.tenant_id, run_id=key.run_id, documents=len(unreadable))
            execution.withdraw()

    async def _unreadable(self, record: RunRecord) -> Collection[str]:
        documents = await self._sources.documents_of(record.key)
        return set(documents) - await self._library.readable(documents)
