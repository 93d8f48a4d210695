"""Key-value buckets. Keys are subjects, so a listing by prefix is filtered by the server, not here.

The layout is that of NATS key-value buckets (ADR-8 of its architecture notes), which the server's own tools read. Every read asks
the leader of the bucket: any replica would answer a direct get, also one that lags or is cut off, and a value that was just written
would not be found. Every write carries an id, so that it is sent again while a leader is elected, and still stored once.
"""

import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime

import structlog
from nats.js import api
from nats.js.errors import APIError, InvalidKeyError, NotFoundError
from nats.js.kv import KV_DEL, KV_MARKER_REASON, KV_OP, KV_PURGE, MSG_ROLLUP_SUBJECT

from kit import deadline
from kit.errors import Aborted, AlreadyExists, Unavailable
from kit.jetstream.connection import Nats
from kit.jetstream.erasing import erase_messages, erase_superseded
from kit.jetstream.failures import WRONG_LAST_SEQUENCE
from kit.jetstream.following import follow
from kit.jetstream.opening import patient
from kit.jetstream.reading import StoredMessage, last_messages, stored_messages
from kit.jetstream.streams import subject_counts

_log = structlog.get_logger()

_DELETION_HEADERS = (KV_OP, KV_MARKER_REASON)
"""Set by a client that deletes or purges, and by a server that lets a key expire."""
_MARKER_TTL_S = 86_400
_DEDUPLICATION_WINDOW_S = 120.0
_ERASED_HISTORY = 16
"""Revisions of a key that a bucket keeps until they are erased. What the server removes itself to keep fewer stays in its files: so
there is room for those that processes which were killed have left."""
_ERASE_WITHIN_S = 2.0
"""How long a writer waits at most until the replaced value is erased."""
_KEY = re.compile(r"[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*")


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

    def __init__(self, nats: Nats, name: str, *, erases: bool = False) -> None:
        self._nats = nats
        self._name = name
        self._erases = erases
        self._stream = f"KV_{name}"
        self._prefix = f"$KV.{name}."
        self._left: dict[str, int] = {}
        """Subjects below whose position something is that could not be overwritten."""

    @classmethod
    @patient
    async def open(cls, nats: Nats, name: str, *, ttl_s: float | None = None, erases: bool = False) -> "KeyValue":
        """Opens the bucket, making it on first use, on as many servers as `nats` says. With `ttl_s`, entries vanish that long after
        their last write; an existing bucket takes a changed one over.

        A bucket that `erases` overwrites values on the server's disk when they are replaced, deleted or purged. One that was made
        without cannot be changed: it goes on without, and says so."""
        if erases and await nats.denies_deletion(f"KV_{name}"):
            _log.warning("bucket_cannot_erase", bucket=name)
            erases = False
        config = api.StreamConfig(
            name=f"KV_{name}",
            subjects=[f"$KV.{name}.>"],
            max_msgs_per_subject=_ERASED_HISTORY if erases else 1,
            max_age=ttl_s or 0.0,
            # The server refuses to remember a message for longer than it keeps it.
            duplicate_window=min(ttl_s or _DEDUPLICATION_WINDOW_S, _DEDUPLICATION_WINDOW_S),
            discard=api.DiscardPolicy.NEW,
            storage=api.StorageType.FILE,
            allow_direct=True,
            allow_rollup_hdrs=True,
            allow_msg_ttl=True,
        )
        await nats.ensure_stream(config)
        if erases:
            await erase_superseded(nats, f"KV_{name}", f"$KV.{name}.>")
        return cls(nats, name, erases=erases)

    @classmethod
    @patient
    async def open_to_read(cls, nats: Nats, name: str) -> "KeyValue":
        """Opens a bucket that another service looks after: nothing about it is changed. Made here where that service has not come
        yet, so that none has to wait for the other."""
        return cls(nats, name) if await nats.has_stream(f"KV_{name}") else await cls.open(nats, name)

    @property
    def reconnections(self) -> int:
        """Of its connection."""
        return self._nats.reconnections

    async def get(self, key: str) -> Entry | None:
        """What the bucket's leader has; None when that is nothing, or the marker of a deletion."""
        message = await self._last_message(_checked(key))
        if message is None or _is_marker(message):
            return None
        return Entry(key, message.data or b"", message.seq or 0)

    async def last_revision(self) -> int:
        """Of the newest entry or deletion marker that the bucket's leader has; 0 when there is none."""
        message = await self._last_message(">")
        return message.seq or 0 if message else 0

    async def _last_message(self, pattern: str) -> api.RawStreamMsg | None:
        try:
            return await self._nats.last_message(self._stream, f"{self._prefix}{pattern}")
        except NotFoundError:
            return None

    async def was_deleted(self, key: str) -> bool:
        """Whether the marker of a deletion is there; not so of a key that never was, or whose marker is gone."""
        message = await self._last_message(_checked(key))
        return message is not None and _is_marker(message)

    async def put(self, key: str, value: bytes) -> int:
        """Writes without looking. Returns the new revision."""
        return await self._write(key, value)

    async def create(self, key: str, value: bytes, *, ttl_s: float | None = None) -> int:
        """Writes a key that is not there, which vanishes after `ttl_s`. Returns its revision; raises AlreadyExists."""
        try:
            try:
                return await self._write(key, value, revision=0, ttl_s=ttl_s)
            except Aborted:
                message = await self._last_message(key)
                if message is not None and not _is_marker(message):
                    raise
                # It was deleted, or expired before we could look at it.
                return await self._write(key, value, revision=message.seq or 0 if message else 0, ttl_s=ttl_s)
        except Aborted as error:
            raise AlreadyExists(f"{self._name}/{key} is already there", reason="KEY_EXISTS") from error

    async def update(self, key: str, value: bytes, revision: int) -> int:
        """Writes if the key still has `revision`. Returns the new one; raises Aborted when another writer was first."""
        return await self._write(key, value, revision=revision)

    async def last_position(self) -> int:
        """Of the newest write to the bucket, also of one that is gone since; 0 when there was none."""
        return await self._nats.last_position(self._stream)

    async def put_if_bucket_unchanged(self, key: str, value: bytes, position: int) -> int:
        """Writes if nothing was written to the whole bucket since `last_position` was `position`. Returns the new revision; raises
        Aborted."""
        return await self._write(key, value, headers={api.Header.EXPECTED_LAST_SEQUENCE.value: str(position)})

    async def delete_if_bucket_unchanged(self, key: str, position: int) -> int:
        """Deletes as `put_if_bucket_unchanged` writes. Returns the revision of the marker; raises Aborted."""
        return await self._write(key, headers={KV_OP: KV_DEL, api.Header.EXPECTED_LAST_SEQUENCE.value: str(position)})

    async def delete(self, key: str, revision: int | None = None) -> None:
        """Deletes, leaving a marker for watchers. With `revision`, only if the key still has it; else raises Aborted."""
        await self._write(key, headers={KV_OP: KV_DEL}, revision=revision)

    async def purge(self, key: str, revision: int | None = None) -> None:
        """Deletes with all history. The marker for watchers goes too, after a day: keys that come and go leave nothing behind. With
        `revision`, only if the key still has it; else raises Aborted."""
        headers = {KV_OP: KV_PURGE}
        if self._erases:
            # A rollup would remove what is to be overwritten first, and a marker that expired would uncover what was not: so this
            # one stays until all below it is gone.
            revision = await self._store(key, headers=headers, revision=revision)
            await erase_messages(self._nats, self._stream, f"{self._prefix}{key}", before=revision)
        headers[api.Header.ROLLUP.value] = MSG_ROLLUP_SUBJECT
        try:
            await self._store(key, headers=headers, revision=revision, ttl_s=_MARKER_TTL_S)
        except Aborted:
            if not self._erases:
                raise  # else it is purged, and written anew since

    async def _write(
        self,
        key: str,
        value: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        revision: int | None = None,
        ttl_s: float | None = None,
    ) -> int:
        """Writes, and overwrites what it replaces where the bucket erases. Raises as `_store`."""
        position = await self._store(key, value, headers=headers, revision=revision, ttl_s=ttl_s)
        if self._erases and revision != 0:
            await self._overwrite(f"{self._prefix}{key}", position, revision)
        return position

    async def _overwrite(self, subject: str, position: int, replaced: int | None) -> None:
        """Erases what lies below `position`: `replaced` alone, where it is known. What cannot be erased now is erased with a later
        write, or when the bucket is opened: the value itself is stored."""
        try:
            with deadline.within(_ERASE_WITHIN_S):
                if replaced is None:
                    await erase_messages(self._nats, self._stream, subject, before=position)
                else:
                    await self._nats.delete(self._stream, replaced)
                while self._left:
                    subject, position = self._left.popitem()
                    await erase_messages(self._nats, self._stream, subject, before=position)
        except BaseException as error:
            self._left[subject] = position
            if not isinstance(error, Unavailable):
                raise
            _log.warning("replaced_value_not_erased", bucket=self._name, error=error.message)

    async def _store(
        self,
        key: str,
        value: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        revision: int | None = None,
        ttl_s: float | None = None,
    ) -> int:
        """Raises Aborted when the key has another revision than the given one."""
        whole = dict(headers or {})
        if revision is not None:
            whole[api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value] = str(revision)
        subject = f"{self._prefix}{_checked(key)}"
        try:
            return await self._nats.store(
                self._stream, subject, value, whole, ttl_s=None if ttl_s is None else math.ceil(ttl_s)
            )
        except APIError as error:
            if error.err_code not in WRONG_LAST_SEQUENCE:
                raise
            raise Aborted(f"{self._name}/{key} was changed by another writer", reason="KEY_CHANGED") from error

    async def purge_matching(self, pattern: str) -> None:
        """Removes all keys that match `pattern` with their history. Watchers do not hear of it."""
        if self._erases:
            await erase_messages(self._nats, self._stream, f"{self._prefix}{pattern}")
        await self._nats.purge(self._stream, f"{self._prefix}{pattern}")

    async def entries(self, pattern: str, *, after: int = 0) -> AsyncIterator[Entry]:
        """The current entries that match `pattern` (subject wildcards: "tenant.>", "tenant.*.id"), each key once; of a bucket
        with one replica by age of last write. A key that is there all the while is never missed, however often it is written.

        With `after` only those of a higher revision. What is written meanwhile may then be
        missing: it comes when the next listing goes on from what `last_revision` was before this one.
        """
        subject = f"{self._prefix}{pattern}"
        async with aclosing(last_messages(self._nats, self._stream, subject, after=after)) as messages:
            async for message in messages:
                entry = self._entry(message)
                if entry.value is not None:
                    yield entry

    async def keys(self, pattern: str) -> list[str]:
        """The keys that match `pattern`, in no order, as the bucket's leader has them at one moment: a key that is written
        meanwhile is not missed. Those that were deleted within a day are among them. No value is read."""
        found = await subject_counts(self._nats, self._stream, f"{self._prefix}{pattern}")
        return [subject.removeprefix(self._prefix) for subject in found]

    async def changes(self, *, after: int) -> AsyncGenerator[Entry, None]:
        """What was written behind revision `after`, deletions included, by age: of a bucket with a history of 1 each key as it was
        written last. Read without a consumer, of any replica: what one that lags does not have yet is behind all that comes."""
        stored = stored_messages(self._nats, self._stream, f"{self._prefix}>", after=after)
        async with aclosing(stored) as messages:
            async for message in messages:
                yield self._entry(message)

    async def watch(self, pattern: str = ">", *, after: int = 0) -> AsyncGenerator[Entry | None, None]:
        """Current entries that match `pattern`, then None once, then every change until closed.

        Outlives the server: what changed while it was away comes when it is back. Raises Unavailable at the start only.
        """
        subject = f"{self._prefix}{pattern}"
        async with aclosing(follow(self._nats, self._stream, subject, last_per_subject=True, after=after)) as messages:
            async for message in messages:
                yield None if message is None else self._entry(StoredMessage.delivered(message))

    def _entry(self, message: StoredMessage) -> Entry:
        gone = any(header in message.headers for header in _DELETION_HEADERS)
        key = message.subject.removeprefix(self._prefix)
        return Entry(key, None if gone else message.data, message.position, message.at)


def _is_marker(message: api.RawStreamMsg) -> bool:
    return any(header in (message.headers or {}) for header in _DELETION_HEADERS)


def _checked(key: str) -> str:
    """Raises InvalidKeyError. A wildcard would stand for somebody else's key."""
    if not _KEY.fullmatch(key):
        raise InvalidKeyError(key)
    return key
