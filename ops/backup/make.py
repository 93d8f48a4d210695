"""Makes a backup of a message store that runs, on one machine or in a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from kit.access.keys import Jwk
from kit.jetstream import Nats
from kit.jetstream.streams import stream_names
from ops.backup.archive import PART_BYTES, ArchiveWriter, Manifest, StreamEntry, write_archive
from ops.backup.snapshot import copy_of
from ops.errors import BackupUnusable
from ops.state import STORES, backup_order

LEASE_S = 3600.0
"""Streams whose messages expire within this time hold leases and the like: they would be out of date when restored."""


async def back_up(
    nats: Nats,
    file: Path,
    now: Callable[[], datetime],
    on_stream: Callable[[str], None],
    *,
    public_keys: Sequence[Jwk] = (),
    damage: Sequence[str] = (),
    indexes: Path | None = None,
) -> Manifest:
    """Writes all streams to `file`, with the keys that verify their jobs, and what is known to be wrong with them. `indexes`: the
    folder of both, which nobody writes to meanwhile; None leaves them out.

    Raises BackupUnusable when the file is there already, DataLoss when a stream cannot be read.
    """
    if await asyncio.to_thread(file.exists):
        raise BackupUnusable(f"{file} is there already. Choose another name, or remove it first")
    with write_archive(file) as writer:
        created_at = now().isoformat()
        entries = []
        secret = {store.stream for store in STORES if store.is_secret}
        for stream in order_streams(await stream_names(nats)):
            max_age_s = (await nats.js.stream_info(stream)).config.max_age or 0
            if stream not in secret and not 0 < max_age_s <= LEASE_S:
                on_stream(stream)
                entries.append(await _copy(nats, stream, writer))
        folders = (await asyncio.to_thread(writer.add_folder, indexes),) if indexes else ()
        manifest = Manifest(
            created_at, tuple(entries), public_keys=tuple(public_keys), damage=tuple(damage), folders=folders
        )
        await asyncio.to_thread(writer.add_manifest, manifest)
    return manifest


def order_streams(streams: list[str]) -> list[str]:
    """Streams that need others come before them, since each is copied at another instant: a record in the copy has its file there,
    a thread its messages, an idempotency key what was made under it. The other way round a record could be there without its file,
    which nothing can mend; ingestion's upkeep removes a file without a record. The streams without such needs come last, by name.
    """
    first = [store.stream for store in backup_order() if store.stream in streams]
    return [*first, *sorted(set(streams) - set(first))]


async def _copy(nats: Nats, stream: str, writer: ArchiveWriter) -> StreamEntry:
    async with copy_of(nats, stream) as (copy, pieces):
        part = bytearray()
        async for piece in pieces:
            part += piece
            if len(part) >= PART_BYTES:
                await asyncio.to_thread(writer.add_part, stream, bytes(part))
                part.clear()
        if part:
            await asyncio.to_thread(writer.add_part, stream, bytes(part))
    return writer.end_stream(copy.config, copy.state)
