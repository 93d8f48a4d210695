"""Access lists of documents in a JetStream key-value bucket, which the retriever follows too."""

from collections.abc import Callable

from kit.errors import Aborted, AlreadyExists
from kit.jetstream import Entry, KeyValue, Nats
from kit.shared_state import DOCUMENT_ACCESS
from kit.stores.document_access import DocumentAccess, DocumentAccessMap, decode, encode


class NatsAccessLists:
    """AccessLists over the bucket DOCUMENT_ACCESS (`<tenant>.<document>`)."""

    def __init__(self, lists: KeyValue) -> None:
        self._lists = lists
        self._map = DocumentAccessMap(lists)
        self._is_followed = False

    @classmethod
    async def open(cls, nats: Nats) -> "NatsAccessLists":
        return cls(await KeyValue.open(nats, DOCUMENT_ACCESS.name))

    async def follow(self) -> None:
        """Keeps what is known up to date, until cancelled. For the process that answers callers."""
        self._is_followed = True
        await self._map.run()

    async def wait_known(self) -> None:
        """Returns once everything that is stored is known: for readiness."""
        await self._map.wait_confirmed()

    def known(self, tenant_id: str, document_id: str) -> DocumentAccess | None:
        return self._map.known(tenant_id, document_id)

    async def get(self, tenant_id: str, document_id: str) -> DocumentAccess | None:
        entry = await self._lists.get(f"{tenant_id}.{document_id}")
        return decode(entry.value) if entry is not None and entry.value is not None else None

    async def put(self, tenant_id: str, document_id: str, access: DocumentAccess) -> None:
        await self._heard_of(await self._lists.put(f"{tenant_id}.{document_id}", encode(access)))

    async def remove(self, tenant_id: str, document_id: str) -> None:
        if await self.get(tenant_id, document_id) is not None:
            await self._lists.purge(f"{tenant_id}.{document_id}")
            await self._heard_of(await self._lists.last_revision())

    async def replace(
        self,
        tenant_id: str,
        document_id: str,
        access: DocumentAccess | None,
        check: Callable[[DocumentAccess | None], None],
    ) -> None:
        key = f"{tenant_id}.{document_id}"
        while True:
            entry = await self._lists.get(key)
            stored = None if entry is None or entry.value is None else entry
            check(decode(stored.value or b"") if stored is not None else None)
            try:
                revision = await self._replaced(key, access, stored)
            except (Aborted, AlreadyExists):  # another writer was first: `check` sees what it wrote
                continue
            return await self._heard_of(revision)

    async def _replaced(self, key: str, access: DocumentAccess | None, stored: Entry | None) -> int:
        if access is None:
            if stored is not None:
                await self._lists.purge(key, stored.revision)
            return await self._lists.last_revision()
        if stored is None:
            return await self._lists.create(key, encode(access))
        return await self._lists.update(key, encode(access), stored.revision)

    async def _heard_of(self, revision: int) -> None:
        if self._is_followed:
            await self._map.wait_written(revision)
