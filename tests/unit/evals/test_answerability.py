"""Telling questions with an answer from those without one."""

from __future__ import annotations

import random

import pytest

from evals.datasets.models import KIND, Answer, Query
from evals.retrieval.answerability import answerability, auroc, risk_curve, table


def test_auroc_counts_pairs_in_order_and_ties_half() -> None:
    rng = random.Random(1)
    higher = [rng.randrange(8) / 8 + 0.1 * (each % 2) for each in range(60)]
    lower = [rng.randrange(8) / 8 for _ in range(40)]
    pairs = [(a > b) + (a == b) / 2 for a in higher for b in lower]
    assert auroc(higher, lower) == pytest.approx(sum(pairs) / len(pairs))
    assert auroc([2.0], [1.0]) == 1.0
    assert auroc([1.0], [1.0]) == 0.5


def test_risk_is_the_share_of_wrong_answers_among_the_most_similar() -> None:
    questions = [(0.9, True), (0.8, False), (0.7, True), (0.6, True)]
    assert risk_curve(questions) == pytest.approx([0, 1 / 2, 1 / 3, 1 / 4])
    assert risk_curve([(0.5, True), (0.5, False)]) == pytest.approx([0.5, 0.5]), "the order of equals says nothing"


def answer(document_id: str | None, cosine: float | None) -> Answer:
    return Answer([document_id] if document_id else [], 1.0, cosine=cosine)


def test_each_kind_of_unanswerable_questions_is_set_beside_the_answered_ones() -> None:
    answered = {"q1": answer("d1", 0.9), "q2": answer("d1", 0.7)}
    qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    unanswerable = [
        Query("u1", "?", {KIND: "off topic"}),
        Query("u2", "?", {KIND: "near"}),
        Query("u3", "?", {KIND: "near"}),
    ]
    unanswered = {"u1": answer(None, None), "u2": answer("d1", 0.8), "u3": answer("d1", 0.1)}
    off_topic, near = answerability(answered, qrels, unanswered, unanswerable)
    assert (off_topic.kind, off_topic.questions, off_topic.emptied, off_topic.auroc) == ("off topic", 1, 1.0, 1.0)
    assert (near.emptied, near.auroc) == (0.0, 0.75)
    assert near.risks == pytest.approx([3 / 4, 3 / 4, 2 / 3, 1 / 2, 0])
    assert near.area == pytest.approx((0 + 1 / 2 + 2 / 3 + 3 / 4) / 4)
    assert "off topic" in table([off_topic, near]).render()
