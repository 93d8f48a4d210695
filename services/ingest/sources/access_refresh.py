"""Refreshes who may read the documents of a source by a clock of its own: also while the source is paused, and while a sync takes
long. A source that does not say it for too long has its documents withheld: owners of their collection alone read them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kit.errors import GroundworkError
from services.ingest.documents.models import Failure
from services.ingest.sources.failures import in_time, why_failed
from services.ingest.sources.known import KnownFile, KnownFiles
from services.ingest.sources.models import AccessState, FileReaders, SourceFile, SourceRecord
from services.ingest.sources.opening import SourceOpener
from services.ingest.sources.ports import AccessReader, SourceStore
from services.ingest.sources.source_access import SourceAccess
from services.ingest.sources.syncing import SourceSyncs

_RETRY_S, _RETRY_LEAST_S = 60.0, 10.0
"""Until the next refresh behind one that failed, unless it is due earlier or the source says when to come back."""


@dataclass(frozen=True)
class AccessTimes:
    """When who may read is refreshed."""

    every_s: float = 900.0
    withhold_after_s: float = 3600.0
    """Since the source last said who may read."""


class AccessRefresh:
    """Two refreshes of one source at a time are harmless: both leave lists that the source named."""

    def __init__(
        self,
        *,
        sources: SourceStore,
        opener: SourceOpener,
        known: KnownFiles,
        syncs: SourceSyncs,
        access: SourceAccess,
        times: AccessTimes,
        now: Callable[[], datetime],
    ) -> None:
        self._sources = sources
        self._opener = opener
        self._known = known
        self._syncs = syncs
        self._access = access
        self._times = times
        self._now = now

    def is_due(self, source: SourceRecord) -> bool:
        """Whether the source says who may read its files, and is to say it again."""
        if source.deleting or not self._opener.tells_readers(source):
            return False
        every = timedelta(seconds=self._times.every_s)
        wait = (source.access.next_at or source.created_at + every) - self._now()
        # A wait that is longer than any is that of a clock which was set back.
        return wait <= timedelta() or wait > timedelta(days=8)

    async def refresh(self, source: SourceRecord) -> None:
        """One refresh, whose outcome is in the record then. Raises Unavailable when something cannot be written."""
        known = await self._known.of(source.place)
        readers: Mapping[str, FileReaders] = {}
        failed: GroundworkError | None = None
        try:
            readers = await self._ask(source, known)
        except* Exception as errors:
            failed = why_failed(errors, "access_not_refreshed")
        if failed is not None:
            await self._note_failure(source, failed, known)
            return
        files = [SourceFile(key, readers=readers.get(key, FileReaders())) for key in known]
        is_all = await self._access.refresh(source, files, known)
        wait_s = self._times.every_s if is_all else min(self._times.every_s, _RETRY_S)
        at = self._now()
        await self._note(source, lambda _: AccessState(refreshed_at=at, next_at=at + timedelta(seconds=wait_s)))

    async def _ask(self, source: SourceRecord, keys: Collection[str]) -> Mapping[str, FileReaders]:
        newer = self._syncs.newer_readers(source.place)
        async with self._opener.open(source) as reader:
            assert isinstance(reader, AccessReader)
            readers = await in_time(reader.describe_access(keys))
        if newer is not None:
            newer.update(readers)
        return readers

    async def _note_failure(
        self, source: SourceRecord, failed: GroundworkError, known: Mapping[str, KnownFile]
    ) -> None:
        """Withholds the documents once the source has not said for too long who may read them."""
        at = self._now()
        told_at = source.access.refreshed_at
        if told_at is None:  # since an earlier release knew of syncs alone
            told_at = (source.sync.ended_at if source.sync.error is None else None) or source.created_at
        withhold_at = told_at + timedelta(seconds=self._times.withhold_after_s)
        wait_s = max(_RETRY_LEAST_S, failed.retry_after_s or min(self._times.every_s, _RETRY_S))
        next_at = at + timedelta(seconds=wait_s)
        is_withheld = at >= withhold_at
        if is_withheld:
            await self._access.refresh(source, [SourceFile(key, readers=FileReaders()) for key in known], known)
        else:
            next_at = min(next_at, withhold_at)
        error = Failure(failed.reason, failed.message)
        await self._note(
            source,
            lambda now: replace(now, refreshed_at=told_at, next_at=next_at, error=error, is_withheld=is_withheld),
        )

    async def _note(self, source: SourceRecord, change: Callable[[AccessState], AccessState]) -> None:
        await self._sources.change(*source.place, lambda now: replace(now, access=change(now.access)))
