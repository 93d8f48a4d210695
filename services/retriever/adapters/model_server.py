"""Embedder, PassageEmbedder and Reranker by the reranker service."""

from collections.abc import Sequence

import grpc
import numpy as np
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc

from kit.errors import DeadlineExceeded, Internal, Unavailable
from services.retriever.errors import EmbedderUnavailable, RerankerUnavailable
from services.retriever.models import EmbeddingSpace, Vectors

_PASSAGES_TIMEOUT_S = 60.0
"""For a batch of passages on a machine that is busy with ingestion."""


class ModelServer:
    """All three ports over one channel of kit.channel, which carries the caller's principal and raises GroundworkError."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = reranker_pb2_grpc.RerankerServiceStub(channel)

    async def embed_queries(self, queries: Sequence[str], timeout_s: float) -> tuple[EmbeddingSpace, Vectors]:
        return await self._embed(queries, reranker_pb2.EMBED_KIND_QUERY, timeout_s)

    async def embed_passages(self, texts: Sequence[str]) -> tuple[EmbeddingSpace, Vectors]:
        return await self._embed(texts, reranker_pb2.EMBED_KIND_PASSAGE, _PASSAGES_TIMEOUT_S)

    async def _embed(
        self, texts: Sequence[str], kind: reranker_pb2.EmbedKind.ValueType, timeout_s: float
    ) -> tuple[EmbeddingSpace, Vectors]:
        request = reranker_pb2.EmbedRequest(texts=texts, kind=kind)
        try:
            response = await self._stub.Embed(request, timeout=timeout_s)
        except (Unavailable, DeadlineExceeded) as error:
            raise EmbedderUnavailable("the model server does not embed now") from error
        vectors = np.frombuffer(response.vectors, dtype="<f4")
        if response.dimension == 0 or vectors.size != len(texts) * response.dimension:
            raise Internal(f"the model server answered {vectors.size} numbers for {len(texts)} texts")
        return (
            EmbeddingSpace(response.model, response.dimension),
            vectors.reshape(len(texts), response.dimension).astype(np.float32, copy=False),
        )

    async def rerank(
        self, query_text: str, passages: Sequence[str], timeout_s: float, content_hashes: Sequence[str]
    ) -> list[float]:
        request = reranker_pb2.RerankRequest(
            query_text=query_text, passages=passages, candidates_are_ranked=True, content_hashes=content_hashes
        )
        try:
            response = await self._stub.Rerank(request, timeout=timeout_s)
        except (Unavailable, DeadlineExceeded) as error:
            raise RerankerUnavailable("the model server does not rerank now") from error
        if len(response.scores) != len(passages):
            raise Internal(f"the model server answered {len(response.scores)} scores for {len(passages)} passages")
        return list(response.scores)
