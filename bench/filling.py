"""A store of many chunks in seconds: texts and vectors straight into the retriever, without embedding them. The vectors lie in
clusters on the unit sphere, as those of real texts do; an exact scan and BM25 cost the same whatever they mean."""

import asyncio
import hashlib
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc

from bench.corpus import make_paragraphs
from kit.channel import Channel

COLLECTION = "default"
_CHUNKS_PER_DOCUMENT = 100
_CHUNKS_PER_MESSAGE = 100
_DOCUMENTS_AT_ONCE = 4
_CLUSTERS = 64
_WORDS_PER_CHUNK = 120
_TIMEOUT_S = 60.0


async def fill(channel: Channel, *, chunks: int, model: str, dimension: int) -> None:
    """Writes and activates `chunks` chunks in documents of 100."""
    stub: Any = retriever_pb2_grpc.RetrieverServiceStub(channel)
    rng = np.random.default_rng(1)
    centers = rng.standard_normal((_CLUSTERS, dimension))
    texts = make_paragraphs(1, chunks, _WORDS_PER_CHUNK)
    vectors = clustered_unit_vectors(rng, centers, chunks)
    starts = iter(range(0, chunks, _CHUNKS_PER_DOCUMENT))

    async def work() -> None:
        for start in starts:  # shared: each document is taken once
            stop = start + _CHUNKS_PER_DOCUMENT
            await _document(stub, texts[start:stop], vectors[start:stop], model)

    async with asyncio.TaskGroup() as group:
        for _ in range(_DOCUMENTS_AT_ONCE):
            group.create_task(work())


def clustered_unit_vectors(
    rng: np.random.Generator, centers: npt.NDArray[np.float64], count: int
) -> npt.NDArray[np.float32]:
    """float32 [count, dimension], each row L2-normalised, around the rows of `centers`."""
    around = centers[rng.integers(len(centers), size=count)] + 0.8 * rng.standard_normal((count, centers.shape[1]))
    return np.asarray(around / np.linalg.norm(around, axis=1, keepdims=True), dtype=np.float32)


async def _document(stub: Any, texts: Sequence[str], vectors: npt.NDArray[np.float32], model: str) -> None:
    document_id, revision_id = uuid.uuid4().hex, uuid.uuid4().hex
    header = retriever_pb2.IndexHeader(
        document_id=document_id, collection_id=COLLECTION, revision_id=revision_id, embedding_model=model
    )

    def requests() -> Iterator[retriever_pb2.IndexChunksRequest]:
        yield retriever_pb2.IndexChunksRequest(header=header)
        for start in range(0, len(texts), _CHUNKS_PER_MESSAGE):
            part = vectors[start : start + _CHUNKS_PER_MESSAGE]
            chunks = [_chunk(header, start + i, texts[start + i]) for i in range(len(part))]
            batch = retriever_pb2.IndexBatch(chunks=chunks, vectors=part.tobytes(), dimension=part.shape[1])
            yield retriever_pb2.IndexChunksRequest(batch=batch)

    await stub.IndexChunks(requests(), timeout=_TIMEOUT_S)
    await stub.ActivateRevision(
        retriever_pb2.ActivateRevisionRequest(
            document_id=document_id,
            collection_id=COLLECTION,
            revision_id=revision_id,
            revision_number=1,
            expected_chunk_count=len(texts),
        ),
        timeout=_TIMEOUT_S,
    )


def _chunk(header: retriever_pb2.IndexHeader, ordinal: int, text: str) -> retriever_pb2.Chunk:
    return retriever_pb2.Chunk(
        chunk_id=uuid.uuid4().hex,
        document_id=header.document_id,
        collection_id=header.collection_id,
        revision_id=header.revision_id,
        ordinal=ordinal,
        document_name=f"{header.document_id[:8]}.txt",
        text=text,
        embedded_text=text,
        token_count=len(text) // 5,
        content_hash=hashlib.sha256(text.encode()).hexdigest(),
        language="en",
    )
