"""What the model server says: scores of sentences, and judgements of claims."""

from collections.abc import AsyncGenerator, Sequence

from groundwork.reranker.v1 import reranker_pb2 as pb
from groundwork.reranker.v1 import reranker_pb2_grpc as rpc

from kit.rpc.channel import Channel
from services.orchestrator.log.events import CheckedBy
from services.orchestrator.verification.judges import JudgedClaim, JudgedPassage, Judgement
from services.orchestrator.verification.verdicts import Verdict, supporting

_LIKELY = 0.5
"""Probability from which on a claim counts as carried, where the server does not say."""
_CONTRADICTED = 0.65
"""From here on the sources are said to contradict the claim. Of such claims 5 % are true, and 10 % from 0.5 on."""
_SHORT_CLAIM_WORDS = 3
"""A claim of so few words means little without its question."""


class RerankerSentenceScorer:
    """SentenceScorer over the Rerank call: late interaction between question and sentence."""

    def __init__(self, channel: Channel, *, timeout_s: float) -> None:
        self._stub = rpc.RerankerServiceStub(channel)
        self._timeout_s = timeout_s

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        request = pb.RerankRequest(query_text=question, passages=sentences)
        response = await self._stub.Rerank(request, timeout=self._timeout_s)
        return tuple(response.scores)


class ModelServerJudge:
    """ClaimJudge over the JudgeClaims call. The server names its judge."""

    is_there = True
    is_quick = True
    asks_model = False

    def __init__(self, channel: Channel, *, timeout_s: float) -> None:
        self._stub = rpc.RerankerServiceStub(channel)
        self._timeout_s = timeout_s

    async def judge(
        self, question: str, claims: Sequence[JudgedClaim], passages: Sequence[JudgedPassage]
    ) -> AsyncGenerator[tuple[int, Judgement], None]:
        request = pb.JudgeClaimsRequest(
            passages=[pb.JudgedPassage(text=each.text, heading=each.heading) for each in passages],
            claims=[pb.JudgedClaim(text=_read(each, question), passages=each.passages) for each in claims],
        )
        response = await self._stub.JudgeClaims(request, timeout=self._timeout_s)
        checked_by = CheckedBy(
            response.judge,
            response.measured,
            response.false_passed if response.HasField("false_passed") else None,
            response.true_failed if response.HasField("true_failed") else None,
            response.claims,
        )
        for position, verdict in enumerate(response.verdicts):
            yield position, judgement_of(verdict, checked_by, response.threshold or _LIKELY)


def _read(claim: JudgedClaim, question: str) -> str:
    """The claim as it can be understood by itself."""
    return claim.text if len(claim.text.split()) > _SHORT_CLAIM_WORDS else f"{question} {claim.text}".strip()


def judgement_of(verdict: pb.ClaimVerdict, checked_by: CheckedBy, threshold: float) -> Judgement:
    """The verdict that the server's probabilities make; from `threshold` on a claim counts as carried."""
    if verdict.probability < threshold:
        # `partial` is not used: it is not calibrated, and a claim that is said to be carried in part keeps its citation.
        said = Verdict.CONTRADICTED if verdict.contradiction >= _CONTRADICTED else Verdict.NOT_FOUND
        return Judgement(said, checked_by, verdict.probability)
    return Judgement(
        supporting(checked_by), checked_by, verdict.probability, verdict.passage, verdict.start, verdict.end
    )
