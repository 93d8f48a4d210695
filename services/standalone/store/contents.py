"""Which streams are watched over, and what is read from them."""

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
from services.standalone.store.ledger import Entry, StreamTotals

VALUE_BYTES_MAX = 256 * 1024
"""A larger record is noticed when it is lost, but not put back."""


@dataclass(frozen=True)
class Watched:
    """A stream whose entries, one a subject, are known one by one."""

    stream: str
    prefix: str
    """Of the subjects; what follows is the entry's key."""
    keeps_values: bool
    """Whether the ledger keeps the data, so that it can be put back. Not of threads: what people wrote is not stored twice."""

    @property
    def name(self) -> str:
        """As people and documentation call it."""
        return self.stream.removeprefix("KV_").removeprefix("OBJ_")


def _bucket(name: str, *, keeps_values: bool = True) -> Watched:
    return Watched(f"KV_{name}", f"$KV.{name}.", keeps_values)


FILES = Watched("OBJ_FILES", "$O.FILES.M.", keeps_values=True)
"""The descriptions of files; their pieces are counted."""
PIECES = "$O.FILES.C."
DOCUMENTS = _bucket("DOCUMENTS")
NAMES = _bucket("DOCUMENT_NAMES")
POINTERS = _bucket("ACTIVE_REVISIONS")
THREADS = _bucket("THREADS", keeps_values=False)
MESSAGES = _bucket("THREAD_MESSAGES", keeps_values=False)
SOURCES = _bucket("RUN_SOURCES")
FORGOTTEN = _bucket("FORGOTTEN")
COLLECTIONS, DEAD_LETTERS = _bucket("COLLECTIONS"), _bucket("DEAD_LETTERS")
COLLECTION_MODELS = _bucket("COLLECTION_MODELS")
"""Without its record a collection is searched by the models that its documents came with."""
API_KEYS = _bucket("API_KEYS")
"""Of a key only a hash is there. A revocation that was lost would open the door again."""
MARKERS = _bucket("RUN_ACTIVE")
"""Of the runs that have not ended. A run without one is gone on with only when somebody asks for it."""
WATCHED = (
    SOURCES, FILES, COLLECTIONS, COLLECTION_MODELS, NAMES, POINTERS, DOCUMENTS, DEAD_LETTERS, MESSAGES, THREADS, FORGOTTEN,
    MARKERS, API_KEYS,
)  # fmt: skip
"""Whoever belongs to another is read before him: what is deleted meanwhile, owner first, is then not taken for lost. Queues are
watched in :mod:`services.standalone.store.queues`."""
RUNS = "RUNS"
RECORDS = _bucket("RUN_RECORDS", keeps_values=False)
COUNTED = (RUNS, RECORDS.stream)
"""Streams of which only totals are known: they are too busy to be read twice, and expire."""
SOURCES_ARE_NOTED = f"{SOURCES.prefix}older-runs-are-noted"
"""While it is there, the orchestrator takes the sources of all runs as noted; else it reads them from all logs at its start."""


async def totals(nats: Nats, stream: str) -> StreamTotals | None:
    """What a stream says of itself; None when there is none."""
    try:
        with translated_errors(f"stream {stream}"):
            state = (await nats.js.stream_info(stream)).state
    except NotFoundError:
        return None
    return StreamTotals(state.first_seq, state.last_seq, state.messages)


async def read(nats: Nats, watched: Watched, *, after: int = 0) -> dict[str, Entry]:
    """The entries by subject, deletions too; with data where the ledger keeps it, with `after` only what was written later."""
    messages = last_messages(nats, watched.stream, f"{watched.prefix}>", after=after)
    async with aclosing(messages):
        return {message.subject: _entry(message, keeps_value=watched.keeps_values) async for message in messages}


async def read_one(nats: Nats, watched: Watched, subject: str) -> bytes | None:
    """The data of an entry as the stream's leader has it; None when there is none."""
    try:
        with translated_errors(f"stream {watched.stream}"):
            return (await nats.js.get_msg(watched.stream, subject=subject, direct=False)).data or b""
    except NotFoundError:
        return None


async def whole_files(nats: Nats, files: dict[str, bytes]) -> set[str]:
    """Names of those files, given by their descriptions, of which every piece is there."""
    pieces = await subject_counts(nats, FILES.stream, f"{PIECES}>", timeout_s=REQUEST_TIMEOUT_S)
    whole = set()
    for description in map(fields_of, files.values()):
        if pieces.get(f"{PIECES}{description.get('nuid')}", 0) >= int(description.get("chunks") or 0):
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
    owner = hashlib.sha256(str(fields.get("subject")).encode()).hexdigest()[:32]  # as the memory service names them
    thread = f"{tenant}.{owner}.{fields['thread_id']}" if fields.get("thread_id") else ""
    return NotedSource(kind, f"{tenant}.{item}", f"{tenant}.{run}", thread)


def _entry(message: StoredMessage, *, keeps_value: bool) -> Entry:
    gone = KV_OP in message.headers or KV_MARKER_REASON in message.headers
    if message.subject.startswith(FILES.prefix):
        gone = gone or bool(fields_of(message.data).get("deleted"))
    digest = hashlib.sha256(message.data).digest()
    value = message.data if keeps_value else None
    return Entry(message.subject, message.position, gone, digest, value)
