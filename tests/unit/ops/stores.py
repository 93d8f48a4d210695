"""A real message store with a ledger beside it, for tests that damage it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from groundwork.orchestrator.v1 import orchestrator_pb2 as api
from groundwork.orchestrator.v1 import record_pb2 as pb

from kit.jetstream import KeyValue, Nats, ObjectStore, connect
from kit.jetstream.condition import Finding
from kit.testing.nats import NatsServer
from ops.watch import findings
from ops.watch.compare import mendable
from ops.watch.keeper import Keeper
from ops.watch.ledger import Ledger
from ops.watch.rounds import StoreWatch, forget_indexes

AT = datetime(2026, 11, 22, tzinfo=UTC)


@dataclass
class Store:
    """A server, and the ledger beside its folder."""

    server: NatsServer
    ledger_file: Path

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Nats, Keeper]]:
        ledger, _ = await asyncio.to_thread(Ledger.open, self.ledger_file)
        try:
            async with connect(self.server.url, name="test") as nats:
                yield nats, Keeper(nats, ledger)
        finally:
            await asyncio.to_thread(ledger.close)

    async def rebuild(self, streams: Sequence[str]) -> None:
        await self.server.stop()
        await asyncio.to_thread(forget_indexes, self.server.store, streams)
        await self.server.start()

    def block(self, stream: str) -> Path:
        """The first file of a stream's messages."""
        return self.server.store / "jetstream" / "$G" / "streams" / stream / "msgs" / "1.blk"


async def file_of(number: int) -> AsyncIterator[bytes]:
    yield f"file {number}".encode()


def record(number: int, status: str = "ready") -> bytes:
    fields = {
        "tenant_id": "local",
        "document_id": f"d{number}",
        "collection_id": "default",
        "name": f"n{number}.txt",
        "status": status,
        "content": {"sha256": f"hash{number}"},
    }
    return json.dumps(fields).encode()


async def upload(nats: Nats, number: int) -> None:
    """As ingestion does: file, name, record; and the retriever its pointer."""
    await (await ObjectStore.open(nats, "FILES")).put(f"local/hash{number}", file_of(number))
    await (await KeyValue.open(nats, "DOCUMENT_NAMES")).put(f"local.default.name{number}", f"d{number}".encode())
    await (await KeyValue.open(nats, "DOCUMENTS")).put(f"local.d{number}", record(number))
    await (await KeyValue.open(nats, "ACTIVE_REVISIONS")).put(f"local.d{number}", b'{"deleted": false}')


def run_record(**fields: object) -> bytes:
    """As the orchestrator writes it."""
    record = pb.RunRecord(request=api.StartRunRequest(question="Why?"), subject="ann", status=api.RUN_STATUS_RUNNING)
    record.created_at.FromDatetime(AT)
    for name, value in fields.items():
        if isinstance(value, datetime):
            getattr(record, name).FromDatetime(value)
        else:
            setattr(record, name, value)
    return record.SerializeToString()


async def keys(nats: Nats, bucket: str) -> list[str]:
    return sorted([entry.key async for entry in (await KeyValue.open(nats, bucket)).entries(">")])


async def mended(keeper: Keeper, *, quiet: bool = True) -> list[Finding]:
    """What a start does."""
    comparison = await keeper.compare()
    done = await keeper.mend(comparison, mendable(comparison, quiet=quiet))
    done |= await keeper.queues.put_back(comparison.queues, quiet=quiet)
    await keeper.settle(comparison, done)
    return [*findings.losses(comparison, done, AT), *findings.fileless(comparison.after(done), AT)]


def watch_over(nats: Nats, keeper: Keeper) -> StoreWatch:
    return StoreWatch(nats, keeper, now=lambda: AT, say=lambda line: None)


def by_place(findings: list[Finding]) -> dict[tuple[str, str], tuple[int, int]]:
    return {(finding.where, finding.kind): (finding.count, finding.repaired) for finding in findings}


def truncate(block: Path) -> None:
    block.write_bytes(block.read_bytes()[: block.stat().st_size // 2])
