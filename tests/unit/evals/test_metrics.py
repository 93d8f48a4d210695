"""Each metric against pytrec_eval on random rankings, and on cases whose values are plain."""

import math
import random

import pytest
import pytrec_eval

from kit.ranking.metrics import hit, mrr, ndcg, recall

DOCUMENTS = [f"d{number}" for number in range(60)]


def random_case(seed: int) -> tuple[list[str], dict[str, int]]:
    rng = random.Random(seed)
    ranking = rng.sample(DOCUMENTS, rng.randint(0, 40))
    grades = {each: rng.choice((0, 1, 1, 2, 3)) for each in rng.sample(DOCUMENTS, rng.randint(1, 12))}
    grades[rng.choice(DOCUMENTS)] = 1
    return ranking, grades


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("k", [1, 3, 10, 100])
def test_metrics_agree_with_trec_eval(seed: int, k: int) -> None:
    ranking, grades = random_case(seed)
    evaluator = pytrec_eval.RelevanceEvaluator({"q": grades}, {f"ndcg_cut.{k}", f"recall.{k}", f"success.{k}"})
    run = {document_id: float(-rank) for rank, document_id in enumerate(ranking)}
    expected = evaluator.evaluate({"q": run})["q"] if ranking else dict.fromkeys(("ndcg", "recall", "success"), 0.0)
    assert ndcg(ranking, grades, k) == pytest.approx(expected.get(f"ndcg_cut_{k}", 0.0))
    assert recall(ranking, grades, k) == pytest.approx(expected.get(f"recall_{k}", 0.0))
    assert hit(ranking, grades, k) == expected.get(f"success_{k}", 0.0)


@pytest.mark.parametrize("seed", range(20))
def test_reciprocal_rank_within_the_cut_off_agrees_with_trec_eval(seed: int) -> None:
    ranking, grades = random_case(seed)
    expected = 0.0
    if ranking:
        run = {document_id: float(-rank) for rank, document_id in enumerate(ranking)}
        expected = pytrec_eval.RelevanceEvaluator({"q": grades}, {"recip_rank"}).evaluate({"q": run})["q"]["recip_rank"]
    assert mrr(ranking, grades, len(ranking)) == pytest.approx(expected)


def test_reciprocal_rank_is_zero_beyond_the_cut_off() -> None:
    assert mrr(["x", "y", "a"], {"a": 1}, 3) == pytest.approx(1 / 3)
    assert mrr(["x", "y", "a"], {"a": 1}, 2) == 0.0


def test_ndcg_by_hand() -> None:
    # Grades 1, 0, 2 at ranks 1 to 3; the ideal order is 2, 1.
    got = (1 + 2 / math.log2(4)) / (2 + 1 / math.log2(3))
    assert ndcg(["a", "x", "b"], {"a": 1, "b": 2}, 10) == pytest.approx(got)


@pytest.mark.parametrize("metric", [ndcg, recall, hit, mrr])
def test_a_query_without_relevant_documents_scores_zero(metric: object) -> None:
    assert metric(["a"], {"a": 0}, 10) == 0.0  # type: ignore[operator]
