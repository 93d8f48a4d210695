"""Threads in NATS key-value buckets: heads in THREADS, messages and marks in THREAD_MESSAGES."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from kit.errors import Aborted, AlreadyExists
from kit.jetstream import Entry, KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from services.memory.errors import ThreadDamaged
from services.memory.models import Message, Owner, Role, StoredMessage, StoredThread, Thread
from services.memory.state import MESSAGES, THREADS, thread_key

_NOBODYS = Message("", Role.UNKNOWN, "", "", datetime.fromtimestamp(0, UTC))
"""Stands for a message that cannot be read: its place is taken, and it is nobody's."""
READS_AT_ONCE = 64
"""Direct gets in flight for one history: enough to hide the round trip, too few to crowd out other callers."""


class NatsThreadStore:
    """A ThreadStore. Keys are `<tenant>.<owner>.<thread>…`, so that listing and purging are the server's work."""

    def __init__(self, heads: KeyValue, messages: KeyValue) -> None:
        self._heads = heads
        self._messages = messages

    @classmethod
    async def open(cls, nats: Nats) -> "NatsThreadStore":
        """Opens the buckets, making them on first use."""
        return cls(
            await KeyValue.open(nats, THREADS.name, erases=THREADS.is_erased),
            await KeyValue.open(nats, MESSAGES.name, erases=MESSAGES.is_erased),
        )

    async def create_head(self, owner: Owner, thread: Thread) -> None:
        await self._heads.create(_key(owner, thread.thread_id), _encode_head(thread))

    async def get_head(self, owner: Owner, thread_id: str) -> StoredThread | None:
        entry = await self._heads.get(_key(owner, thread_id))
        if entry is None or entry.value is None:
            return None
        try:
            return StoredThread(_decode_head(thread_id, entry.value), entry.revision)
        except UNREADABLE as error:
            set_aside(THREADS.name, entry.key, error)
            raise ThreadDamaged(f"the record of thread {thread_id} is damaged and cannot be read; delete it") from error

    async def update_head(self, owner: Owner, thread: Thread, revision: int) -> None:
        await self._heads.update(_key(owner, thread.thread_id), _encode_head(thread), revision)

    async def delete_head(self, owner: Owner, thread_id: str) -> None:
        await self._heads.purge(_key(owner, thread_id))

    async def list_heads(self, owner: Owner) -> AsyncIterator[Thread]:
        async for entry in self._heads.entries(_key(owner, "*")):
            try:
                yield _decode_head(entry.key.rpartition(".")[2], entry.value or b"")
            except UNREADABLE as error:
                set_aside(THREADS.name, entry.key, error)

    async def take_position(self, owner: Owner, thread_id: str, position: int, message: Message) -> Message | None:
        key = _position_key(owner, thread_id, position)
        try:
            await self._messages.create(key, _encode_message(message))
        except AlreadyExists:
            entry = await self._messages.get(key)
            # Purged meanwhile: the thread is being deleted, which the caller's next look at the head will say.
            return _decoded(entry) or _NOBODYS if entry and entry.value is not None else None
        return None

    async def is_marked(self, owner: Owner, thread_id: str, message_id: str) -> bool:
        return await self._messages.get(_mark_key(owner, thread_id, message_id)) is not None

    async def mark(self, owner: Owner, thread_id: str, message_id: str) -> None:
        with suppress(AlreadyExists):
            await self._messages.create(_mark_key(owner, thread_id, message_id), b"1")

    async def read(self, owner: Owner, thread_id: str, first: int, last: int) -> list[Message]:
        gate = asyncio.Semaphore(READS_AT_ONCE)

        async def one(position: int) -> Message | None:
            async with gate:
                entry = await self._messages.get(_position_key(owner, thread_id, position))
            return _decoded(entry) if entry else None

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(position)) for position in range(first, last + 1)]
        return [message for task in tasks if (message := task.result()) is not None]

    async def rewrite(self, owner: Owner, thread_id: str, change: Callable[[Message], Message]) -> None:
        async for entry in self._messages.entries(f"{_key(owner, thread_id)}.at.*"):
            message = _decoded(entry)
            if message is None or (changed := change(message)) == message:
                continue
            with suppress(Aborted):  # one that is gone or was rewritten meanwhile is left alone
                await self._messages.update(entry.key, _rewritten(entry.value or b"", message, changed), entry.revision)

    async def find(self, owner: Owner, thread_id: str, is_it: Callable[[Message], bool]) -> StoredMessage | None:
        async for entry in self._messages.entries(f"{_key(owner, thread_id)}.at.*"):
            message = _decoded(entry)
            if message is not None and is_it(message):
                return StoredMessage(message, entry.key, entry.value or b"", entry.revision)
        return None

    async def replace(self, owner: Owner, thread_id: str, stored: StoredMessage, changed: Message) -> None:
        del owner, thread_id  # the key names them
        await self._messages.update(stored.key, _rewritten(stored.record, stored.message, changed), stored.revision)

    async def purge_messages(self, owner: Owner, thread_id: str) -> None:
        await self._messages.purge_matching(f"{_key(owner, thread_id)}.>")


def _key(owner: Owner, thread_id: str) -> str:
    return thread_key(owner.tenant_id, owner.subject, thread_id)


def _position_key(owner: Owner, thread_id: str, position: int) -> str:
    return f"{_key(owner, thread_id)}.at.{position}"


def _mark_key(owner: Owner, thread_id: str, message_id: str) -> str:
    return f"{_key(owner, thread_id)}.id.{hashlib.sha256(message_id.encode()).hexdigest()[:32]}"


def _encode_head(thread: Thread) -> bytes:
    record = {
        "title": thread.title,
        "created_at": thread.created_at.isoformat(),
        "updated_at": thread.updated_at.isoformat(),
        "message_count": thread.message_count,
    }
    return _encode(dict(thread.newer_fields) | record)


def _decode_head(thread_id: str, value: bytes) -> Thread:
    record: dict[str, Any] = json.loads(value)
    return Thread(
        thread_id,
        record.pop("title"),
        created_at=datetime.fromisoformat(record.pop("created_at")),
        updated_at=datetime.fromisoformat(record.pop("updated_at")),
        message_count=record.pop("message_count"),
        newer_fields=record,
    )


def _encode_message(message: Message) -> bytes:
    return _encode(_record(message))


def _record(message: Message) -> dict[str, Any]:
    return {
        "message_id": message.message_id,
        "role": message.role.value,
        "text": message.text,
        "run_id": message.run_id,
        "at": message.at.isoformat(),
        "forgotten": message.forgotten,
        "citations": message.citations,
        "support_status": message.support_status,
        "method": message.method,
        "answer_confidence": message.answer_confidence,
        "answer_status": message.answer_status,
        "run_status": message.run_status,
        "artefacts": message.artefacts,
        "verification": message.verification,
    }


def _rewritten(value: bytes, message: Message, changed: Message) -> bytes:
    """The record with what was changed. All else stays as it is: a newer version may have written fields and words into it that are
    not known here."""
    before, after = _record(message), _record(changed)
    return _encode(json.loads(value) | {name: after[name] for name in after if after[name] != before[name]})


def _encode(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode()


def _decoded(entry: Entry) -> Message | None:
    """The message, or None, said so, when it cannot be read."""
    try:
        return _decode_message(entry.value or b"")
    except UNREADABLE as error:
        set_aside(MESSAGES.name, entry.key, error)
        return None


def _decode_message(value: bytes) -> Message:
    record: dict[str, Any] = json.loads(value)
    return Message(
        record["message_id"],
        Role(record["role"]) if record["role"] in set(Role) else Role.UNKNOWN,
        record["text"],
        record["run_id"],
        datetime.fromisoformat(record["at"]),
        record.get("forgotten", False),
        tuple(record.get("citations", ())),
        record.get("support_status", ""),
        record.get("method", ""),
        record.get("answer_confidence"),
        record.get("answer_status", ""),
        record.get("run_status", ""),
        tuple(record.get("artefacts", ())),
        record.get("verification"),
    )
