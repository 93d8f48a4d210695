"""Who has left the organisation, at the door: everybody who comes in by a key, a token or a login is looked up in the directory."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import structlog

from kit.errors import GroundworkError, Unauthenticated
from kit.jetstream import Nats
from kit.process.waiting import FailureLogLimit
from services.gateway.access.auth import Admission
from services.gateway.access.directory.directory import FIRST_RECORDS_S, Directory, DirectoryStale
from services.gateway.access.directory.people import Naming

_log = structlog.get_logger()
_RETRY_S = 1.0


class DirectoryMembers:
    """The directory of this gateway, once the message store answers. `clock` counts seconds."""

    def __init__(self, naming: Naming, *, staleness_s: float, clock: Callable[[], float]) -> None:
        self._naming = naming
        self._staleness_s = staleness_s
        self._clock = clock
        self._directory: Directory | None = None
        self._is_open = asyncio.Event()

    async def admit(self, admission: Admission) -> Admission:
        """With the groups of the directory, and until the caller leaves. Raises SubjectDeactivated, DirectoryStale."""
        directory = await self.directory()
        is_key, given_at, caller = admission.key is not None, admission.given_at, admission.principal
        principal = directory.admit(caller, is_key=is_key, given_at=given_at)

        async def ended() -> Unauthenticated:
            left = asyncio.ensure_future(directory.ended(caller, principal.groups, is_key=is_key, given_at=given_at))
            ends = {left} if admission.ended is None else {left, asyncio.ensure_future(admission.ended())}
            try:
                done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                return done.pop().result()
            finally:
                for each in ends:
                    each.cancel()

        return replace(admission, principal=principal, ended=ended)

    async def directory(self) -> Directory:
        """A gateway that has just started lets a request wait for the records. Raises DirectoryStale."""
        if not self._is_open.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_RECORDS_S):
                    await self._is_open.wait()
        if self._directory is None or not self._is_open.is_set():
            raise DirectoryStale("it is not known yet who was deactivated; try again in a few seconds")
        return self._directory

    async def run(self, nats: Nats) -> None:
        """Follows the records until cancelled."""
        complaints = FailureLogLimit()
        while self._directory is None:
            try:
                self._directory = await Directory.open(
                    nats, self._naming, staleness_s=self._staleness_s, clock=self._clock
                )
            except GroundworkError as error:
                if complaints.is_due():
                    _log.warning("directory_not_opened", error=error.message)
                await asyncio.sleep(_RETRY_S)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._directory.run())
            await self._directory.wait_confirmed()
            self._is_open.set()
