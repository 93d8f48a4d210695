"""The edge: decodes requests, calls the core, encodes answers."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc

from kit.deadline import bounded_timeout_s
from kit.observability.telemetry import Attributes, span
from services.reranker.errors import ContentHashWrong, EmbeddingModelUnknown, JudgeUnavailable, KindMissing
from services.reranker.judging.judging import ClaimJudging, JudgedClaim, JudgedPassage
from services.reranker.judging.published import figures_of
from services.reranker.judging.verdicts import FITTED_ON
from services.reranker.models import EmbeddingModelInfo, ModelInfo, TextKind, TokenizerDefinition, TokenizerForm
from services.reranker.ports import TextEmbedder, TextReranker
from services.reranker.reranking.known_texts import KnownTexts
from services.reranker.reranking.late_interaction import sha256_bytes

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
        embedders: Mapping[str, TextEmbedder],
        reranking: TextReranker,
        info: ModelInfo,
        tokenizer: TokenizerDefinition,
        known: KnownTexts | None = None,
        judging: ClaimJudging | None = None,
    ) -> None:
        self._embedders = embedders
        self._models = {model.name: model for model in (info.embedding, *info.others)}
        self._reranking = reranking
        self._known = known
        self._judging = judging
        self._info = info
        self._tokenizer = reranker_pb2.GetTokenizerResponse(sha256=hashlib.sha256(tokenizer.content).hexdigest())
        if tokenizer.form is TokenizerForm.SENTENCEPIECE:
            self._tokenizer.sentencepiece_model = tokenizer.content
        else:
            self._tokenizer.tokenizer_json = tokenizer.content

    async def Embed(self, request: reranker_pb2.EmbedRequest, context: Any) -> reranker_pb2.EmbedResponse:
        kind = _KINDS.get(request.kind)
        if kind is None:
            raise KindMissing("kind is missing; set EMBED_KIND_QUERY or EMBED_KIND_PASSAGE", field="kind")
        model = self._model(request.model)
        with span(f"embeddings {model.name}", self._attributes("embeddings", model.name, model.runtime)) as traced:
            embeddings = await self._embedders[model.name].embed(
                request.texts,
                kind,
                bounded_timeout_s(LONGEST_REQUEST_S),
                keep_token_vectors=request.keep_token_vectors,
            )
            traced.set_attribute("gen_ai.embeddings.dimension.count", model.dimension)
            traced.set_attribute("gen_ai.usage.input_tokens", sum(embeddings.token_counts))
            traced.set_attribute("groundwork.embed.texts", len(request.texts))
        return reranker_pb2.EmbedResponse(
            vectors=np.ascontiguousarray(embeddings.vectors, dtype="<f4").tobytes(),
            dimension=model.dimension,
            model=model.name,
            token_counts=embeddings.token_counts,
        )

    def _model(self, name: str) -> EmbeddingModelInfo:
        """The model of this name; without a name that for new texts."""
        model = self._models.get(name) if name else self._info.embedding
        if model is None:
            raise EmbeddingModelUnknown(
                f"this model server does not embed with {name}; it has {', '.join(self._models)}. Run the model that made the "
                "vectors, or index the documents again",
                model=name,
            )
        return model

    async def Rerank(self, request: reranker_pb2.RerankRequest, context: Any) -> reranker_pb2.RerankResponse:
        model = self._info.rerank_model
        with span(f"rerank {model}", self._attributes("rerank", model, self._info.rerank_runtime)) as traced:
            traced.set_attribute("groundwork.rerank.passages", len(request.passages))
            scores = await self._reranking.rerank(
                request.query_text,
                request.passages,
                bounded_timeout_s(LONGEST_REQUEST_S),
                candidates_are_ranked=request.candidates_are_ranked,
                content_hashes=request.content_hashes,
            )
        return reranker_pb2.RerankResponse(scores=scores, model=self._info.rerank_model)

    def _attributes(self, operation: str, model: str, runtime: str) -> Attributes:
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": "groundwork",
            "gen_ai.request.model": model,
            "groundwork.model.runtime": runtime,
        }

    async def JudgeClaims(
        self, request: reranker_pb2.JudgeClaimsRequest, context: Any
    ) -> reranker_pb2.JudgeClaimsResponse:
        judging = self._judging
        if judging is None:
            raise JudgeUnavailable(
                f"this model server does not have {FITTED_ON}, which the judge of claims reads with; "
                "set GROUNDWORK_RERANKER_CPU_EMBEDDING_MODEL=multilingual and let the CPU embed or score, or set "
                "GROUNDWORK_RERANKER_GPU_JUDGE_MODEL"
            )
        claims = [JudgedClaim(claim.text, claim.passages) for claim in request.claims]
        passages = [JudgedPassage(passage.text, passage.heading) for passage in request.passages]
        with span(f"judge {judging.name}", self._attributes("judge", judging.name, judging.runtime)) as traced:
            traced.set_attribute("groundwork.judge.claims", len(claims))
            verdicts = await judging.judge(claims, passages, bounded_timeout_s(LONGEST_REQUEST_S))
        figures = figures_of(judging.name)
        return reranker_pb2.JudgeClaimsResponse(
            measured=figures is not None and figures.are_good,
            false_passed=figures.false_passed if figures else None,
            true_failed=figures.true_failed if figures else None,
            claims=figures.claims if figures else 0,
            verdicts=[
                reranker_pb2.ClaimVerdict(
                    probability=each.probability,
                    passage=each.passage,
                    start=each.start,
                    end=each.end,
                    contradiction=each.contradiction,
                    partial=each.partial,
                    rules=each.rules,
                    probability_without_rules=each.probability if each.without_rules is None else each.without_rules,
                )
                for each in verdicts
            ],
            judge=judging.name,
            threshold=judging.threshold,
        )

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
        if self._judging is not None:
            self._judging.forget()
        return reranker_pb2.ForgetTextsResponse()

    async def GetModelInfo(
        self, request: reranker_pb2.GetModelInfoRequest, context: Any
    ) -> reranker_pb2.GetModelInfoResponse:
        return reranker_pb2.GetModelInfoResponse(
            embedding_model=self._info.embedding.name,
            rerank_model=self._info.rerank_model,
            dimension=self._info.embedding.dimension,
            window_tokens=self._info.embedding.window_tokens,
            runtime=self._info.embedding.runtime,
            rerank_runtime=self._info.rerank_runtime,
            embedding_models=[
                reranker_pb2.EmbeddingModel(
                    name=model.name,
                    dimension=model.dimension,
                    window_tokens=model.window_tokens,
                    runtime=model.runtime,
                )
                for model in self._models.values()
            ],
        )

    async def GetTokenizer(
        self, request: reranker_pb2.GetTokenizerRequest, context: Any
    ) -> reranker_pb2.GetTokenizerResponse:
        return self._tokenizer
