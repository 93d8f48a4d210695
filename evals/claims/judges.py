"""The judges that are measured, each asked as the product asks it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc

from evals.claims.figures import Judged
from evals.claims.sets import LabelledClaim
from evals.system import RunningSystem
from kit.grounding import SUPPORT_THRESHOLD, Judge

LIKELY = 0.5
"""From this probability on a claim counts as supported, where the judge does not say."""
_CLAIMS_A_CALL = 16
_CALL_TIMEOUT_S = 120.0
WORDS = "words"


@dataclass(frozen=True)
class _Source:
    number: int
    document_name: str
    heading_path: Sequence[str]
    text: str


def judge_by_words(claims: Sequence[LabelledClaim]) -> list[Judged]:
    """By the share of words, which is no probability: its calibration error says how far it is from one."""
    judged = []
    for claim in claims:
        words = Judge([_Source(1, claim.name, (), claim.passage)], claim.question)
        score = words.score(claim.text, (1,))
        judged.append(Judged(claim, score, score >= SUPPORT_THRESHOLD))
    return judged


async def judge_by_model_server(system: RunningSystem, claims: Sequence[LabelledClaim]) -> tuple[str, list[Judged]]:
    """By the JudgeClaims call; also the name of the judge."""
    judged: list[Judged] = []
    name = ""
    async with system.channel("reranker") as channel:
        stub = reranker_pb2_grpc.RerankerServiceStub(channel)
        for some in _divided(claims, _CLAIMS_A_CALL):
            answer = await stub.JudgeClaims(_request(some), timeout=_CALL_TIMEOUT_S)
            name = answer.judge
            passes_from = answer.threshold or LIKELY
            judged += [
                Judged(
                    claim,
                    each.probability,
                    each.probability >= passes_from,
                    rules=tuple(each.rules),
                    passes_without_rules=each.probability_without_rules >= passes_from,
                )
                for claim, each in zip(some, answer.verdicts, strict=True)
            ]
    return name, judged


async def answer_seconds(system: RunningSystem, claims: Sequence[LabelledClaim], sentences: int) -> list[float]:
    """How long one call for an answer of so many sentences takes, passages that were judged against before included."""
    taken: list[float] = []
    async with system.channel("reranker") as channel:
        stub = reranker_pb2_grpc.RerankerServiceStub(channel)
        for some in _divided(claims, sentences):
            request = _request(some)
            started_at = time.perf_counter()
            await stub.JudgeClaims(request, timeout=_CALL_TIMEOUT_S)
            taken.append(time.perf_counter() - started_at)
    return taken


def _divided(claims: Sequence[LabelledClaim], count: int) -> list[Sequence[LabelledClaim]]:
    return [claims[start : start + count] for start in range(0, len(claims), count)]


def _request(claims: Sequence[LabelledClaim]) -> reranker_pb2.JudgeClaimsRequest:
    passages = list(dict.fromkeys((claim.passage, claim.name) for claim in claims))
    return reranker_pb2.JudgeClaimsRequest(
        passages=[reranker_pb2.JudgedPassage(text=text, heading=name) for text, name in passages],
        claims=[
            reranker_pb2.JudgedClaim(
                text=f"{claim.question} {claim.text}".strip(), passages=[passages.index((claim.passage, claim.name))]
            )
            for claim in claims
        ],
    )
