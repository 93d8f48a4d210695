"""Brings a backup back: into a message store that runs, or into a data directory that is not in use."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from datetime import datetime
from pathlib import Path

from kit.access.key_folder import KeyFolder
from kit.errors import AlreadyExists
from kit.jetstream import KeyValue, Nats
from kit.jetstream.reading import last_messages
from kit.jetstream.streams import stream_names
from ops.backup.archive import Archive, FolderEntry, Manifest, StreamEntry, open_verified
from ops.backup.snapshot import PIECE_BYTES, StreamCopy, bring_back
from ops.errors import BackupUnusable, RestoreRefused
from ops.local_store import LocalStore, OpenStore
from ops.signers import SIGNERS
from ops.watch.records import is_tombstone, read_entries, read_totals
from ops.watch.runs import marker_for
from services.ingest.state import DOCUMENTS
from services.orchestrator.state import MARKERS, RECORDS
from services.retriever.state import ACTIVE_REVISIONS

FOLDERS = frozenset({"retriever"})
"""Of a data directory, that a backup may hold."""


async def restore_into(nats: Nats, archive: Archive, *, replace: bool, on_stream: Callable[[str], None]) -> None:
    """Makes every stream of the backup in a store that runs. Streams that hold something are refused, or removed first.

    Raises RestoreRefused before anything is written, DataLoss when the store does not take a stream.
    """
    there = set(await stream_names(nats))
    streams = archive.manifest.streams
    in_the_way = [stream.name for stream in streams if stream.name in there]
    if not replace:
        filled = [name for name in in_the_way if (await nats.js.stream_info(name)).state.messages]
        if filled:
            raise RestoreRefused(
                f"The message store holds data already: {', '.join(filled)}. Nothing was changed. Stop all services, and "
                "give --replace to remove these streams and have those of the backup instead"
            )
    for name in in_the_way:
        await nats.js.delete_stream(name)
    for stream in streams:
        on_stream(stream.name)
        await bring_back(nats, StreamCopy(stream.config, stream.state), _pieces(archive, stream))
    await _drop_pointers_without_records(nats)
    await _mark_open_runs(nats)


async def _drop_pointers_without_records(nats: Nats) -> None:
    """Removes pointers to documents that have no record. Records were copied first: a document that was uploaded in between has
    a pointer only. It could not be made again, so the retriever would miss it for ever."""
    if not await read_totals(nats, ACTIVE_REVISIONS.stream):
        return
    documents = await read_entries(nats, DOCUMENTS) if await read_totals(nats, DOCUMENTS.stream) else {}
    pointers = await KeyValue.open(nats, ACTIVE_REVISIONS.name)
    for subject, entry in (await read_entries(nats, ACTIVE_REVISIONS)).items():
        key = subject.removeprefix(ACTIVE_REVISIONS.prefix)
        record = documents.get(DOCUMENTS.prefix + key)
        if not entry.gone and not is_tombstone(entry.value or b"") and (record is None or record.gone):
            await pointers.purge(key)


async def _mark_open_runs(nats: Nats) -> None:
    """Gives each run that has not ended its marker. Markers were copied first: a run that began in between has a record only, and
    no orchestrator would go on with it."""
    if not await read_totals(nats, RECORDS.stream):
        return
    markers = await KeyValue.open(nats, MARKERS.name)
    async with aclosing(last_messages(nats, RECORDS.stream, f"{RECORDS.prefix}>")) as records:
        async for record in records:
            if (marker := marker_for(record.data)) is not None:
                with suppress(AlreadyExists):
                    await markers.create(record.subject.removeprefix(RECORDS.prefix), marker)


async def restore_data_dir(
    local: LocalStore,
    file: Path,
    open_store: OpenStore,
    *,
    replace: bool,
    now: Callable[[], datetime],
    on_stream: Callable[[str], None],
) -> tuple[Manifest, Path | None]:
    """Makes the message store of a data directory that this process holds; returns what was restored, and where the store that it
    replaces was put. The new store takes its place in one step, once it is whole. Raises RestoreRefused, BackupUnusable.

    Jobs in its queues were signed where the backup was made: those keys are good for jobs here, too.
    """
    store, unfinished = local.nats_store, local.path / "nats.restoring"
    filled = await asyncio.to_thread(_has_files, store)
    if filled and not replace:
        raise RestoreRefused(
            f"{local.path} holds data already. Nothing was changed. Restore into another directory with "
            "GROUNDWORK_DATA_DIR=…, or give --replace: the present data is then moved aside, not removed"
        )
    with open_verified(file) as archive:
        await asyncio.to_thread(shutil.rmtree, unfinished, ignore_errors=True)
        await asyncio.to_thread(unfinished.mkdir, mode=0o700)
        async with open_store(unfinished) as nats:
            await restore_into(nats, archive, replace=False, on_stream=on_stream)
        await asyncio.to_thread(KeyFolder(local.keys).trust_for_jobs, SIGNERS, archive.manifest.public_keys)
        replaced = f"replaced-{now():%Y%m%dT%H%M%S}"
        for folder in archive.manifest.folders:
            await asyncio.to_thread(_restore_folder, archive, folder, local.path, replaced)
        aside = local.path / f"nats.{replaced}" if filled else None
        await asyncio.to_thread(_take_place, local, unfinished, aside)
        return archive.manifest, aside


async def _pieces(archive: Archive, stream: StreamEntry) -> AsyncGenerator[bytes, None]:
    for number in range(stream.parts):
        part = await asyncio.to_thread(archive.part, stream.name, number)
        for start in range(0, len(part), PIECE_BYTES):
            yield part[start : start + PIECE_BYTES]


def _restore_folder(archive: Archive, entry: FolderEntry, path: Path, replaced: str) -> None:
    """Puts a folder in place in one step; one that is there is moved aside."""
    if entry.name not in FOLDERS:
        raise BackupUnusable(f"The backup has a folder {entry.name!r}, which this Groundwork does not know")
    made, place = path / f"{entry.name}.restoring", path / entry.name
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(mode=0o700)
    archive.extract_folder(entry, made)
    if place.exists() and _has_files(place):
        place.rename(path / f"{entry.name}.{replaced}")
    shutil.rmtree(place, ignore_errors=True)
    made.replace(place)


def _take_place(local: LocalStore, made: Path, aside: Path | None) -> None:
    """The ledger goes last: a store that is missing because this was interrupted is noticed at the next start."""
    if aside:
        local.nats_store.rename(aside)
    else:
        shutil.rmtree(local.nats_store, ignore_errors=True)
    made.replace(local.nats_store)
    local.ledger_file.unlink(missing_ok=True)


def _has_files(folder: Path) -> bool:
    return any(path.is_file() for path in folder.rglob("*"))
