"""Which runs hold text of which documents, threads and earlier runs, in two NATS key-value buckets.

RUN_SOURCES has a key `<tenant>.<kind>.<item>.<run>` for each source of each run, so that the runs of a source are listed by the
server; FORGOTTEN a key `<tenant>.<kind>.<item>` for each source that is being forgotten or was, for a day, and a key `<tenant>` for
each tenant that has such a source.
"""

import asyncio
import json
import re
from collections.abc import Sequence

from kit.errors import AlreadyExists
from kit.jetstream import KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from kit.stores.forgetting import Source, SourceKind
from services.orchestrator.models import Dependent, RunKey
from services.orchestrator.state import FORGOTTEN, SOURCES, STORED_RUNS_NOTED

_DAY_S = 86_400.0
_DOCUMENT_ID = re.compile(r"[0-9a-f]{8,64}")
"""Web pages and databases have a word in front."""


class KeyValueRunSources:
    """RunSources over two buckets."""

    def __init__(self, sources: KeyValue, forgotten: KeyValue, retention_s: float) -> None:
        self._sources = sources
        self._forgotten = forgotten
        self._retention_s = retention_s

    @classmethod
    async def open(cls, nats: Nats, *, retention_days: float) -> "KeyValueRunSources":
        return cls(
            await KeyValue.open(nats, SOURCES.name),
            await KeyValue.open(nats, FORGOTTEN.name, ttl_s=FORGOTTEN.kept_for_s),
            (retention_days + 1) * _DAY_S,
        )

    async def depend(self, run: Dependent, sources: Sequence[Source]) -> frozenset[Source]:
        # Written first and read second, while forgetting marks first and lists second: one of the two sees the other.
        await asyncio.gather(*(self._note(run, source) for source in sources))
        if await self._forgotten.get(run.key.tenant_id) is None:
            return frozenset()  # the common case, in one question
        marks = await asyncio.gather(*(self._forgotten.get(_mark(run.key.tenant_id, source)) for source in sources))
        return frozenset(source for source, mark in zip(sources, marks, strict=True) if mark is not None)

    async def _note(self, run: Dependent, source: Source) -> None:
        # The messages of a thread are kept for as long as the thread is; the log of a run expires.
        ttl_s = None if run.thread_id else self._retention_s
        try:
            await self._sources.create(
                f"{_mark(run.key.tenant_id, source)}.{run.key.run_id}", _encode(run), ttl_s=ttl_s
            )
        except AlreadyExists:
            return

    async def mark_forgotten(self, tenant_id: str, source: Source) -> None:
        await self._forgotten.put(_mark(tenant_id, source), b"")
        await self._forgotten.put(tenant_id, b"")

    async def dependents(self, tenant_id: str, source: Source) -> Sequence[Dependent]:
        pattern = f"{_mark(tenant_id, source)}.*"
        return [_dependent(entry.key, entry.value or b"") async for entry in self._sources.entries(pattern)]

    async def documents_of(self, key: RunKey) -> Sequence[str]:
        pattern = f"{key.tenant_id}.{SourceKind.DOCUMENT}.*.{key.run_id}"
        ids = [name.split(".")[2] for name in await self._sources.keys(pattern)]
        return [each for each in ids if _DOCUMENT_ID.fullmatch(each)]

    async def drop_source(self, tenant_id: str, source: Source) -> None:
        await self._sources.purge_matching(f"{_mark(tenant_id, source)}.*")

    async def drop_run(self, key: RunKey) -> None:
        await self._sources.purge_matching(f"{key.tenant_id}.*.*.{key.run_id}")

    async def is_complete(self) -> bool:
        return await self._sources.get(STORED_RUNS_NOTED) is not None

    async def set_complete(self) -> None:
        await self._sources.put(STORED_RUNS_NOTED, b"")


def _mark(tenant_id: str, source: Source) -> str:
    return f"{tenant_id}.{source.kind}.{source.item_id}"


def _encode(run: Dependent) -> bytes:
    return json.dumps({"thread_id": run.thread_id, "subject": run.subject}).encode()


def _dependent(key: str, value: bytes) -> Dependent:
    tenant_id, _, rest = key.partition(".")
    run = RunKey(tenant_id, rest.rpartition(".")[2])
    try:
        record = json.loads(value)
        return Dependent(run, record["thread_id"], record["subject"])
    except UNREADABLE as error:
        set_aside(SOURCES.name, key, error)
        return Dependent(run)
