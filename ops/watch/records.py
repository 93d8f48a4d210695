"""Reads the stores that are watched over, and what their records say of each other."""

from __future__ import annotations

import hashlib
import json
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from nats.js.errors import NotFoundError
from nats.js.kv import KV_MARKER_REASON, KV_OP

from kit.jetstream import Nats
from kit.jetstream.failures import translated_errors
from kit.jetstream.reading import StoredMessage, last_messages
from kit.jetstream.streams import REQUEST_TIMEOUT_S, subject_counts
from kit.state import Store, Watch
from ops.state import STORES, watch_order
from ops.watch.ledger import Entry, StreamTotals
from services.ingest.state import FILES
from services.memory.state import thread_key
from services.orchestrator.state import SOURCES

VALUE_BYTES_MAX = 256 * 1024
"""A larger record is noticed when it is lost, but not put back."""


COUNTED = tuple(store for store in STORES if store.watch is Watch.COUNTS)
WATCHED = watch_order()


async def read_totals(nats: Nats, stream: str) -> StreamTotals | None:
    """What a stream says of itself; None when there is none."""
    try:
        with translated_errors(f"stream {stream}"):
            state = (await nats.js.stream_info(stream)).state
    except NotFoundError:
        return None
    return StreamTotals(state.first_seq, state.last_seq, state.messages)


async def read_entries(nats: Nats, watched: Store, *, after: int = 0) -> dict[str, Entry]:
    """The entries by subject, deletions too; with data where the ledger keeps it, with `after` only what was written later."""
    messages = last_messages(nats, watched.stream, f"{watched.prefix}>", after=after)
    async with aclosing(messages):
        return {message.subject: _entry(message, keeps_value=watched.keeps_values) async for message in messages}


async def read_entry(nats: Nats, watched: Store, subject: str) -> bytes | None:
    """The data of an entry as the stream's leader has it; None when there is none."""
    try:
        with translated_errors(f"stream {watched.stream}"):
            return (await nats.js.get_msg(watched.stream, subject=subject, direct=False)).data or b""
    except NotFoundError:
        return None


async def find_whole_files(nats: Nats, files: dict[str, bytes]) -> set[str]:
    """The names of the files whose pieces are all there. `files`: descriptions by subject."""
    pieces = await subject_counts(nats, FILES.stream, f"{FILES.piece_prefix}>", timeout_s=REQUEST_TIMEOUT_S)
    whole = set()
    for description in map(fields_of, files.values()):
        if pieces.get(f"{FILES.piece_prefix}{description.get('nuid')}", 0) >= int(description.get("chunks") or 0):
            whole.add(str(description.get("name")))
    return whole


def file_name(document: dict[str, Any]) -> str:
    """Of the file that a document's record refers to."""
    return f"{document.get('tenant_id')}/{(document.get('content') or {}).get('sha256')}"


def file_names(record: bytes) -> set[str]:
    """Of all files that a document's record refers to: of its content, of the searchable revision, of the one being made."""
    document = fields_of(record)
    contents = [document.get("content"), *((document.get(each) or {}).get("content") for each in ("active", "pending"))]
    return {file_name({**document, "content": content}) for content in contents if content}


def fields_of(value: bytes) -> dict[str, Any]:
    """A record's fields; none when it cannot be read."""
    try:
        fields = json.loads(value)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def is_tombstone(value: bytes) -> bool:
    """Whether a record only says that something was deleted: losing it loses nothing."""
    fields = fields_of(value)
    return fields.get("status") == "deleted" or fields.get("deleted") is True


@dataclass(frozen=True)
class NotedSource:
    """An entry of RUN_SOURCES: text of `source` ("document", "thread" or "run", and its id) is in a run."""

    kind: str
    source: str
    """As the key of the document or the run."""
    run: str
    thread: str
    """The key of the thread that the run's answer is in; empty when there is none."""


def noted_source(subject: str, value: bytes) -> NotedSource | None:
    """None for what is no such entry."""
    parts = subject.removeprefix(SOURCES.prefix).split(".")
    if len(parts) != 4:
        return None
    tenant, kind, item, run = parts
    fields = fields_of(value)
    thread_id = fields.get("thread_id")
    thread = thread_key(tenant, str(fields.get("subject")), thread_id) if thread_id else ""
    return NotedSource(kind, f"{tenant}.{item}", f"{tenant}.{run}", thread)


def _entry(message: StoredMessage, *, keeps_value: bool) -> Entry:
    gone = KV_OP in message.headers or KV_MARKER_REASON in message.headers
    if message.subject.startswith(FILES.prefix):
        gone = gone or bool(fields_of(message.data).get("deleted"))
    digest = hashlib.sha256(message.data).digest()
    value = message.data if keeps_value else None
    return Entry(message.subject, message.position, gone, digest, value)
