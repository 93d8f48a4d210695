"""Files in JetStream. Names are content hashes, so that storing the same file twice stores it once."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError, ObjectNotFoundError
from nats.js.object_store import OBJ_CHUNKS_PRE_TEMPLATE, OBJ_STREAM_TEMPLATE
from nats.js.object_store import ObjectStore as NatsObjectStore

from kit.errors import DataLoss
from kit.jetstream.connection import Nats, translated_errors


class ObjectStore:
    """One bucket of files. All methods raise Unavailable when the server does not answer."""

    def __init__(self, js: JetStreamContext, bucket: NatsObjectStore, name: str) -> None:
        self._js = js
        self._bucket = bucket
        self._name = name

    @classmethod
    async def open(cls, nats: Nats, name: str) -> "ObjectStore":
        with translated_errors(f"object store {name}"):
            try:
                bucket = await nats.js.object_store(name)
            except NotFoundError:
                bucket = await nats.js.create_object_store(name)
        return cls(nats.js, bucket, name)

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
        digest = hashlib.sha256()
        try:
            with translated_errors(self._name), path.open("wb") as file:
                info = await self._bucket.get_info(name)
                async for piece in self._pieces(info):
                    digest.update(piece)
                    await asyncio.to_thread(file.write, piece)
        except NotFoundError as error:
            raise DataLoss(f"file {name} is not in the store; upload it again", reason="OBJECT_MISSING") from error
        if base64.urlsafe_b64encode(digest.digest()).decode() != (info.digest or "").partition("=")[2]:
            raise DataLoss(f"file {name} is damaged in the store; upload it again", reason="OBJECT_DAMAGED")

    async def _pieces(self, info: api.ObjectInfo) -> AsyncIterator[bytes]:
        """The pieces of a file, each asked for by itself. The client's own `get` makes a consumer for every file, which costs the
        server ten times what reading a small file does. Raises NotFoundError when one is missing."""
        stream = OBJ_STREAM_TEMPLATE.format(bucket=self._name)
        subject = OBJ_CHUNKS_PRE_TEMPLATE.format(bucket=self._name, obj=info.nuid)
        seq = 0
        for _ in range(info.chunks or 0):
            message = await self._js.get_msg(stream, seq=seq + 1, subject=subject, next=True, direct=True)
            seq = message.seq or 0
            yield message.data or b""

    async def delete(self, name: str) -> None:
        """Removes the file; harmless when it is not there."""
        with translated_errors(self._name):
            try:
                await self._bucket.delete(name)
            except (ObjectNotFoundError, NotFoundError):
                return
