"""Uploaded files in the JetStream object store, named by tenant and content."""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

from kit.errors import DataLoss
from kit.jetstream import Nats, ObjectStore
from kit.jetstream.objects import PIECE_BYTES
from services.ingest.documents.models import StoredFile
from services.ingest.ports import ReadableFile
from services.ingest.state import FILES


class NatsFileStore:
    """Bucket FILES: `<tenant>/<sha256>`."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    @classmethod
    async def open(cls, nats: Nats) -> "NatsFileStore":
        return cls(await ObjectStore.open(nats, FILES.name))

    async def put(self, tenant_id: str, file: ReadableFile) -> None:
        await self._objects.put(f"{tenant_id}/{file.sha256}", file.pieces(PIECE_BYTES))

    async def get_to_file(self, tenant_id: str, sha256: str, path: Path) -> None:
        if await self._objects.get_to_file(f"{tenant_id}/{sha256}", path) != sha256:
            raise DataLoss(f"file {sha256} is not what it was when it came; upload it again", reason="OBJECT_DAMAGED")

    async def exists(self, tenant_id: str, sha256: str) -> bool:
        return await self._objects.exists(f"{tenant_id}/{sha256}")

    async def delete(self, tenant_id: str, sha256: str) -> None:
        await self._objects.delete(f"{tenant_id}/{sha256}")

    async def all(self) -> AsyncIterator[StoredFile]:
        async for entry in self._objects.entries():
            tenant_id, _, sha256 = entry.name.partition("/")
            yield StoredFile(tenant_id, sha256, entry.stored_at)

    async def collect_remains(self, older_than: datetime) -> int:
        return await self._objects.collect_remains(older_than)
