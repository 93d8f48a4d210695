"""Uploaded files in the JetStream object store, named by tenant and content."""

from pathlib import Path

from kit.jetstream import Nats, ObjectStore


class NatsFileStore:
    """Bucket FILES: `<tenant>/<sha256>`."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    @classmethod
    async def open(cls, nats: Nats) -> "NatsFileStore":
        return cls(await ObjectStore.open(nats, "FILES"))

    async def put_file(self, tenant_id: str, sha256: str, path: Path) -> None:
        await self._objects.put_file(f"{tenant_id}/{sha256}", path)

    async def get_to_file(self, tenant_id: str, sha256: str, path: Path) -> None:
        await self._objects.get_to_file(f"{tenant_id}/{sha256}", path)

    async def exists(self, tenant_id: str, sha256: str) -> bool:
        return await self._objects.exists(f"{tenant_id}/{sha256}")

    async def delete(self, tenant_id: str, sha256: str) -> None:
        await self._objects.delete(f"{tenant_id}/{sha256}")
