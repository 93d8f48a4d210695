"""Key-value buckets. Keys are subjects, so a listing by prefix is filtered by the server, not here."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from nats.js import api
from nats.js.errors import APIError, BucketNotFoundError, KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KV_DEL, KV_PURGE
from nats.js.kv import KeyValue as NatsKeyValue

from kit.errors import Aborted, AlreadyExists
from kit.jetstream.connection import Nats, translated_errors


@dataclass(frozen=True)
class Entry:
    """A key with its value; `value` is None when the key has been deleted. `revision` is what compare-and-set compares."""

    key: str
    value: bytes | None
    revision: int


class KeyValue:
    """One bucket. All methods raise Unavailable when the server does not answer."""

    def __init__(self, bucket: NatsKeyValue, name: str) -> None:
        self._bucket = bucket
        self._name = name

    @classmethod
    async def open(
        cls, nats: Nats, name: str, *, ttl_s: float | None = None, history: int = 1, replicas: int = 1
    ) -> "KeyValue":
        """Opens the bucket, making it on first use. With `ttl_s`, entries vanish that long after their last write."""
        config = api.KeyValueConfig(bucket=name, history=history, ttl=ttl_s, replicas=replicas, direct=True)
        with translated_errors(f"bucket {name}"):
            try:
                bucket = await nats.js.key_value(name)
            except BucketNotFoundError:
                try:
                    bucket = await nats.js.create_key_value(config)
                except APIError:  # another process made it meanwhile
                    bucket = await nats.js.key_value(name)
        return cls(bucket, name)

    async def get(self, key: str) -> Entry | None:
        with translated_errors(self._name):
            try:
                entry = await self._bucket.get(key)
            except KeyNotFoundError:
                return None
        return Entry(key, entry.value or b"", entry.revision or 0)

    async def put(self, key: str, value: bytes) -> int:
        """Writes without looking. Returns the new revision."""
        with translated_errors(self._name):
            return int(await self._bucket.put(key, value))

    async def create(self, key: str, value: bytes) -> int:
        """Writes a key that is not there. Returns its revision; raises AlreadyExists."""
        with translated_errors(self._name):
            try:
                return int(await self._bucket.create(key, value))
            except KeyWrongLastSequenceError as error:
                raise AlreadyExists(f"{self._name}/{key} is already there", reason="KEY_EXISTS") from error

    async def update(self, key: str, value: bytes, revision: int) -> int:
        """Writes if the key still has `revision`. Returns the new one; raises Aborted when another writer was first."""
        with translated_errors(self._name):
            try:
                return int(await self._bucket.update(key, value, last=revision))
            except KeyWrongLastSequenceError as error:
                raise Aborted(f"{self._name}/{key} was changed by another writer", reason="KEY_CHANGED") from error

    async def delete(self, key: str, revision: int | None = None) -> None:
        """Deletes, leaving a marker for watchers. With `revision`, only if the key still has it; else raises Aborted."""
        with translated_errors(self._name):
            try:
                await self._bucket.delete(key, last=revision)
            except APIError as error:
                if error.err_code not in (10071, 10164):  # wrong last sequence
                    raise
                raise Aborted(f"{self._name}/{key} was changed by another writer", reason="KEY_CHANGED") from error

    async def purge(self, key: str) -> None:
        """Deletes with all history."""
        with translated_errors(self._name):
            await self._bucket.purge(key)

    async def entries(self, pattern: str) -> AsyncIterator[Entry]:
        """The current entries that match `pattern` (subject wildcards: "tenant.>", "tenant.*.id"), by age of last write."""
        async with aclosing(self.watch(pattern)) as updates:
            async for entry in updates:
                if entry is None:
                    return
                if entry.value is not None:
                    yield entry

    async def watch(self, pattern: str = ">") -> AsyncGenerator[Entry | None, None]:
        """Current entries that match `pattern`, then None once, then every change until closed."""
        with translated_errors(self._name):
            watcher = await self._bucket.watch(pattern)
        try:
            async for update in watcher:
                if update is None:
                    yield None
                    continue
                gone = update.operation in (KV_DEL, KV_PURGE)
                yield Entry(update.key, None if gone else update.value or b"", update.revision or 0)
        finally:
            await watcher.stop()  # type: ignore[no-untyped-call] # nats-py leaves it untyped
