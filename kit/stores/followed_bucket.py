"""The records of one bucket in memory, so that deciding what may be shown asks nobody. The records follow the bucket; changes
arrive within milliseconds."""

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Generic, TypeVar

import structlog

from kit.errors import GroundworkError, Unavailable
from kit.jetstream import Entry, KeyValue
from kit.process.waiting import FailureLogLimit

_log = structlog.get_logger()
_CHECKS_PER_BOUND = 6
"""Two or three of them may be lost or late before the records count as stale."""
_RETRY_S = 0.5
_RESYNC_S = 600.0
"""Everything is read again so often: what a broken connection swallowed is seen at last."""
_OWN_WRITE_TIMEOUT_S = 2.0

ValueT = TypeVar("ValueT")


class FollowedBucket(Generic[ValueT]):
    """All entries of a bucket, decoded. Nothing is decided by records that were not known for `staleness_s` to be all that is
    stored: then `stale` makes the error to raise."""

    def __init__(
        self,
        bucket: KeyValue,
        decode: Callable[[Entry], ValueT],
        stale: Callable[[float], Unavailable],
        *,
        staleness_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bucket = bucket
        self._decode = decode
        self._stale = stale
        self._staleness_s = staleness_s
        self._clock = clock
        self._records: dict[str, ValueT] = {}
        self._reached = 0
        """Revision that was read last."""
        self._followed_to = 0
        """Revision up to which everything is known."""
        self._progress = asyncio.Condition()
        self._confirmed_at_s: float | None = None
        self._confirmed = asyncio.Event()

    async def run(self) -> None:
        """Follows the bucket until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._confirm())

    async def wait_confirmed(self) -> None:
        """Returns once the records have been all that is stored: for readiness."""
        await self._confirmed.wait()

    def require_fresh(self) -> None:
        """Raises what `stale` makes when entries may have changed without this process knowing."""
        confirmed_at_s = self._confirmed_at_s
        if confirmed_at_s is None or self._clock() - confirmed_at_s > self._staleness_s:
            raise self._stale(self._staleness_s)

    async def wait_written(self, revision: int) -> None:
        """Returns once a write of this process is known here, so that who wrote reads it at once. Gives up after a moment: the
        write is done, and what is known here follows."""
        try:
            async with asyncio.timeout(_OWN_WRITE_TIMEOUT_S):
                await self._wait_followed(revision)
        except TimeoutError:
            _log.warning("write_not_heard_of", bucket=type(self).__name__, revision=revision)

    def _note(self, key: str, entry: Entry | None) -> None:
        """Takes over an entry; None for one that is gone."""
        if entry is None:
            self._records.pop(key, None)
        else:
            self._records[key] = self._decode(entry)

    async def _follow(self) -> None:
        complaints = FailureLogLimit()
        while True:
            try:
                async with asyncio.timeout(_RESYNC_S):
                    await self._follow_once()
            except TimeoutError:
                continue
            except GroundworkError as error:
                if complaints.is_due():
                    _log.warning(
                        "bucket_watch_lost", bucket=type(self).__name__, reason=error.reason, error=error.message
                    )
            await asyncio.sleep(_RETRY_S)

    async def _follow_once(self) -> None:
        present: set[str] | None = set()
        # The bucket may have been made anew, and its numbers begin again: nothing is confirmed until all is read.
        self._reached = self._followed_to = 0
        async with aclosing(self._bucket.watch()) as changes:
            async for entry in changes:
                if entry is None:
                    for key in set(self._records).difference(present or ()):
                        self._note(key, None)
                    present = None
                else:
                    self._note(entry.key, entry if entry.value is not None else None)
                    if present is not None and entry.value is not None:
                        present.add(entry.key)
                    self._reached = entry.revision
                if present is None:
                    async with self._progress:
                        self._followed_to = self._reached
                        self._progress.notify_all()

    async def _wait_followed(self, revision: int) -> None:
        async with self._progress:
            await self._progress.wait_for(lambda: self._followed_to >= revision)

    async def _confirm(self) -> None:
        interval_s = self._staleness_s / _CHECKS_PER_BOUND
        while True:
            is_confirmed = await self._check(interval_s)
            await asyncio.sleep(interval_s if is_confirmed else min(_RETRY_S, interval_s))

    async def _check(self, timeout_s: float) -> bool:
        asked_at_s = self._clock()
        try:
            async with asyncio.timeout(timeout_s):
                revision = await self._bucket.last_revision()
                await self._wait_followed(revision)
        except (GroundworkError, TimeoutError):
            return False
        self._confirmed_at_s = asked_at_s
        self._confirmed.set()
        return True
