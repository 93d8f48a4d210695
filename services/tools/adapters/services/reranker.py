"""The reranker service, asked in the name of the tool's caller."""

from collections.abc import Sequence

import numpy as np
from groundwork.reranker.v1 import reranker_pb2 as pb
from groundwork.reranker.v1 import reranker_pb2_grpc as rpc

from kit.rpc.channel import Channel
from services.tools.adapters.services.refusals import put_plainly
from services.tools.errors import ToolError
from services.tools.ports import ClaimVerdict, EmbeddedQuery, JudgedClaims, Vector

_TIMEOUT_S = 2.5
"""Half of what a tool may take: what works without the model server needs the other half."""
_SERVICE, _AWAY = "the model server", "MODEL_SERVER_UNAVAILABLE"
_ODD = "MODEL_SERVER_FAILED"


class RerankerModels:
    """ModelServer over the model server's contract."""

    def __init__(self, channel: Channel, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._stub = rpc.RerankerServiceStub(channel)
        self._timeout_s = timeout_s

    async def rerank(
        self, query_text: str, texts: Sequence[str], content_hashes: Sequence[str] = ()
    ) -> Sequence[float]:
        request = pb.RerankRequest(query_text=query_text, passages=texts, content_hashes=content_hashes)
        with put_plainly(_SERVICE, _AWAY):
            response = await self._stub.Rerank(request, timeout=self._timeout_s)
        if len(response.scores) != len(texts):
            raise ToolError(f"{_SERVICE} gave {len(response.scores)} scores for {len(texts)} passages", reason=_ODD)
        return list(response.scores)

    async def judge(self, claims: Sequence[str], passages: Sequence[tuple[str, str]]) -> JudgedClaims:
        numbers = range(len(passages))
        request = pb.JudgeClaimsRequest(
            passages=[pb.JudgedPassage(text=text, heading=heading) for heading, text in passages],
            claims=[pb.JudgedClaim(text=claim, passages=numbers) for claim in claims],
        )
        with put_plainly(_SERVICE, _AWAY):
            answer = await self._stub.JudgeClaims(request, timeout=self._timeout_s)
        if len(answer.verdicts) != len(claims):
            raise ToolError(f"{_SERVICE} gave {len(answer.verdicts)} verdicts for {len(claims)} claims", reason=_ODD)
        verdicts = [
            ClaimVerdict(each.probability, each.passage, passages[each.passage][1][each.start : each.end])
            for each in answer.verdicts
        ]
        return JudgedClaims(answer.judge, answer.measured, verdicts)

    async def embed_query(self, text: str) -> EmbeddedQuery:
        model, [vector] = await self._embed([text], pb.EMBED_KIND_QUERY, "")
        return EmbeddedQuery(vector, model)

    async def embed_passages(self, texts: Sequence[str], model: str = "") -> Sequence[Vector]:
        answered, vectors = await self._embed(texts, pb.EMBED_KIND_PASSAGE, model)
        if model and answered != model:  # one of several servers, while they are being replaced
            raise ToolError(f"{_SERVICE} embeds with {answered} now, not with {model}", reason=_ODD)
        return vectors

    async def _embed(
        self, texts: Sequence[str], kind: pb.EmbedKind.ValueType, model: str
    ) -> tuple[str, Sequence[Vector]]:
        with put_plainly(_SERVICE, _AWAY):
            response = await self._stub.Embed(pb.EmbedRequest(texts=texts, kind=kind, model=model), timeout=_TIMEOUT_S)
        numbers = np.frombuffer(response.vectors, dtype="<f4").astype(np.float32)
        if not response.dimension or numbers.size != len(texts) * response.dimension:
            raise ToolError(f"{_SERVICE} gave {numbers.size} numbers for {len(texts)} texts", reason=_ODD)
        return response.model, list(numbers.reshape(len(texts), response.dimension))
