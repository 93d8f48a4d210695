"""Between the contract's messages and the domain. Nothing is decided here but what a message leaves open."""

from collections.abc import Sequence

import numpy as np
from groundwork.common.v1 import common_pb2
from groundwork.retriever.v1 import retriever_pb2 as pb

from services.retriever.errors import InvalidRequest
from services.retriever.models import (
    Activation,
    BoundingBox,
    Chunk,
    ChunkWindow,
    CollectionStats,
    IndexBatch,
    IndexedChunk,
    RevisionKey,
    Section,
    Vectors,
)
from services.retriever.revisions.indexing import IndexHeader
from services.retriever.revisions.revision_reader import HeldRevision, RevisionState


def chunk_message(chunk: Chunk) -> pb.Chunk:
    return pb.Chunk(
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        collection_id=chunk.collection_id,
        revision_id=chunk.revision_id,
        ordinal=chunk.ordinal,
        document_name=chunk.document_name,
        text=chunk.text,
        page=chunk.page,
        heading_path=chunk.heading_path,
        char_start=chunk.char_start,
        char_end=chunk.char_end,
        token_count=chunk.token_count,
        content_hash=chunk.content_hash,
        bounding_boxes=[common_pb2.BoundingBox(**vars(box)) for box in chunk.bounding_boxes],
        metadata=chunk.metadata,
        language=chunk.language,
    )


def index_header(message: pb.IndexHeader, tenant_id: str) -> IndexHeader:
    key = RevisionKey(tenant_id, message.document_id, message.revision_id)
    to_come = message.to_come if message.HasField("to_come") else None
    return IndexHeader(key, message.collection_id, message.embedding_model, to_come)


def index_batch(message: pb.IndexBatch, header: IndexHeader) -> IndexBatch:
    """Raises InvalidRequest when the vectors do not divide into rows or a chunk says that it belongs elsewhere."""
    chunks = [IndexedChunk(_chunk(chunk, header), chunk.embedded_text) for chunk in message.chunks]
    return IndexBatch(chunks, _vectors(message))


def _vectors(message: pb.IndexBatch) -> Vectors:
    size = len(message.chunks) * message.dimension * 4
    if len(message.vectors) != size or message.dimension == 0:
        raise InvalidRequest(
            f"a batch of {len(message.chunks)} chunks with {message.dimension} dimensions needs {size} bytes of vectors "
            f"and has {len(message.vectors)}; send float32 rows, one a chunk",
            field="vectors",
        )
    rows = np.frombuffer(message.vectors, dtype="<f4").reshape(len(message.chunks), message.dimension)
    return rows.astype(np.float32, copy=False)


def _chunk(message: pb.Chunk, header: IndexHeader) -> Chunk:
    for field, given, expected in (
        ("document_id", message.document_id, header.key.document_id),
        ("collection_id", message.collection_id, header.collection_id),
        ("revision_id", message.revision_id, header.key.revision_id),
    ):
        if given not in ("", expected):
            raise InvalidRequest(
                f"chunk {message.chunk_id} has {field} {given!r}; the header says {expected!r}", field=field
            )
    return Chunk(
        chunk_id=message.chunk_id,
        document_id=header.key.document_id,
        collection_id=header.collection_id,
        revision_id=header.key.revision_id,
        ordinal=message.ordinal,
        document_name=message.document_name,
        text=message.text,
        page=message.page,
        heading_path=tuple(message.heading_path),
        char_start=message.char_start,
        char_end=message.char_end,
        token_count=message.token_count,
        content_hash=message.content_hash,
        bounding_boxes=tuple(_box(box) for box in message.bounding_boxes),
        metadata=dict(message.metadata),
        language=message.language,
        embedded_prefix=_embedded_prefix(message),
    )


def _box(message: common_pb2.BoundingBox) -> BoundingBox:
    place = (message.page, message.x0, message.y0, message.x1, message.y1)
    return BoundingBox(*place, message.char_start, message.char_end)


def _embedded_prefix(message: pb.Chunk) -> str | None:
    embedded, text = message.embedded_text, message.text
    return embedded.removesuffix(text) if embedded.endswith(text) else None


def activation(message: pb.ActivateRevisionRequest, tenant_id: str) -> Activation:
    return Activation(
        RevisionKey(tenant_id, message.document_id, message.revision_id),
        message.collection_id,
        message.revision_number,
        message.expected_chunk_count,
        tuple(message.languages),
    )


def immediate_activation(message: pb.Activation, header: IndexHeader) -> Activation:
    return Activation(
        header.key,
        header.collection_id,
        message.revision_number,
        message.expected_chunk_count,
        tuple(message.languages),
    )


def fetch_response(windows: Sequence[ChunkWindow]) -> pb.FetchChunksResponse:
    return pb.FetchChunksResponse(
        chunks=[
            pb.ChunkWindow(
                chunk=chunk_message(window.chunk),
                before=[chunk_message(chunk) for chunk in window.before],
                after=[chunk_message(chunk) for chunk in window.after],
            )
            for window in windows
        ]
    )


def section_response(section: Section) -> pb.FetchChunksResponse:
    return pb.FetchChunksResponse(
        chunks=[pb.ChunkWindow(chunk=chunk_message(chunk)) for chunk in section.chunks],
        document_chunk_count=section.document_chunk_count,
    )


def stats_response(stats: Sequence[CollectionStats]) -> pb.CorpusStatsResponse:
    return pb.CorpusStatsResponse(
        collections=[
            pb.CollectionStats(
                collection_id=item.collection_id, document_count=item.document_count, chunk_count=item.chunk_count
            )
            for item in stats
        ]
    )


def vectors_response(content_hashes: list[str], vectors: Vectors) -> pb.FetchVectorsResponse:
    return pb.FetchVectorsResponse(
        content_hashes=content_hashes, vectors=vectors.astype("<f4").tobytes(), dimension=vectors.shape[1]
    )


def check_response(held: Sequence[HeldRevision]) -> pb.CheckRevisionsResponse:
    return pb.CheckRevisionsResponse(
        revisions=[
            pb.RevisionCheck(
                document_id=each.document_id,
                state=_REVISION_STATES[each.state],
                active_revision_number=each.active_number,
            )
            for each in held
        ]
    )


_REVISION_STATES = {
    RevisionState.ACTIVE: pb.REVISION_STATE_ACTIVE,
    RevisionState.INCOMPLETE: pb.REVISION_STATE_INCOMPLETE,
    RevisionState.INACTIVE: pb.REVISION_STATE_INACTIVE,
    RevisionState.DELETED: pb.REVISION_STATE_DELETED,
}
