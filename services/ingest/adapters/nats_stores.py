"""Records and collections in JetStream key-value buckets, keyed by tenant, so that the server filters listings."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from kit.errors import Aborted, AlreadyExists
from kit.jetstream import KeyValue, Nats
from services.ingest.documents import records
from services.ingest.models import Collection, Document, StoredDocument


class NatsDocumentStore:
    """Buckets DOCUMENTS (`<tenant>.<document>`) and DOCUMENT_NAMES (`<tenant>.<collection>.<hash of the name>`)."""

    def __init__(self, documents: KeyValue, names: KeyValue) -> None:
        self._documents = documents
        self._names = names

    @classmethod
    async def open(cls, nats: Nats) -> "NatsDocumentStore":
        return cls(await KeyValue.open(nats, "DOCUMENTS"), await KeyValue.open(nats, "DOCUMENT_NAMES"))

    @property
    def restarts(self) -> int:
        return self._documents.reconnections

    async def get(self, tenant_id: str, document_id: str) -> StoredDocument | None:
        entry = await self._documents.get(f"{tenant_id}.{document_id}")
        return StoredDocument(records.decode_document(entry.value), entry.revision) if entry and entry.value else None

    async def create(self, document: Document) -> StoredDocument:
        return StoredDocument(document, await self._documents.create(_key(document), records.encode_document(document)))

    async def update(self, document: Document, version: int) -> StoredDocument:
        written = await self._documents.update(_key(document), records.encode_document(document), version)
        return StoredDocument(document, written)

    async def purge(self, tenant_id: str, document_id: str) -> None:
        await self._documents.purge(f"{tenant_id}.{document_id}")

    async def all_of(self, tenant_id: str) -> AsyncIterator[StoredDocument]:
        async for entry in self._documents.entries(f"{tenant_id}.*"):
            if entry.value:
                yield StoredDocument(records.decode_document(entry.value), entry.revision)

    async def changed_since(self, version: int) -> AsyncIterator[StoredDocument]:
        async for entry in self._documents.entries("*.*", after=version):
            if entry.value:
                yield StoredDocument(records.decode_document(entry.value), entry.revision)

    async def watch(self, tenant_id: str) -> AsyncGenerator[StoredDocument | None, None]:
        async with aclosing(self._documents.watch(f"{tenant_id}.*")) as updates:
            async for entry in updates:
                if entry is None:
                    yield None
                elif entry.value:
                    yield StoredDocument(records.decode_document(entry.value), entry.revision)

    async def claim_name(self, tenant_id: str, collection_id: str, name: str, document_id: str) -> str:
        key = _name_key(tenant_id, collection_id, name)
        while True:
            try:
                await self._names.create(key, document_id.encode())
            except AlreadyExists:
                entry = await self._names.get(key)
                if entry and entry.value:
                    return entry.value.decode()
            else:
                return document_id

    async def pass_name(self, tenant_id: str, collection_id: str, name: str, old_id: str, new_id: str) -> str:
        key = _name_key(tenant_id, collection_id, name)
        entry = await self._names.get(key)
        if entry is None or not entry.value:
            return await self.claim_name(tenant_id, collection_id, name, new_id)
        if entry.value.decode() != old_id:
            return entry.value.decode()
        try:
            await self._names.update(key, new_id.encode(), entry.revision)
        except Aborted:
            return await self.claim_name(tenant_id, collection_id, name, new_id)
        return new_id


class NatsCollectionStore:
    """Bucket COLLECTIONS (`<tenant>.<collection>`)."""

    def __init__(self, collections: KeyValue) -> None:
        self._collections = collections

    @classmethod
    async def open(cls, nats: Nats) -> "NatsCollectionStore":
        return cls(await KeyValue.open(nats, "COLLECTIONS"))

    async def get(self, tenant_id: str, collection_id: str) -> Collection | None:
        entry = await self._collections.get(f"{tenant_id}.{collection_id}")
        return records.decode_collection(entry.value) if entry and entry.value else None

    async def create(self, collection: Collection) -> None:
        key = f"{collection.tenant_id}.{collection.collection_id}"
        await self._collections.create(key, records.encode_collection(collection))

    async def put(self, collection: Collection) -> None:
        key = f"{collection.tenant_id}.{collection.collection_id}"
        await self._collections.put(key, records.encode_collection(collection))

    async def delete(self, tenant_id: str, collection_id: str) -> None:
        await self._collections.delete(f"{tenant_id}.{collection_id}")

    async def all_of(self, tenant_id: str) -> AsyncIterator[Collection]:
        async for entry in self._collections.entries(f"{tenant_id}.*"):
            if entry.value:
                yield records.decode_collection(entry.value)


def _key(document: Document) -> str:
    return f"{document.tenant_id}.{document.document_id}"


def _name_key(tenant_id: str, collection_id: str, name: str) -> str:
    return f"{tenant_id}.{collection_id}.{hashlib.sha256(name.encode()).hexdigest()[:40]}"
