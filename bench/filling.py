"""A store of many chunks in seconds: texts and vectors straight into the retriever, without embedding them. The vectors lie in
clusters around those of real questions, so that a search finds some that are near; a scan costs the same whatever they mean."""

import asyncio
import hashlib
import uuid
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc

from bench.corpus import make_paragraphs, make_queries
from kit.rpc.channel import Channel

COLLECTION = "default"
_CHUNKS_PER_DOCUMENT = 100
_CHUNKS_PER_MESSAGE = 100
_DOCUMENTS_AT_ONCE = 4
_CLUSTERS = 64
_WORDS_PER_CHUNK = 120
_WRITTEN = 10_000
"""Paragraphs that are made up; beyond, they come again with another number, because making up 100 000 takes half a minute."""
_TIMEOUT_S = 60.0


async def fill(retriever: Channel, reranker: Channel, chunks: int) -> None:
    """Writes and activates `chunks` chunks in documents of 100."""
    stub = retriever_pb2_grpc.RetrieverServiceStub(retriever)
    rng = np.random.default_rng(1)
    model, centers = await embed_centers(reranker)
    texts = _texts(chunks)
    vectors = clustered_unit_vectors(rng, centers, chunks)
    starts = iter(range(0, chunks, _CHUNKS_PER_DOCUMENT))

    async def work() -> None:
        for start in starts:  # shared: each document is taken once
            stop = start + _CHUNKS_PER_DOCUMENT
            await _document(stub, texts[start:stop], vectors[start:stop], model)

    async with asyncio.TaskGroup() as group:
        for _ in range(_DOCUMENTS_AT_ONCE):
            group.create_task(work())


def _texts(count: int) -> list[str]:
    """All different, or the search would drop them as duplicates."""
    written = make_paragraphs(1, min(count, _WRITTEN), _WORDS_PER_CHUNK)
    return written + [f"{written[i % _WRITTEN]} Copy {i} was filed." for i in range(_WRITTEN, count)]


async def embed_centers(reranker: Channel) -> tuple[str, npt.NDArray[np.float32]]:
    """The model's name, and the vectors of some questions: float32 [clusters, dimension]."""
    stub = reranker_pb2_grpc.RerankerServiceStub(reranker)
    request = reranker_pb2.EmbedRequest(texts=make_queries(9, _CLUSTERS), kind=reranker_pb2.EMBED_KIND_QUERY)
    answer = await stub.Embed(request, timeout=_TIMEOUT_S)
    return answer.model, np.frombuffer(answer.vectors, dtype=np.float32).reshape(-1, answer.dimension)


def clustered_unit_vectors(
    rng: np.random.Generator, centers: npt.NDArray[np.float32], count: int
) -> npt.NDArray[np.float32]:
    """float32 [count, dimension], each row L2-normalised, at a cosine of about 0.8 to one of the rows of `centers`."""
    noise = rng.standard_normal((count, centers.shape[1]), dtype=np.float32) / np.sqrt(centers.shape[1])
    around = centers[rng.integers(len(centers), size=count)] + 0.8 * noise
    return np.asarray(around / np.linalg.norm(around, axis=1, keepdims=True), dtype=np.float32)


async def _document(
    stub: retriever_pb2_grpc.RetrieverServiceStub, texts: Sequence[str], vectors: npt.NDArray[np.float32], model: str
) -> None:
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
