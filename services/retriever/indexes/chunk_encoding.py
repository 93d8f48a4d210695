"""How a chunk lies in an index. Both engines store the same text, so each can answer alone when the other is down.

The text starts with the few fields that ranking needs of every candidate; the rest is JSON that is decoded for the handful
of hits that are returned. Fetching it costs 0.08 ms for 50 candidates in tantivy and is lost in the noise of a Qdrant scan.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Iterator
from functools import lru_cache

import structlog

from services.retriever import metrics
from services.retriever.indexes.stored_chunk import ChunkUnreadable, StoredChunk
from services.retriever.models import BoundingBox, Chunk

_log = structlog.get_logger()

_SEPARATOR = "\x1f"
_NOT_WORD = re.compile(r"[\W_]+")
_BOX_DIGITS = 2
"""Hundredths of a point are finer than any screen; a float32 in full takes three times the bytes."""
_NAMESPACE = uuid.UUID("6f0d3f0e-1f0c-5c53-9d0b-5f2d2f3c7a11")


def readable(stored: Iterable[StoredChunk]) -> Iterator[tuple[StoredChunk, Chunk]]:
    """The chunks with their decoded form. One that cannot be decoded is set aside: it must not take down the others."""
    for each in stored:
        try:
            yield each, each.chunk
        except ChunkUnreadable as error:
            note_unreadable(error)


def note_unreadable(error: ChunkUnreadable) -> None:
    """One line and one count for a chunk that is set aside."""
    metrics.UNREADABLE.labels("chunk").inc()
    _log.error("chunk_unreadable", chunk_id=error.chunk_id, document_id=error.document_id, error=repr(error.__cause__))


def encode(chunk: Chunk) -> str:
    """The text that both engines store."""
    boxes = chunk.bounding_boxes
    values = vars(chunk) | {"bounding_boxes": [_place(box) for box in boxes]}
    if any(box.char_end for box in boxes):
        values["box_spans"] = [[box.char_start, box.char_end] for box in boxes]  # apart: 0.1.0 takes five numbers a box
    body = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return _SEPARATOR.join((chunk.chunk_id, chunk.document_id, chunk.revision_id, text_hash(chunk.text), body))


def _place(box: BoundingBox) -> list[float]:
    return [box.page, *(round(edge, _BOX_DIGITS) for edge in (box.x0, box.y0, box.x1, box.y1))]


def decode(stored: str) -> StoredChunk:
    """The inverse of `encode`, without decoding the body."""
    return StoredChunk(*stored.split(_SEPARATOR, 4))


@lru_cache(maxsize=512)
def text_hash(text: str) -> str:
    """Equal for texts that differ in case, space and punctuation only: such chunks say the same thing twice. Both engines ask
    for the same chunks one after the other; half of what storing a chunk costs here."""
    normalised = _NOT_WORD.sub(" ", text.casefold()).strip()
    return hashlib.blake2b((normalised or text).encode(), digest_size=16).hexdigest()


def citable_text(chunk: Chunk) -> str:
    """What a reader sees of a chunk, its headings first: they give a passage its subject."""
    return "\n".join((*(" > ".join(path) for path in (chunk.heading_path,) if path), chunk.text))


def point_id(tenant_id: str, chunk_id: str) -> uuid.UUID:
    """The chunk's id in an engine that wants UUIDs. The tenant is in it: chunk ids are unique within a tenant only."""
    return uuid.uuid5(_NAMESPACE, f"{tenant_id}{_SEPARATOR}{chunk_id}")
