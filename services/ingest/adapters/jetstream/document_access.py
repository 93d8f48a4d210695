"""Access lists of documents in a JetStream key-value bucket, which the retriever follows too."""

from kit.jetstream import KeyValue, Nats
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

    async def _heard_of(self, revision: int) -> None:
        if self._is_followed:
            await self._map.wait_written(revision)
