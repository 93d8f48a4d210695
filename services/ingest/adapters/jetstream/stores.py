"""Records and collections in JetStream key-value buckets, keyed by tenant, so that the server filters listings."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress

from kit.access.principal import Principal
from kit.errors import Aborted, AlreadyExists
from kit.jetstream import Entry, KeyValue, Nats
from kit.shared_state import COLLECTIONS
from kit.stores.collection_map import CollectionMap
from services.ingest.adapters.jetstream.record_reader import RecordReader
from services.ingest.documents import records
from services.ingest.documents.models import Collection, Document, NameClaim, StoredDocument
from services.ingest.metrics import Metrics
from services.ingest.state import DOCUMENTS, NAMES


class NatsDocumentStore:
    """Buckets DOCUMENTS (`<tenant>.<document>`) and DOCUMENT_NAMES (`<tenant>.<collection>.<hash of the name>`)."""

    def __init__(self, documents: KeyValue, names: KeyValue, metrics: Metrics) -> None:
        self._documents = documents
        self._names = names
        self._reader = RecordReader("document", records.decode_document, _key, metrics.unreadable_records)

    @classmethod
    async def open(cls, nats: Nats, metrics: Metrics) -> "NatsDocumentStore":
        return cls(await KeyValue.open(nats, DOCUMENTS.name), await KeyValue.open(nats, NAMES.name), metrics)

    @property
    def restarts(self) -> int:
        return self._documents.reconnections

    @property
    def unreadable(self) -> int:
        return self._reader.unreadable

    async def get(self, tenant_id: str, document_id: str) -> StoredDocument | None:
        entry = await self._documents.get(f"{tenant_id}.{document_id}")
        return StoredDocument(self._reader.read(entry), entry.revision) if entry else None

    async def create(self, document: Document) -> StoredDocument:
        return StoredDocument(document, await self._documents.create(_key(document), records.encode_document(document)))

    async def update(self, document: Document, version: int) -> StoredDocument:
        written = await self._documents.update(_key(document), records.encode_document(document), version)
        return StoredDocument(document, written)

    async def purge(self, tenant_id: str, document_id: str) -> None:
        await self._documents.purge(f"{tenant_id}.{document_id}")

    async def all_of(self, tenant_id: str) -> AsyncIterator[StoredDocument]:
        if tenant_id == "*":
            self._reader.start_over()
        async for stored in self._entries(f"{tenant_id}.*"):
            yield stored

    async def changed_since(self, version: int) -> AsyncIterator[StoredDocument]:
        async for stored in self._entries("*.*", after=version):
            yield stored

    async def last_version(self) -> int:
        return await self._documents.last_revision()

    async def _entries(self, pattern: str, *, after: int = 0) -> AsyncIterator[StoredDocument]:
        async for entry in self._documents.entries(pattern, after=after):
            document = self._reader.read_if_possible(entry)
            if document is not None:
                yield StoredDocument(document, entry.revision)

    async def watch(self, tenant_id: str) -> AsyncGenerator[StoredDocument | None, None]:
        async with aclosing(self._documents.watch(f"{tenant_id}.*")) as updates:
            async for entry in updates:
                if entry is None:
                    yield None
                elif (document := self._reader.read_if_possible(entry)) is not None:
                    yield StoredDocument(document, entry.revision)

    async def claim_name(self, tenant_id: str, collection_id: str, name: str, document_id: str) -> str:
        key = _name_key(tenant_id, collection_id, name)
        while True:
            try:
                await self._names.create(key, document_id.encode())
            except AlreadyExists:
                entry = await self._names.get(key)
                if entry and entry.value:
                    return _claimant(entry)
            else:
                return document_id

    async def pass_name(self, tenant_id: str, collection_id: str, name: str, old_id: str, new_id: str) -> str:
        key = _name_key(tenant_id, collection_id, name)
        entry = await self._names.get(key)
        if entry is None or not entry.value:
            return await self.claim_name(tenant_id, collection_id, name, new_id)
        if _claimant(entry) != old_id:
            return _claimant(entry)
        try:
            await self._names.update(key, new_id.encode(), entry.revision)
        except Aborted:
            return await self.claim_name(tenant_id, collection_id, name, new_id)
        return new_id

    async def release_name(self, tenant_id: str, collection_id: str, name: str, document_id: str) -> None:
        key = _name_key(tenant_id, collection_id, name)
        entry = await self._names.get(key)
        if entry is not None and _claimant(entry) == document_id:
            await self._free(key, entry.revision)

    async def claims(self) -> AsyncIterator[NameClaim]:
        async for entry in self._names.entries("*.*.*"):
            assert entry.written_at is not None
            tenant_id = entry.key.partition(".")[0]
            yield NameClaim(tenant_id, _claimant(entry), entry.key, entry.revision, entry.written_at)

    async def drop_claim(self, claim: NameClaim) -> None:
        await self._free(claim.place, claim.version)

    async def _free(self, key: str, revision: int) -> None:
        with suppress(Aborted):  # it is another's by now
            await self._names.purge(key, revision)


class NatsCollectionStore:
    """Bucket COLLECTIONS (`<tenant>.<collection>`). The marker of a deleted one stays."""

    def __init__(self, collections: KeyValue, metrics: Metrics) -> None:
        self._collections = collections
        self._reader = RecordReader(
            "collection", records.decode_collection, _collection_key, metrics.unreadable_records
        )
        self._map = CollectionMap(collections, self._reader.read_if_possible)
        self._is_followed = False

    @classmethod
    async def open(cls, nats: Nats, metrics: Metrics) -> "NatsCollectionStore":
        return cls(await KeyValue.open(nats, COLLECTIONS.name), metrics)

    async def follow(self) -> None:
        """Keeps what is known up to date, until cancelled. For the process that answers callers."""
        self._is_followed = True
        await self._map.run()

    async def wait_known(self) -> None:
        """Returns once everything that is stored is known: for readiness."""
        await self._map.wait_confirmed()

    def known(self, tenant_id: str, collection_id: str) -> Collection | None:
        return self._map.known(tenant_id, collection_id)

    async def wait_rights_changed(self, caller: Principal, collection_id: str) -> None:
        await self._map.wait_rights_changed(caller, collection_id)

    async def get(self, tenant_id: str, collection_id: str) -> Collection | None:
        entry = await self._collections.get(f"{tenant_id}.{collection_id}")
        return self._reader.read(entry) if entry else None

    async def create(self, collection: Collection) -> None:
        key = _collection_key(collection)
        await self._heard_of(await self._collections.create(key, records.encode_collection(collection)))

    async def change(
        self, tenant_id: str, collection_id: str, change: Callable[[Collection], Collection]
    ) -> Collection | None:
        key = f"{tenant_id}.{collection_id}"
        while True:
            entry = await self._collections.get(key)
            if entry is None:
                return None
            changed = change(self._reader.read(entry))
            try:
                revision = await self._collections.update(key, records.encode_collection(changed), entry.revision)
            except Aborted:
                continue
            await self._heard_of(revision)
            return changed

    async def delete(self, tenant_id: str, collection_id: str) -> None:
        await self._collections.delete(f"{tenant_id}.{collection_id}")

    async def _heard_of(self, revision: int) -> None:
        if self._is_followed:
            await self._map.wait_written(revision)

    async def was_deleted(self, tenant_id: str, collection_id: str) -> bool:
        return await self._collections.was_deleted(f"{tenant_id}.{collection_id}")

    async def all_of(self, tenant_id: str) -> AsyncIterator[Collection]:
        async for entry in self._collections.entries(f"{tenant_id}.*"):
            collection = self._reader.read_if_possible(entry)
            if collection is not None:
                yield collection


def _key(document: Document) -> str:
    return f"{document.tenant_id}.{document.document_id}"


def _collection_key(collection: Collection) -> str:
    return f"{collection.tenant_id}.{collection.collection_id}"


def _claimant(entry: Entry) -> str:
    """The document that a name leads to. A torn claim leads to one that is not there, and so to a fresh id."""
    return (entry.value or b"").decode(errors="replace")


def _name_key(tenant_id: str, collection_id: str, name: str) -> str:
    return f"{tenant_id}.{collection_id}.{hashlib.sha256(name.encode()).hexdigest()[:40]}"
