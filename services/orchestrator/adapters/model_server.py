"""Sentence scores from the model server."""

from collections.abc import Sequence

from groundwork.reranker.v1 import reranker_pb2 as pb
from groundwork.reranker.v1 import reranker_pb2_grpc as rpc

from kit.rpc.channel import Channel


class RerankerSentenceScorer:
    """SentenceScorer over the Rerank call: late interaction between question and sentence."""

    def __init__(self, channel: Channel, *, timeout_s: float) -> None:
        self._stub = rpc.RerankerServiceStub(channel)
        self._timeout_s = timeout_s

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        request = pb.RerankRequest(query_text=question, passages=sentences)
        response = await self._stub.Rerank(request, timeout=self._timeout_s)
        return tuple(response.scores)
