"""One sync of a source: what is new or changed is taken, what has another name is renamed, what is gone is removed.

Nothing of a sync has to be remembered for the next: which files have been taken, and in which version, is said by the records of
their documents, each written in one piece with its job. A sync that was cut off anywhere is done again and finds what is left.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from kit.errors import Aborted, Cancelled, DeadlineExceeded, GroundworkError, Internal, ResourceExhausted, Unavailable
from services.ingest.documents.deletion import Deletion
from services.ingest.documents.models import Failure, Status
from services.ingest.errors import FileNotTaken, SourceAway, SourceBusy, SourceEmpty
from services.ingest.ports import DocumentStore
from services.ingest.sources.comparing import gone_keys, is_wanted
from services.ingest.sources.failures import in_time, why_failed
from services.ingest.sources.known import KnownFile, KnownFiles
from services.ingest.sources.models import (
    FAILING_KEPT,
    Counts,
    FailingFile,
    FileReaders,
    SourceFile,
    SourceRecord,
    SyncState,
)
from services.ingest.sources.opening import SourceOpener
from services.ingest.sources.ports import SourceReader, SourceStore
from services.ingest.sources.source_access import SourceAccess
from services.ingest.sources.taking import FileTaking

_log = structlog.get_logger()
_AT_ONCE = 8
_REMOVED_TOGETHER = 50
_TOLD_EVERY_S = 1.0
_GIVE_UP_AFTER = 20
"""Files one after the other that could not be taken because something was away or full: then it is not the files."""
_RETRY_S, _RETRY_LEAST_S = 300.0, 10.0
"""Until the next sync behind one that failed as a whole, unless it is due earlier or the source says when to come back."""
_TEMPORARY = (Unavailable, ResourceExhausted, DeadlineExceeded, Aborted, Cancelled, Internal)


@dataclass
class _Progress:
    """What a sync has done so far."""

    counts: Counts = field(default_factory=Counts)
    failing: dict[str, FailingFile] = field(default_factory=dict)
    cursor: str = ""
    failures_in_a_row: int = 0
    lists_again: bool = False
    """Whether something that the source says has to wait until a document is indexed. The next sync lists it again."""

    def count(self, **what: int) -> None:
        now = self.counts
        self.counts = replace(now, **{name: getattr(now, name) + number for name, number in what.items()})

    def fail(self, file: FailingFile) -> None:
        self.failing[file.key] = file
        self.count(failed=1, done=1)


class SourceSyncs:
    """Syncs sources. Of two syncs of one source at a time each file would still become one document."""

    def __init__(
        self,
        *,
        sources: SourceStore,
        opener: SourceOpener,
        known: KnownFiles,
        documents: DocumentStore,
        taking: FileTaking,
        deletion: Deletion,
        access: SourceAccess,
        now: Callable[[], datetime],
    ) -> None:
        self._sources = sources
        self._opener = opener
        self._known = known
        self._documents = documents
        self._taking = taking
        self._deletion = deletion
        self._access = access
        self._now = now
        self._newer_readers: dict[tuple[str, str], dict[str, FileReaders]] = {}
        """By source and key, of what a refresh of access reads while a sync works by an older listing."""

    def newer_readers(self, place: tuple[str, str]) -> dict[str, FileReaders] | None:
        """Where a refresh of access notes what the source says from now on; None while no listing is worked on."""
        return self._newer_readers.get(place)

    async def sync(self, source: SourceRecord) -> None:
        """One sync, whose outcome is in the record then. Raises Unavailable when the record cannot be written."""
        progress, failed = _Progress(), None
        begun_from: list[SourceRecord] = []

        def begun(now: SourceRecord) -> SourceRecord:
            begun_from.append(now)
            state = replace(now.sync, began_at=self._now(), counts=Counts())
            return replace(now, requested_at=None, accepts_empty=False, sync=state)

        if await self._sources.change(*source.place, begun) is None:
            return
        source = begun_from[-1]
        try:
            async with self._record_progress(source, progress):
                await self._bring_into_step(source, progress)
        except* Exception as errors:
            failed = why_failed(errors)
        finally:
            self._newer_readers.pop(source.place, None)

        def ended(now: SourceRecord) -> SourceRecord:
            at, wait_s = self._now(), float(now.every_s)
            if failed:
                wait_s = max(_RETRY_LEAST_S, failed.retry_after_s or min(wait_s, _RETRY_S))
            return replace(
                now,
                sync=SyncState(
                    ended_at=at,
                    next_at=at + timedelta(seconds=wait_s),
                    counts=progress.counts,
                    failing=_kept(progress),
                    failing_count=len(progress.failing),
                    cursor=now.sync.cursor if failed else progress.cursor,
                    error=Failure(failed.reason, failed.message) if failed else None,
                ),
            )

        await self._sources.change(*source.place, ended)

    @asynccontextmanager
    async def _record_progress(self, source: SourceRecord, progress: _Progress) -> AsyncIterator[None]:
        """Writes how far a sync is into its source's record while the block runs."""

        def moved_on(now: SourceRecord) -> SourceRecord:
            state = replace(
                now.sync, counts=progress.counts, failing=_kept(progress), failing_count=len(progress.failing)
            )
            return replace(now, sync=state)

        async def tell() -> None:
            reported = progress.counts
            while True:
                await asyncio.sleep(_TOLD_EVERY_S)
                if progress.counts != reported:
                    reported = progress.counts
                    await self._sources.change(*source.place, moved_on)

        async with asyncio.TaskGroup() as group:
            telling = group.create_task(tell())
            try:
                yield
            finally:
                telling.cancel()

    async def _bring_into_step(self, source: SourceRecord, progress: _Progress) -> None:
        async with self._opener.open(source) as reader:
            retries = source.requested_at is not None
            known = await self._known.of(source.place)
            had_trouble = source.sync.error is not None or source.sync.failing_count > 0
            reads_all = had_trouble or (retries and any(file.is_rejected for file in known.values()))
            listing = await in_time(reader.list_changes("" if reads_all else source.sync.cursor))
            self._newer_readers[source.place] = {}
            known = await self._known.of(source.place)
            if listing.is_complete and known and not listing.files and not source.accepts_empty:
                raise SourceEmpty(
                    f"the source has no files any more, and {len(known)} before; if that is right, run it with accept_empty, "
                    "which removes their documents"
                )
            for problem in listing.problems:
                progress.fail(problem)
            wanted = [file for file in listing.files if is_wanted(source, file, known, retries=retries)]
            read_anew = {file.key for file in wanted}
            as_they_are = [file for file in listing.files if file.key not in read_anew]
            await self._access.narrow(source, (self._as_told(source, file) for file in wanted), known)
            all_are = await self._access.refresh(source, (self._as_told(source, file) for file in as_they_are), known)
            progress.lists_again = not all_are
            gone = gone_keys(listing, known)
            progress.count(total=len(wanted) + len(gone) + len(listing.problems))
            await self._take_all(source, reader, wanted, known, gone, progress)
            still_known = await self._known.of(source.place)
            await self._remove(source, [still_known[key] for key in gone if key in still_known], progress)
            progress.cursor = source.sync.cursor if progress.lists_again else listing.cursor

    def _as_told(self, source: SourceRecord, file: SourceFile) -> SourceFile:
        """The file with the readers that a refresh of access has read since it was listed."""
        newer = self._newer_readers.get(source.place, {}).get(file.key)
        return file if newer is None else replace(file, readers=newer)

    async def _take_all(
        self,
        source: SourceRecord,
        reader: SourceReader,
        wanted: Sequence[SourceFile],
        known: dict[str, KnownFile],
        gone: Collection[str],
        progress: _Progress,
    ) -> None:
        left_behind: dict[str, list[str]] = defaultdict(list)
        """Documents by content whose files are gone: a new file of that content is one of them under another name."""
        for key in gone:
            left_behind[known[key].sha256].append(known[key].document_id)
        files = iter(wanted)

        async def work() -> None:
            for file in files:
                await self._take(source, reader, file, known.get(file.key), left_behind, progress)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(_AT_ONCE, len(wanted))):
                group.create_task(work())

    async def _take(
        self,
        source: SourceRecord,
        reader: SourceReader,
        file: SourceFile,
        known: KnownFile | None,
        left_behind: dict[str, list[str]],
        progress: _Progress,
    ) -> None:
        try:
            taken = await self._taking.take(source, reader, self._as_told(source, file), known, left_behind)
        except FileNotTaken as error:
            progress.fail(FailingFile(file.key, error.reason, error.message))
        except (SourceAway, SourceBusy):
            raise  # it is not the file
        except GroundworkError as error:
            progress.fail(FailingFile(file.key, error.reason, error.message))
            progress.failures_in_a_row += isinstance(error, _TEMPORARY)
            if progress.failures_in_a_row >= _GIVE_UP_AFTER:
                raise
        else:
            progress.failures_in_a_row = 0
            progress.lists_again = progress.lists_again or not taken.is_whole
            if known is None:
                was_moved = taken.was_moved
                # A move is the removal of the old name as well.
                progress.count(done=1, moved=was_moved, added=not was_moved, total=-was_moved)
            else:
                changed = known.sha256 != taken.document.content.sha256
                progress.count(done=1, changed=changed, moved=known.name != taken.document.name)

    async def _remove(self, source: SourceRecord, files: Sequence[KnownFile], progress: _Progress) -> None:
        for start in range(0, len(files), _REMOVED_TOGETHER):
            removed = await self._remove_some(source, files[start : start + _REMOVED_TOGETHER])
            progress.count(removed=removed, done=removed)

    async def _remove_some(self, source: SourceRecord, files: Iterable[KnownFile]) -> int:
        found = [await self._documents.get(source.tenant_id, file.document_id) for file in files]
        ours = [
            stored
            for stored in found
            if stored is not None
            and stored.document.status is not Status.DELETED
            and stored.document.origin is not None
            and stored.document.origin.source_id == source.source_id
        ]
        await self._deletion.delete_all(source.tenant_id, ours)
        return len(ours)

    async def remove_all(self, source: SourceRecord) -> None:
        """Removes a source with its documents."""
        while files := list((await self._known.of(source.place)).values()):
            for start in range(0, len(files), _REMOVED_TOGETHER):
                await self._remove_some(source, files[start : start + _REMOVED_TOGETHER])
        await self._sources.purge(*source.place)


def _kept(progress: _Progress) -> tuple[FailingFile, ...]:
    return tuple(progress.failing[key] for key in sorted(progress.failing)[:FAILING_KEPT])
