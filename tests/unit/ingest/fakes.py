"""One fake per port of ingestion. Stores keep the rules of the real ones: compare-and-set, tombstones, one name one document."""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from kit.access.principal import Principal
from kit.errors import Aborted, AlreadyExists, DataLoss, FailedPrecondition
from kit.jetstream.condition import Finding
from kit.jetstream.leases import LeaseLost
from kit.jetstream.queues.backlog import Backlog
from kit.stores.document_access import DocumentAccess
from kit.stores.idempotency import Attempt, IdempotencyConflict
from services.ingest.documents.models import (
    Collection,
    DeadLetter,
    Document,
    IngestJob,
    NameClaim,
    Revision,
    StoredDocument,
    StoredFile,
)
from services.ingest.ports import ChunkBatch, Scratch, Vector, Vectors
from services.ingest.reading.child import wire
from services.ingest.reading.child.prepare import prepare
from services.ingest.reading.chunks.tokens import EstimatedTokens
from services.ingest.reading.models import Chunk, PreparedFile, PrepareRequest
from services.ingest.reading.pool.chunk_lines import ChunkLines
from services.ingest.sources.models import SourceRecord
from services.ingest.spool import SpooledFile
from services.ingest.work.models import EmbeddingModel, RevisionCheck, RevisionState


def _long_ago() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


class FakeDocumentStore:
    def __init__(self, now: Callable[[], datetime] = _long_ago) -> None:
        self.records: dict[tuple[str, str], StoredDocument] = {}
        self.names: dict[tuple[str, str, str], NameClaim] = {}
        self.versions = 0
        self.restarts = 0
        self.unreadable = 0
        self._now = now
        self._watchers: list[tuple[str, asyncio.Queue[StoredDocument | None]]] = []

    async def get(self, tenant_id: str, document_id: str) -> StoredDocument | None:
        return self.records.get((tenant_id, document_id))

    async def create(self, document: Document) -> StoredDocument:
        if (document.tenant_id, document.document_id) in self.records:
            raise AlreadyExists("there")
        return self._write(document)

    async def update(self, document: Document, version: int) -> StoredDocument:
        stored = self.records.get((document.tenant_id, document.document_id))
        if stored is None or stored.version != version:
            raise Aborted("changed")
        return self._write(document)

    async def purge(self, tenant_id: str, document_id: str) -> None:
        self.records.pop((tenant_id, document_id), None)

    async def all_of(self, tenant_id: str) -> AsyncIterator[StoredDocument]:
        for (tenant, _), stored in list(self.records.items()):
            if tenant_id in ("*", tenant):
                yield stored

    async def last_version(self) -> int:
        return max((stored.version for stored in self.records.values()), default=0)

    async def changed_since(self, version: int) -> AsyncIterator[StoredDocument]:
        for stored in sorted(self.records.values(), key=lambda stored: stored.version):
            if stored.version > version:
                yield stored

    async def watch(self, tenant_id: str) -> AsyncGenerator[StoredDocument | None, None]:
        queue: asyncio.Queue[StoredDocument | None] = asyncio.Queue()
        async for stored in self.all_of(tenant_id):
            queue.put_nowait(stored)
        queue.put_nowait(None)
        self._watchers.append((tenant_id, queue))
        while True:
            yield await queue.get()

    async def claim_name(self, tenant_id: str, collection_id: str, name: str, document_id: str) -> str:
        key = (tenant_id, collection_id, name)
        if key not in self.names:
            self._give_name(key, document_id)
        return self.names[key].document_id

    async def pass_name(self, tenant_id: str, collection_id: str, name: str, old_id: str, new_id: str) -> str:
        key = (tenant_id, collection_id, name)
        if key not in self.names or self.names[key].document_id == old_id:
            self._give_name(key, new_id)
        return self.names[key].document_id

    async def release_name(self, tenant_id: str, collection_id: str, name: str, document_id: str) -> None:
        claim = self.names.get((tenant_id, collection_id, name))
        if claim is not None and claim.document_id == document_id:
            await self.drop_claim(claim)

    async def claims(self) -> AsyncIterator[NameClaim]:
        for claim in list(self.names.values()):
            yield claim

    async def drop_claim(self, claim: NameClaim) -> None:
        for key in [key for key, each in self.names.items() if each == claim]:
            del self.names[key]

    def _give_name(self, key: tuple[str, str, str], document_id: str) -> None:
        self.versions += 1
        self.names[key] = NameClaim(key[0], document_id, "/".join(key), self.versions, self._now())

    def _write(self, document: Document) -> StoredDocument:
        self.versions += 1
        stored = StoredDocument(document, self.versions)
        self.records[document.tenant_id, document.document_id] = stored
        for tenant_id, queue in self._watchers:
            if tenant_id in ("*", document.tenant_id):
                queue.put_nowait(stored)
        return stored


class FakeCollectionStore:
    def __init__(self) -> None:
        self.collections: dict[tuple[str, str], Collection] = {}
        self.deleted: set[tuple[str, str]] = set()
        self.unheard: set[tuple[str, str]] = set()
        """Made by another process a moment ago."""
        self.rights_changed = asyncio.Event()

    def known(self, tenant_id: str, collection_id: str) -> Collection | None:
        place = (tenant_id, collection_id)
        return None if place in self.unheard else self.collections.get(place)

    async def wait_rights_changed(self, caller: Principal, collection_id: str) -> None:
        await self.rights_changed.wait()

    async def get(self, tenant_id: str, collection_id: str) -> Collection | None:
        return self.collections.get((tenant_id, collection_id))

    async def create(self, collection: Collection) -> None:
        if (collection.tenant_id, collection.collection_id) in self.collections:
            raise AlreadyExists("there")
        await self.put(collection)

    async def change(
        self, tenant_id: str, collection_id: str, change: Callable[[Collection], Collection]
    ) -> Collection | None:
        stored = await self.get(tenant_id, collection_id)
        if stored is None:
            return None
        changed = change(stored)
        await self.put(changed)
        return changed

    async def put(self, collection: Collection) -> None:
        self.collections[collection.tenant_id, collection.collection_id] = collection
        self.deleted.discard((collection.tenant_id, collection.collection_id))

    async def delete(self, tenant_id: str, collection_id: str) -> None:
        self.collections.pop((tenant_id, collection_id), None)
        self.deleted.add((tenant_id, collection_id))

    async def was_deleted(self, tenant_id: str, collection_id: str) -> bool:
        return (tenant_id, collection_id) in self.deleted

    async def all_of(self, tenant_id: str) -> AsyncIterator[Collection]:
        for (tenant, _), collection in list(self.collections.items()):
            if tenant_id in ("*", tenant):
                yield collection


class FakeAccessLists:
    """AccessLists in a dict."""

    def __init__(self) -> None:
        self.lists: dict[tuple[str, str], DocumentAccess] = {}

    def known(self, tenant_id: str, document_id: str) -> DocumentAccess | None:
        return self.lists.get((tenant_id, document_id))

    async def get(self, tenant_id: str, document_id: str) -> DocumentAccess | None:
        return self.known(tenant_id, document_id)

    async def put(self, tenant_id: str, document_id: str, access: DocumentAccess) -> None:
        self.lists[tenant_id, document_id] = access

    async def remove(self, tenant_id: str, document_id: str) -> None:
        self.lists.pop((tenant_id, document_id), None)

    async def replace(
        self,
        tenant_id: str,
        document_id: str,
        access: DocumentAccess | None,
        check: Callable[[DocumentAccess | None], None],
    ) -> None:
        check(self.known(tenant_id, document_id))
        if access is None:
            await self.remove(tenant_id, document_id)
        else:
            await self.put(tenant_id, document_id, access)


class FakeSourceStore:
    def __init__(self) -> None:
        self.records: dict[tuple[str, str], SourceRecord] = {}
        self._watchers: list[asyncio.Queue[tuple[tuple[str, str], SourceRecord | None]]] = []

    async def get(self, tenant_id: str, source_id: str) -> SourceRecord | None:
        return self.records.get((tenant_id, source_id))

    async def create(self, record: SourceRecord) -> None:
        if record.place in self.records:
            raise AlreadyExists("there")
        self._put(record.place, record)

    async def change(
        self, tenant_id: str, source_id: str, change: Callable[[SourceRecord], SourceRecord]
    ) -> SourceRecord | None:
        if (stored := self.records.get((tenant_id, source_id))) is None:
            return None
        changed = change(stored)
        self._put(changed.place, changed)
        return changed

    async def purge(self, tenant_id: str, source_id: str) -> None:
        self._put((tenant_id, source_id), None)

    async def all_of(self, tenant_id: str) -> AsyncIterator[SourceRecord]:
        for (tenant, _), record in list(self.records.items()):
            if tenant_id in ("*", tenant):
                yield record

    async def watch(self) -> AsyncGenerator[tuple[tuple[str, str], SourceRecord | None], None]:
        queue: asyncio.Queue[tuple[tuple[str, str], SourceRecord | None]] = asyncio.Queue()
        for item in self.records.items():
            queue.put_nowait(item)
        self._watchers.append(queue)
        while True:
            yield await queue.get()

    def _put(self, place: tuple[str, str], record: SourceRecord | None) -> None:
        if record is None:
            self.records.pop(place, None)
        else:
            self.records[place] = record
        for queue in self._watchers:
            queue.put_nowait((place, record))


class FakeFileStore:
    def __init__(self, now: Callable[[], datetime] = _long_ago) -> None:
        self.files: dict[tuple[str, str], bytes] = {}
        self.stored_at: dict[tuple[str, str], datetime] = {}
        self.collected_before: datetime | None = None
        self._now = now

    async def put(self, tenant_id: str, file: SpooledFile) -> None:
        self.files[tenant_id, file.sha256] = b"".join([piece async for piece in file.pieces(1000)])
        self.stored_at[tenant_id, file.sha256] = self._now()

    async def get_to_file(self, tenant_id: str, sha256: str, path: Path) -> None:
        if (tenant_id, sha256) not in self.files:
            raise DataLoss("missing", reason="OBJECT_MISSING")
        stored = self.files[tenant_id, sha256]
        if hashlib.sha256(stored).hexdigest() != sha256:
            raise DataLoss("damaged", reason="OBJECT_DAMAGED")
        path.write_bytes(stored)  # noqa: ASYNC240 - a few bytes

    async def exists(self, tenant_id: str, sha256: str) -> bool:
        return (tenant_id, sha256) in self.files

    async def delete(self, tenant_id: str, sha256: str) -> None:
        self.files.pop((tenant_id, sha256), None)

    async def all(self) -> AsyncIterator[StoredFile]:
        for tenant_id, sha256 in list(self.files):
            yield StoredFile(tenant_id, sha256, self.stored_at.get((tenant_id, sha256), _long_ago()))

    async def collect_remains(self, older_than: datetime) -> int:
        self.collected_before = older_than
        return 0


class FakeJobQueue:
    def __init__(self) -> None:
        self.jobs: dict[str, IngestJob] = {}
        self.on_publish: Callable[[], None] | None = None
        self.lookups = 0

    async def publish(self, job: IngestJob) -> None:
        if self.on_publish:
            self.on_publish()
        self.jobs[job.revision_id] = job

    async def has_job(self, job: IngestJob) -> bool:
        self.lookups += 1
        return job.revision_id in self.jobs

    async def backlog(self) -> Backlog:
        return Backlog(len(self.jobs), None)


class FakeDeadLetterStore:
    def __init__(self) -> None:
        self.letters: dict[tuple[str, str], DeadLetter] = {}

    async def put(self, letter: DeadLetter) -> None:
        self.letters[letter.tenant_id, letter.revision_id] = letter

    async def get(self, tenant_id: str, revision_id: str) -> DeadLetter | None:
        return self.letters.get((tenant_id, revision_id))

    async def delete(self, letter: DeadLetter) -> None:
        self.letters.pop((letter.tenant_id, letter.revision_id), None)

    async def all_of(self, tenant_id: str, collection_id: str = "*") -> AsyncIterator[DeadLetter]:
        for letter in list(self.letters.values()):
            if tenant_id in ("*", letter.tenant_id) and collection_id in ("*", letter.collection_id):
                yield letter


class FakeLease:
    is_lost = False

    def check(self) -> None:
        if self.is_lost:
            raise LeaseLost("the lease could not be renewed in time")


class FakeLeases:
    """`held`: the lease of each key that was held last."""

    def __init__(self) -> None:
        self.held: dict[str, FakeLease] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[FakeLease]:
        async with self._locks.setdefault(key, asyncio.Lock()):
            self.held[key] = FakeLease()
            yield self.held[key]


class FakeKeys:
    """Keys of one caller, each of which makes its thing once."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[bytes, str]] = {}

    async def once(
        self,
        principal: Principal,
        operation: str,
        key: str,
        request: bytes,
        new_id: Callable[[], str],
        make: Callable[[Attempt], Awaitable[str]],
    ) -> str:
        if key not in self.made:
            self.made[key] = (request, await make(Attempt(new_id(), True)))
        same, item_id = self.made[key]
        if same != request:
            raise IdempotencyConflict("another request")
        return item_id


class InlinePreparer:
    """The real parser and chunker, without a child process, with a tokenizer that counts pieces of words."""

    def __init__(self) -> None:
        self.on_prepare: Callable[[], None] | None = None
        self.max_chunks = 10_000

    async def prepare(
        self, tenant_id: str, request: PrepareRequest, on_stage: Callable[[str], None], scratch: Scratch
    ) -> PreparedFile:
        if self.on_prepare:
            self.on_prepare()
        *chunks, done = wire.result_lines(prepare(request, on_stage, EstimatedTokens()))
        lines = ChunkLines(scratch, limit=self.max_chunks, name=request.name)
        for chunk in chunks:
            await lines.append(chunk)
        return wire.decode_done(json.loads(done)["done"], lines)


class FakeEmbedder:
    def __init__(self, *, window_tokens: int = 64, dimension: int = 4) -> None:
        self.name = "fake-embedder"
        self.window_tokens = window_tokens
        self.dimension = dimension
        self.calls: list[list[str]] = []
        self.errors: list[Exception] = []
        self.gate: asyncio.Event | None = None
        self.reached = asyncio.Event()

    async def model(self) -> EmbeddingModel:
        return EmbeddingModel(self.name, self.window_tokens)

    async def tokenizer_path(self) -> Path | None:
        return None

    async def embed(self, texts: Sequence[str]) -> tuple[Vectors, str]:
        self.calls.append(list(texts))
        self.reached.set()
        if self.gate:
            await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        return np.full((len(texts), self.dimension), 0.5, dtype=np.float32), self.name


class FakeIndex:
    """Keeps the retriever's rules: one active revision a document, the highest number wins, tombstones are final."""

    def __init__(self) -> None:
        self.revisions: dict[tuple[str, str], list[Chunk]] = {}
        self.active: dict[str, tuple[int, str]] = {}
        self.deleted: set[str] = set()
        self.log: list[str] = []
        self.to_come: list[int] = []
        """Of each call of `index`."""
        self.stored_vectors: dict[tuple[str, str], tuple[str, dict[str, Vector]]] = {}

    async def index(
        self,
        document: Document,
        revision: Revision,
        batches: AsyncIterator[ChunkBatch],
        chunk_count: int,
        model: str,
        *,
        to_come: int,
        activate_with: Sequence[str] | None = None,
    ) -> bool:
        self.log.append("index")
        self.to_come.append(to_come)
        key = (document.document_id, revision.revision_id)
        chunks: list[Chunk] = []
        rows: list[Vector] = []
        async for some, vectors in batches:
            chunks += some
            rows += list(vectors)
        assert len(chunks) == len(rows) == chunk_count
        self.revisions[key] = chunks
        self.stored_vectors[key] = (model, {c.content_hash: row for c, row in zip(chunks, rows, strict=True)})
        if activate_with is None:
            return False
        await self.activate(document, revision, chunk_count, activate_with)
        return True

    async def activate(
        self, document: Document, revision: Revision, chunk_count: int, languages: Sequence[str]
    ) -> None:
        self.log.append("activate")
        document_id = document.document_id
        if document_id in self.deleted or self.active.get(document_id, (0, ""))[0] > revision.number:
            raise FailedPrecondition("superseded", reason="REVISION_SUPERSEDED")
        if len(self.revisions.get((document_id, revision.revision_id), [])) != chunk_count:
            raise FailedPrecondition("incomplete", reason="REVISION_INCOMPLETE")
        self.active[document_id] = (revision.number, revision.revision_id)
        for key in [key for key in self.revisions if key[0] == document_id and key[1] != revision.revision_id]:
            del self.revisions[key]

    async def delete(self, document_id: str) -> None:
        self.deleted.add(document_id)
        self.active.pop(document_id, None)
        for key in [key for key in self.revisions if key[0] == document_id]:
            del self.revisions[key]

    async def vectors(self, document_id: str, model: str) -> AsyncGenerator[tuple[Sequence[str], Vectors], None]:
        if document_id not in self.active:
            return
        made_by, vectors = self.stored_vectors.get((document_id, self.active[document_id][1]), ("", {}))
        if made_by == model and vectors:
            yield list(vectors), np.stack(list(vectors.values()))

    async def visible(self) -> AsyncGenerator[str, None]:
        for document_id in list(self.active):
            yield document_id

    async def check(self, revisions: Sequence[tuple[str, str]]) -> list[RevisionCheck]:
        return [self._check(*each) for each in revisions]

    def _check(self, document_id: str, revision_id: str) -> RevisionCheck:
        if document_id in self.deleted:
            return RevisionCheck(RevisionState.DELETED, 0)
        number, active_id = self.active.get(document_id, (0, ""))
        if active_id != revision_id:
            return RevisionCheck(RevisionState.INACTIVE, number)
        whole = (document_id, revision_id) in self.revisions
        return RevisionCheck(RevisionState.ACTIVE if whole else RevisionState.INCOMPLETE, number)

    def searchable(self, document_id: str) -> list[str]:
        """Texts that a search can find."""
        if document_id not in self.active:
            return []
        return [chunk.text for chunk in self.revisions[document_id, self.active[document_id][1]]]


class FakeForgetting:
    """Takes note of documents whose copies are to be erased, which the index must have let go before."""

    def __init__(self, index: FakeIndex) -> None:
        self._index = index
        self.forgotten: list[str] = []

    async def forget(self, document_id: str) -> None:
        assert document_id in self._index.deleted
        self.forgotten.append(document_id)


class FakeCondition:
    """What an operator would see."""

    def __init__(self) -> None:
        self.kept: dict[str, Sequence[Finding]] = {}

    async def add(self, source: str, findings: Sequence[Finding]) -> None:
        if findings:
            self.kept[source] = (*self.kept.get(source, ()), *findings)

    async def set(self, source: str, findings: Sequence[Finding]) -> bool:
        news = self.kept.get(source, ()) != findings
        self.kept[source] = findings
        return news

    async def findings(self, *, besides: str = "") -> list[Finding]:
        return [finding for source, some in self.kept.items() if source != besides for finding in some]
