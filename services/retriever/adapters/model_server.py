"""Embedder, PassageEmbedder, EmbeddingModels, Reranker and TextForgetter by the reranker service."""

from collections.abc import Sequence

import grpc
import numpy as np
import structlog
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc

from kit.access.principal import Principal, use_principal
from kit.access.tokens import TokenSigner
from kit.errors import DeadlineExceeded, FailedPrecondition, GroundworkError, Internal, Unavailable
from kit.network.local_models import LocalModelsOnly
from kit.network.tls import CertificateSource
from kit.rpc.addresses import host, resolved
from kit.rpc.channel import open_channel
from services.retriever.errors import EmbedderUnavailable, EmbeddingSpaceMismatch, RerankerUnavailable
from services.retriever.models import EmbeddingSpace, Vectors

_log = structlog.get_logger()
_SUBJECT = "retriever"
_MODEL_UNKNOWN = "EMBEDDING_MODEL_UNKNOWN"
_HASHES_PER_CALL = 4096
_FORGET_TIMEOUT_S = 10.0
_INFO_TIMEOUT_S = 5.0
_PASSAGES_TIMEOUT_S = 60.0
"""For a batch of passages on a machine that is busy with ingestion."""


class ModelServer:
    """All of them but the last over one channel of kit.rpc, which carries the caller's principal and raises GroundworkError."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = reranker_pb2_grpc.RerankerServiceStub(channel)

    async def embed_queries(
        self, queries: Sequence[str], model: str, timeout_s: float
    ) -> tuple[EmbeddingSpace, Vectors]:
        return await self._embed(queries, reranker_pb2.EMBED_KIND_QUERY, model, timeout_s)

    async def embed_passages(self, texts: Sequence[str], model: str) -> tuple[EmbeddingSpace, Vectors]:
        return await self._embed(texts, reranker_pb2.EMBED_KIND_PASSAGE, model, _PASSAGES_TIMEOUT_S)

    async def embedding_models(self) -> Sequence[str]:
        try:
            info = await self._stub.GetModelInfo(reranker_pb2.GetModelInfoRequest(), timeout=_INFO_TIMEOUT_S)
        except (Unavailable, DeadlineExceeded) as error:
            raise EmbedderUnavailable(
                "the model server cannot be asked for its models now", retry_after_s=2.0
            ) from error
        return [each.name for each in info.embedding_models] or [info.embedding_model]

    async def _embed(
        self, texts: Sequence[str], kind: reranker_pb2.EmbedKind.ValueType, model: str, timeout_s: float
    ) -> tuple[EmbeddingSpace, Vectors]:
        request = reranker_pb2.EmbedRequest(texts=texts, kind=kind, model=model)
        try:
            response = await self._stub.Embed(request, timeout=timeout_s)
        except (Unavailable, DeadlineExceeded) as error:
            raise EmbedderUnavailable("the model server does not embed now") from error
        except FailedPrecondition as error:
            if error.reason == LocalModelsOnly.reason:
                raise EmbedderUnavailable(error.message, reason=error.reason, retryable=False) from error
            if error.reason != _MODEL_UNKNOWN:
                raise
            raise EmbeddingSpaceMismatch(error.message) from error
        if model and response.model != model:  # a server of a version that has one model only
            raise EmbeddingSpaceMismatch(
                f"the model server embeds with {response.model} where the index has vectors of {model}; run the model that made "
                "them, or index the documents again"
            )
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
        except FailedPrecondition as error:
            if error.reason != LocalModelsOnly.reason:
                raise
            raise RerankerUnavailable(error.message, reason=error.reason, retryable=False) from error
        if len(response.scores) != len(passages):
            raise Internal(f"the model server answered {len(response.scores)} scores for {len(passages)} passages")
        return list(response.scores)


class ModelServerReplicas:
    """TextForgetter over every model server behind an address: each keeps token vectors of its own."""

    def __init__(self, address: str, signer: TokenSigner, certificates: CertificateSource | None = None) -> None:
        self._address = address
        self._signer = signer
        self._certificates = certificates

    async def forget(self, tenant_id: str, content_hashes: Sequence[str]) -> None:
        """Raises the failure when no replica could. One that is away while others answer removes by itself what nobody uses."""
        failures: list[GroundworkError] = []
        replicas = await resolved(self._address)
        for address in replicas:
            try:
                with use_principal(Principal(tenant_id, _SUBJECT)):
                    await self._forget_at(address, content_hashes)
            except GroundworkError as error:
                _log.warning("token_vectors_not_forgotten", address=address, reason=error.reason, error=error.message)
                failures.append(error)
        if failures and len(failures) == len(replicas):
            raise failures[0]

    async def _forget_at(self, address: str, content_hashes: Sequence[str]) -> None:
        # A replica's certificate names the service, not the replica's own address.
        one = open_channel(
            address, self._signer, patience_s=0, certificates=self._certificates, server_name=host(self._address)
        )
        async with one as channel:
            stub = reranker_pb2_grpc.RerankerServiceStub(channel)
            for start in range(0, len(content_hashes), _HASHES_PER_CALL):
                some = content_hashes[start : start + _HASHES_PER_CALL]
                await stub.ForgetTexts(reranker_pb2.ForgetTextsRequest(content_hashes=some), timeout=_FORGET_TIMEOUT_S)
