"""Key-value buckets. Keys are subjects, so a listing by prefix is filtered by the server, not here."""

import math
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from nats.js import api
from nats.js.errors import APIError, BucketNotFoundError, KeyNotFoundError, KeyWrongLastSequenceError, NotFoundError
from nats.js.kv import KV_MARKER_REASON, KV_OP, KV_PURGE, MSG_ROLLUP_SUBJECT
from nats.js.kv import KeyValue as NatsKeyValue

from kit.errors import Aborted, AlreadyExists
from kit.jetstream.connection import REQUEST_TIMEOUT_S, Nats, translated_errors
from kit.jetstream.following import follow
from kit.jetstream.reading import StoredMessage, last_messages, stored_messages
from kit.jetstream.streams import subject_counts

_DELETION_HEADERS = (KV_OP, KV_MARKER_REASON)
"""Set by a client that deletes or purges, and by a server that lets a key expire."""
_MARKER_TTL_S = 86_400
_WRONG_LAST_SEQUENCE = (10071, 10164)
_DEDUPLICATION_WINDOW_S = 120.0


@dataclass(frozen=True)
class Entry:
    """A key with its value; `value` is None when the key has been deleted. `revision` is what compare-and-set compares.
    `written_at` is known of listed and watched entries."""

    key: str
    value: bytes | None
    revision: int
    written_at: datetime | None = field(default=None, compare=False)


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

    async def get_current(self, key: str) -> Entry | None:
        """As `get`, asked of the bucket's leader: any replica answers `get`, also one that lags or is cut off. For reads that
        decide something."""
        message = await self._last_message(key)
        if message is None or any(header in (message.headers or {}) for header in _DELETION_HEADERS):
            return None
        return Entry(key, message.data or b"", message.seq or 0)

    async def last_revision(self) -> int:
        """Of the newest entry or deletion marker that the bucket's leader has; 0 when there is none."""
        message = await self._last_message(">")
        return message.seq or 0 if message else 0

    async def _last_message(self, pattern: str) -> api.RawStreamMsg | None:
        with translated_errors(self._name):
            try:
                return await self._nats.js.get_msg(f"KV_{self._name}", subject=f"{self._prefix}{pattern}", direct=False)
            except NotFoundError:
                return None

    async def was_deleted(self, key: str) -> bool:
        """Whether the marker of a deletion is there; not so of a key that never was, or whose marker is gone."""
        with translated_errors(self._name):
            try:
                await self._bucket.get(key)
            except KeyNotFoundError as error:
                return error.entry is not None
        return False

    async def put(self, key: str, value: bytes) -> int:
        """Writes without looking. Returns the new revision."""
        with translated_errors(self._name):
            return int(await self._bucket.put(key, value))

    async def create(self, key: str, value: bytes, *, ttl_s: float | None = None) -> int:
        """Writes a key that is not there, which vanishes after `ttl_s`. Returns its revision; raises AlreadyExists."""
        with translated_errors(self._name):
            try:
                return await self._create(key, value, ttl_s)
            except KeyWrongLastSequenceError as error:
                raise AlreadyExists(f"{self._name}/{key} is already there", reason="KEY_EXISTS") from error

    async def _create(self, key: str, value: bytes, ttl_s: float | None) -> int:
        msg_ttl = None if ttl_s is None else math.ceil(ttl_s)
        while True:
            try:
                return int(await self._bucket.create(key, value, msg_ttl=msg_ttl))
            except KeyNotFoundError:  # refused because the key was there; it went before the client could look at it
                continue

    async def update(self, key: str, value: bytes, revision: int) -> int:
        """Writes if the key still has `revision`. Returns the new one; raises Aborted when another writer was first."""
        with translated_errors(self._name):
            try:
                return int(await self._bucket.update(key, value, last=revision))
            except KeyWrongLastSequenceError as error:
                raise Aborted(f"{self._name}/{key} was changed by another writer", reason="KEY_CHANGED") from error

    async def delete(self, key: str, revision: int | None = None) -> None:
        """Deletes, leaving a marker for watchers. With `revision`, only if the key still has it; else raises Aborted."""
        with translated_errors(self._name), self._conflicts(key):
            await self._bucket.delete(key, last=revision)

    async def purge(self, key: str, revision: int | None = None) -> None:
        """Deletes with all history. The marker for watchers goes too, after a day: keys that come and go leave nothing behind. With
        `revision`, only if the key still has it; else raises Aborted."""
        headers = {KV_OP: KV_PURGE, api.Header.ROLLUP: MSG_ROLLUP_SUBJECT}
        if revision is not None:
            headers[api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE] = str(revision)
        with translated_errors(self._name), self._conflicts(key):
            await self._nats.js.publish(f"{self._prefix}{key}", headers=headers, msg_ttl=_MARKER_TTL_S)

    async def purge_matching(self, pattern: str) -> None:
        """Removes all keys that match `pattern` with their history. Watchers are not told."""
        with translated_errors(self._name):
            await self._nats.js.purge_stream(f"KV_{self._name}", subject=f"{self._prefix}{pattern}")

    async def entries(self, pattern: str, *, after: int = 0) -> AsyncIterator[Entry]:
        """The current entries that match `pattern` (subject wildcards: "tenant.>", "tenant.*.id"), each key once, by age of last
        write. A key that is there all the while is never missed, however often it is written meanwhile.

        With `after` only those of a higher revision, of a bucket with a history of 1. What is written meanwhile may then be
        missing: it comes when the next listing goes on from what `last_revision` was before this one.
        """
        subject = f"{self._prefix}{pattern}"
        async with aclosing(last_messages(self._nats, f"KV_{self._name}", subject, after=after)) as messages:
            async for message in messages:
                entry = self._entry(message)
                if entry.value is not None:
                    yield entry

    async def keys(self, pattern: str) -> list[str]:
        """The keys that match `pattern`, in no order, as the bucket's leader has them at one moment: a key that is written
        meanwhile is not missed. Those that were deleted within a day are among them. No value is read."""
        found = await subject_counts(
            self._nats, f"KV_{self._name}", f"{self._prefix}{pattern}", timeout_s=REQUEST_TIMEOUT_S
        )
        return [subject.removeprefix(self._prefix) for subject in found]

    async def changes(self, *, after: int) -> AsyncGenerator[Entry, None]:
        """What was written behind revision `after`, deletions included, by age: of a bucket with a history of 1 each key as it was
        written last. Read without a consumer, of any replica: what one that lags does not have yet is behind all that comes."""
        stored = stored_messages(self._nats, f"KV_{self._name}", f"{self._prefix}>", after=after)
        async with aclosing(stored) as messages:
            async for message in messages:
                yield self._entry(message)

    async def watch(self, pattern: str = ">", *, after: int = 0) -> AsyncGenerator[Entry | None, None]:
        """Current entries that match `pattern`, then None once, then every change until closed.

        Outlives the server: what changed while it was away comes when it is back. Raises Unavailable at the start only.
        """
        subject = f"{self._prefix}{pattern}"
        stream = f"KV_{self._name}"
        async with aclosing(follow(self._nats, stream, subject, last_per_subject=True, after=after)) as messages:
            async for message in messages:
                yield None if message is None else self._entry(StoredMessage.delivered(message))

    @contextmanager
    def _conflicts(self, key: str) -> Iterator[None]:
        """Raises Aborted where the server says that the key has another revision."""
        try:
            yield
        except APIError as error:
            if error.err_code not in _WRONG_LAST_SEQUENCE:
                raise
            raise Aborted(f"{self._name}/{key} was changed by another writer", reason="KEY_CHANGED") from error

    def _entry(self, message: StoredMessage) -> Entry:
        gone = any(header in message.headers for header in _DELETION_HEADERS)
        key = message.subject.removeprefix(self._prefix)
        return Entry(key, None if gone else message.data, message.position, message.at)


async def _keep_for(nats: Nats, name: str, ttl_s: float | None) -> None:
    config = (await nats.js.stream_info(f"KV_{name}")).config
    if (config.max_age or None) != ttl_s:
        config.max_age = ttl_s or 0.0
        # The server refuses to remember a message for longer than it keeps it.
        config.duplicate_window = min(ttl_s or _DEDUPLICATION_WINDOW_S, _DEDUPLICATION_WINDOW_S)
        await nats.js.update_stream(config)
