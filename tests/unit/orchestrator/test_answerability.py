"""The fitted model of whether a unit answers, and how it is fitted."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from scripts.boosting import Boosting, fit
from services.orchestrator.without_model.answerability import model, probability, probability_of
from services.orchestrator.without_model.settings import ExtractiveSettings
from services.orchestrator.without_model.signals import FEATURES


def signals(**known: float) -> list[float]:
    return [known.get(name, math.nan) for name in FEATURES]


def test_similar_covered_unit_is_believed_more_than_an_unrelated_one() -> None:
    good = signals(semantic=0.8, semantic_lead=0.2, coverage=0.9, passage_coverage=1.0, dense=0.7, names=1.0, cue=1.0)
    bad = signals(
        semantic=0.2, semantic_lead=0.0, coverage=0.1, passage_coverage=0.1, dense=0.1, names=0.0, unknown_name=1.0
    )
    assert probability(good) > 0.7
    assert probability(bad) < ExtractiveSettings().min_confidence / 2


def test_model_takes_what_is_unknown() -> None:
    assert 0.0 < probability(signals()) < 1.0


def test_model_of_other_features_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answerability.json"
    path.write_text(json.dumps({"features": ["other"], "bias": 0, "trees": []}))
    with pytest.raises(ValueError, match="fit_answerability"):
        model(path)


def test_trees_learn_a_rule_and_what_an_unknown_value_means() -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(size=(600, 2))
    labels = (values[:, 0] > 0.5).astype(float)
    values[:200, 0], labels[:200] = np.nan, 1.0
    fitted = fit(values, labels, np.ones(600), ("a", "b"), Boosting(trees=30, depth=2, rate=0.3, columns=1.0))
    assert probability_of(fitted, [0.9, 0.5]) > 0.9
    assert probability_of(fitted, [0.1, 0.5]) < 0.1
    assert probability_of(fitted, [math.nan, 0.5]) > 0.9
    assert json.loads(json.dumps(fitted)) == fitted


def test_unknown_similarity_is_no_low_one() -> None:
    """While the model server is away plain questions are still answered, by words alone."""
    told = {
        "coverage": 1.0,
        "passage_coverage": 1.0,
        "names": 1.0,
        "names_in_unit": 1.0,
        "clause_coverage": 1.0,
        "rank": 1.0,
    }
    told |= {
        "word_order": 1.0,
        "cue": 1.0,
        "answer_distance": 1.0,
        "novelty": 0.5,
        "question_terms": 4.0,
        "unit_terms": 10.0,
    }
    dissimilar = {"semantic": 0.1, "semantic_lead": 0.0, "semantic_spread": 0.0, "semantic_best": 0.1}
    assert probability(signals(**told)) > 0.5
    assert probability(signals(**told)) > probability(signals(**told, **dissimilar))
