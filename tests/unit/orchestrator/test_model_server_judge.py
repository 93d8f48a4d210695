"""What becomes of the model server's numbers: the verdict on a claim."""

from collections.abc import Mapping

import pytest
from groundwork.reranker.v1 import reranker_pb2 as pb

from services.orchestrator.adapters.services.model_server import judgement_of
from services.orchestrator.log.events import CheckedBy
from services.orchestrator.verification.verdicts import Verdict

BY = CheckedBy("alignment/4")


@pytest.mark.parametrize(
    ("said", "threshold", "verdict"),
    [
        ({"probability": 0.6}, 0.5, Verdict.SIMILAR_WORDING),
        ({"probability": 0.6}, 0.7, Verdict.NOT_FOUND),
        ({"probability": 0.1, "contradiction": 0.7, "partial": 0.2}, 0.5, Verdict.CONTRADICTED),
        ({"probability": 0.1, "contradiction": 0.6, "partial": 0.2}, 0.5, Verdict.NOT_FOUND),
        ({"probability": 0.1, "contradiction": 0.2, "partial": 0.7}, 0.5, Verdict.NOT_FOUND),
        ({"probability": 0.4, "contradiction": 0.3, "partial": 0.3}, 0.5, Verdict.NOT_FOUND),
    ],
)
def test_likeliest_of_what_a_judge_says_is_the_verdict(
    said: Mapping[str, float], threshold: float, verdict: Verdict
) -> None:
    judged = judgement_of(pb.ClaimVerdict(passage=1, start=2, end=5, **said), BY, threshold)
    assert (judged.verdict, judged.probability) == (verdict, said["probability"])
    has_span = verdict is Verdict.SIMILAR_WORDING
    assert (judged.passage, judged.end) == ((1, 5) if has_span else (None, 0))
