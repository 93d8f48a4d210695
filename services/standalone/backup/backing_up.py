"""Makes a backup of a message store that runs, on one machine or in a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from kit.access.keys import Jwk
from kit.jetstream import Nats
from kit.jetstream.snapshot import copy_of
from kit.jetstream.streams import stream_names
from services.standalone.backup.archive import PART_BYTES, ArchiveWriter, Manifest, StreamEntry, writing
from services.standalone.errors import BackupUnusable

ORDER = (
    "KV_INGEST_KEYS",
    "KV_MEMORY_KEYS",
    "KV_RUN_KEYS",
    "KV_RUN_ACTIVE",
    "KV_RUN_RECORDS",
    "RUNS",
    "KV_THREADS",
    "KV_THREAD_MESSAGES",
    "KV_DOCUMENTS",
    "KV_DOCUMENT_NAMES",
    "KV_COLLECTIONS",
    "KV_COLLECTION_MODELS",
    "KV_ACTIVE_REVISIONS",
    "OBJ_FILES",
)
"""Each stream is copied at one instant, but not all at the same. What refers comes before what it refers to: a record in the copy
has its file there, a thread its messages, an idempotency key what was made under it. The other way round a record could be
there without its file, which nothing can mend; a file without a record is removed by ingestion's upkeep. Streams not named here
come last."""
SECRET = frozenset({"KV_MODEL_CREDENTIALS"})
"""Keys that users brought for one question, sealed. They are good for an hour, and nothing of them is to be in a backup."""
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
) -> Manifest:
    """Writes all streams to `file`, with the keys that verify their jobs, and what is known to be wrong with them.

    Raises BackupUnusable when the file is there already, DataLoss when a stream cannot be read.
    """
    if await asyncio.to_thread(file.exists):
        raise BackupUnusable(f"{file} is there already. Choose another name, or remove it first")
    with writing(file) as writer:
        created_at = now().isoformat()
        entries = []
        for stream in in_order(await stream_names(nats)):
            max_age_s = (await nats.js.stream_info(stream)).config.max_age or 0
            if stream not in SECRET and not 0 < max_age_s <= LEASE_S:
                on_stream(stream)
                entries.append(await _copy(nats, stream, writer))
        manifest = Manifest(created_at, tuple(entries), public_keys=tuple(public_keys), damage=tuple(damage))
        await asyncio.to_thread(writer.add_manifest, manifest)
    return manifest


def in_order(streams: list[str]) -> list[str]:
    """By :data:`ORDER`, then the others by name."""
    return [*(name for name in ORDER if name in streams), *sorted(set(streams) - set(ORDER))]


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
