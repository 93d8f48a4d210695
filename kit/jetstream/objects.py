"""Files in JetStream. Names are content hashes, so that storing the same file twice stores it once."""

from pathlib import Path

from nats.js.errors import DigestMismatchError, NotFoundError, ObjectNotFoundError
from nats.js.object_store import ObjectStore as NatsObjectStore

from kit.errors import DataLoss
from kit.jetstream.connection import Nats, translated_errors


class ObjectStore:
    """One bucket of files. All methods raise Unavailable when the server does not answer."""

    def __init__(self, bucket: NatsObjectStore, name: str) -> None:
        self._bucket = bucket
        self._name = name

    @classmethod
    async def open(cls, nats: Nats, name: str) -> "ObjectStore":
        with translated_errors(f"object store {name}"):
            try:
                bucket = await nats.js.object_store(name)
            except NotFoundError:
                bucket = await nats.js.create_object_store(name)
        return cls(bucket, name)

    async def exists(self, name: str) -> bool:
        with translated_errors(self._name):
            try:
                await self._bucket.get_info(name)
            except (ObjectNotFoundError, NotFoundError):
                return False
            return True

    async def put_file(self, name: str, path: Path) -> None:
        """Stores the file at `path`, piece by piece. It is on the server's disk when this returns."""
        with translated_errors(self._name), path.open("rb") as file:
            await self._bucket.put(name, file)

    async def get_to_file(self, name: str, path: Path) -> None:
        """Writes the stored file to `path`. Raises DataLoss when it is missing or its digest does not match."""
        try:
            with translated_errors(self._name), path.open("wb") as file:
                await self._bucket.get(name, writeinto=file)
        except (ObjectNotFoundError, NotFoundError) as error:
            raise DataLoss(f"file {name} is not in the store; upload it again", reason="OBJECT_MISSING") from error
        except DigestMismatchError as error:
            raise DataLoss(f"file {name} is damaged in the store; upload it again", reason="OBJECT_DAMAGED") from error

    async def delete(self, name: str) -> None:
        """Removes the file; harmless when it is not there."""
        with translated_errors(self._name):
            try:
                await self._bucket.delete(name)
            except (ObjectNotFoundError, NotFoundError):
                return
