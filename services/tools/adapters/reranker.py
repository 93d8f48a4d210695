"""The reranker service, asked in the name of whoever called the tool."""

from collections.abc import Sequence

import numpy as np
from groundwork.reranker.v1 import reranker_pb2 as pb
from groundwork.reranker.v1 import reranker_pb2_grpc as rpc

from kit.rpc.channel import Channel
from services.tools.adapters.refusals import put_plainly
from services.tools.errors import ToolError
from services.tools.ports import EmbeddedQuery, Vector

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
