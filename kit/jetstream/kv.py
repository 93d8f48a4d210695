"""Key-value buckets. Keys are subjects, so a listing by prefix is filtered by the server, not here."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import APIError, BucketNotFoundError, KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KV_MARKER_REASON, KV_OP
from nats.js.kv import KeyValue as NatsKeyValue

from kit.errors import Aborted, AlreadyExists
from kit.jetstream.connection import Nats, translated_errors
from kit.jetstream.following import follow

_DELETION_HEADERS = (KV_OP, KV_MARKER_REASON)
"""Set by a client that deletes or purges, and by a server that lets a key expire."""
_MARKER_TTL_S = 86_400
_DEDUPLICATION_WINDOW_S = 120.0


@dataclass(frozen=True)
class Entry:
    """A key with its value; `value` is None when the key has been deleted. `revision` is what compare-and-set compares."""

    key: str
    value: bytes | None
    revision: int


class KeyValue:
    """One bucket. All methods raise Unavailable when the server does not answer."""

    def __init__(self, nats: Nats, bucket: NatsKeyValue, name: str) -> None:
        self._nats = nats
        self._bucket = bucket
        self._name = name
        self._prefix = f"$KV.{name}."

    @classmethod
    async def open(
        cls, nats: Nats, name: str, *, ttl_s: float | None = None, history: int = 1, replicas: int = 1
    ) -> "KeyValue":
        """Opens the bucket, making it on first use. With `ttl_s`, entries vanish that long after their last write; an existing
        bucket takes a changed one over."""
        config = api.KeyValueConfig(bucket=name, history=history, ttl=ttl_s, replicas=replicas, direct=True)
        with translated_errors(f"bucket {name}"):
            try:
                bucket = await nats.js.key_value(name)
                await _keep_for(nats, name, ttl_s)
            except BucketNotFoundError:
                try:
                    bucket = await nats.js.create_key_value(config)
                except APIError:  # another process made it meanwhile
                    bucket = await nats.js.key_value(name)
        return cls(nats, bucket, name)

    @property
    def reconnections(self) -> int:
        """Of its connection."""
        return self._nats.reconnections

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
                return await self._create(key, value)
            except KeyWrongLastSequenceError as error:
                raise AlreadyExists(f"{self._name}/{key} is already there", reason="KEY_EXISTS") from error

    async def _create(self, key: str, value: bytes) -> int:
        try:
            return int(await self._bucket.create(key, value))
        except KeyNotFoundError:  # refused because the key was there; it expired before the client could look at it
            return int(await self._bucket.create(key, value))

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
        """Deletes with all history. The marker for watchers goes too, after a day: keys that come and go leave nothing behind."""
        with translated_errors(self._name):
            await self._bucket.purge(key, msg_ttl=_MARKER_TTL_S)

    async def entries(self, pattern: str, *, after: int = 0) -> AsyncIterator[Entry]:
        """The current entries that match `pattern` (subject wildcards: "tenant.>", "tenant.*.id"), by age of last write; with
        `after` only those of a higher revision, of a bucket with a history of 1."""
        async with aclosing(self.watch(pattern, after=after)) as updates:
            async for entry in updates:
                if entry is None:
                    return
                if entry.value is not None:
                    yield entry

    async def watch(self, pattern: str = ">", *, after: int = 0) -> AsyncGenerator[Entry | None, None]:
        """Current entries that match `pattern`, then None once, then every change until closed.

        Outlives the server: what changed while it was away comes when it is back. Raises Unavailable at the start only.
        """
        subject = f"{self._prefix}{pattern}"
        stream = f"KV_{self._name}"
        async with aclosing(follow(self._nats, stream, subject, last_per_subject=True, after=after)) as messages:
            async for message in messages:
                yield None if message is None else self._entry(message)

    def _entry(self, message: Msg) -> Entry:
        gone = any(header in (message.headers or {}) for header in _DELETION_HEADERS)
        key = message.subject.removeprefix(self._prefix)
        return Entry(key, None if gone else message.data, message.metadata.sequence.stream)


async def _keep_for(nats: Nats, name: str, ttl_s: float | None) -> None:
    config = (await nats.js.stream_info(f"KV_{name}")).config
    if (config.max_age or None) != ttl_s:
        config.max_age = ttl_s or 0.0
        # The server refuses to remember a message for longer than it keeps it.
        config.duplicate_window = min(ttl_s or _DEDUPLICATION_WINDOW_S, _DEDUPLICATION_WINDOW_S)
        await nats.js.update_stream(config)
