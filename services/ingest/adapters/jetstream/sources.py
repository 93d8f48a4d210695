"""Sources in a JetStream key-value bucket, and the kinds of sources that there are."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing

from kit.dropped_in import modules_in
from kit.errors import Aborted
from kit.jetstream import KeyValue, Nats
from services.ingest.adapters import sources
from services.ingest.adapters.jetstream.record_reader import RecordReader
from services.ingest.metrics import Metrics
from services.ingest.sources.models import SourceRecord
from services.ingest.sources.ports import SourceKind
from services.ingest.sources.records import decode_source, encode_source
from services.ingest.state import SOURCES


class NatsSourceStore:
    """Bucket SOURCES: `<tenant>.<source>`."""

    def __init__(self, bucket: KeyValue, metrics: Metrics) -> None:
        self._bucket = bucket
        self._reader = RecordReader("source", decode_source, _key, metrics.unreadable_records)

    @classmethod
    async def open(cls, nats: Nats, metrics: Metrics) -> "NatsSourceStore":
        return cls(await KeyValue.open(nats, SOURCES.name), metrics)

    async def get(self, tenant_id: str, source_id: str) -> SourceRecord | None:
        entry = await self._bucket.get(f"{tenant_id}.{source_id}")
        return self._reader.read(entry) if entry else None

    async def create(self, record: SourceRecord) -> None:
        await self._bucket.create(_key(record), encode_source(record))

    async def change(
        self, tenant_id: str, source_id: str, change: Callable[[SourceRecord], SourceRecord]
    ) -> SourceRecord | None:
        key = f"{tenant_id}.{source_id}"
        while (entry := await self._bucket.get(key)) is not None:
            changed = change(self._reader.read(entry))
            try:
                await self._bucket.update(key, encode_source(changed), entry.revision)
            except Aborted:
                continue
            return changed
        return None

    async def purge(self, tenant_id: str, source_id: str) -> None:
        await self._bucket.purge(f"{tenant_id}.{source_id}")

    async def all_of(self, tenant_id: str) -> AsyncIterator[SourceRecord]:
        async for entry in self._bucket.entries(f"{tenant_id}.*"):
            record = self._reader.read_if_possible(entry)
            if record is not None:
                yield record

    async def watch(self) -> AsyncGenerator[tuple[tuple[str, str], SourceRecord | None], None]:
        async with aclosing(self._bucket.watch()) as changes:
            async for entry in changes:
                if entry is not None:
                    tenant_id, _, source_id = entry.key.partition(".")
                    yield (tenant_id, source_id), self._reader.read_if_possible(entry)


def source_kinds() -> Mapping[str, SourceKind]:
    """The modules of services/ingest/adapters/sources, by the names of their kinds."""
    kinds: list[SourceKind] = [load().KIND for _, load in modules_in(sources)]
    return {kind.name: kind for kind in kinds}


def _key(record: SourceRecord) -> str:
    return f"{record.tenant_id}.{record.source_id}"
