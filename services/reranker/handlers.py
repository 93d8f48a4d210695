"""The edge: decodes requests, calls the core, encodes answers."""

import hashlib
from typing import Any

import numpy as np
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc

from kit.deadline import bounded_timeout_s
from services.reranker.errors import ContentHashWrong, KindMissing
from services.reranker.known_texts import KnownTexts
from services.reranker.models import ModelInfo, TextKind
from services.reranker.ports import TextEmbedder, TextReranker
from services.reranker.reranking import sha256_bytes

_KINDS = {
    reranker_pb2.EMBED_KIND_QUERY: TextKind.QUERY,
    reranker_pb2.EMBED_KIND_PASSAGE: TextKind.PASSAGE,
}
LONGEST_REQUEST_S = 120.0
"""Cap for a caller whose deadline is further away than any of our requests takes."""

_MAX_FORGOTTEN = 4096
"""Texts of one request to forget: 300 KB, and a fraction of a second of the disk."""


class RerankerServicer(reranker_pb2_grpc.RerankerServiceServicer):
    """groundwork.reranker.v1.RerankerService. `known` is given where token vectors are kept."""

    def __init__(
        self,
        embedding: TextEmbedder,
        reranking: TextReranker,
        info: ModelInfo,
        tokenizer_json: bytes,
        known: KnownTexts | None = None,
    ) -> None:
        self._embedding = embedding
        self._reranking = reranking
        self._known = known
        self._info = info
        self._tokenizer = reranker_pb2.GetTokenizerResponse(
            tokenizer_json=tokenizer_json, sha256=hashlib.sha256(tokenizer_json).hexdigest()
        )

    async def Embed(self, request: reranker_pb2.EmbedRequest, context: Any) -> reranker_pb2.EmbedResponse:
        kind = _KINDS.get(request.kind)
        if kind is None:
            raise KindMissing("kind is missing; set EMBED_KIND_QUERY or EMBED_KIND_PASSAGE", field="kind")
        embeddings = await self._embedding.embed(
            request.texts,
            kind,
            bounded_timeout_s(LONGEST_REQUEST_S),
            keep_token_vectors=request.keep_token_vectors,
        )
        return reranker_pb2.EmbedResponse(
            vectors=np.ascontiguousarray(embeddings.vectors, dtype="<f4").tobytes(),
            dimension=self._info.dimension,
            model=self._info.embedding_model,
            token_counts=embeddings.token_counts,
        )

    async def Rerank(self, request: reranker_pb2.RerankRequest, context: Any) -> reranker_pb2.RerankResponse:
        scores = await self._reranking.rerank(
            request.query_text,
            request.passages,
            bounded_timeout_s(LONGEST_REQUEST_S),
            candidates_are_ranked=request.candidates_are_ranked,
            content_hashes=request.content_hashes,
        )
        return reranker_pb2.RerankResponse(scores=scores, model=self._info.rerank_model)

    async def ForgetTexts(
        self, request: reranker_pb2.ForgetTextsRequest, context: Any
    ) -> reranker_pb2.ForgetTextsResponse:
        if len(request.content_hashes) > _MAX_FORGOTTEN:
            raise ContentHashWrong(
                f"content_hashes holds {len(request.content_hashes)} hashes; send at most {_MAX_FORGOTTEN} at once",
                field="content_hashes",
            )
        digests = [sha256_bytes(each, index) for index, each in enumerate(request.content_hashes)]
        if self._known is not None:
            await self._known.forget(digests)
        return reranker_pb2.ForgetTextsResponse()

    async def GetModelInfo(
        self, request: reranker_pb2.GetModelInfoRequest, context: Any
    ) -> reranker_pb2.GetModelInfoResponse:
        return reranker_pb2.GetModelInfoResponse(
            embedding_model=self._info.embedding_model,
            rerank_model=self._info.rerank_model,
            dimension=self._info.dimension,
            window_tokens=self._info.window_tokens,
            runtime=self._info.runtime,
            rerank_runtime=self._info.rerank_runtime,
        )

    async def GetTokenizer(
        self, request: reranker_pb2.GetTokenizerRequest, context: Any
    ) -> reranker_pb2.GetTokenizerResponse:
        return self._tokenizer
