"""What a search does when its request does not say, by the size of its collections."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.retriever.models import FusionMethod, RerankMode, SearchRequest, SearchScope, Strategy
from services.retriever.options import SearchOptions
from services.retriever.searching.strategy import plan_search

REQUEST = SearchRequest(SearchScope("local", ("default",)), ("solar",))
OPTIONS = SearchOptions()


@pytest.mark.parametrize(
    ("chunk_count", "top_k", "rerank", "rerank_depth"),
    [
        (0, 5, RerankMode.AUTO, 30),
        (499, 5, RerankMode.AUTO, 30),
        (500, 10, RerankMode.AUTO, 30),
        (10_000, 10, RerankMode.AUTO, 30),
        (10_001, 10, RerankMode.AUTO, 20),
    ],
)
def test_the_size_decides_what_the_request_leaves_open(
    chunk_count: int, top_k: int, rerank: RerankMode, rerank_depth: int
) -> None:
    plan = plan_search(REQUEST, chunk_count, OPTIONS)
    assert (plan.top_k, plan.rerank, plan.rerank_depth) == (top_k, rerank, rerank_depth)
    assert (plan.strategy, plan.fusion, plan.dense_weight) == (Strategy.HYBRID, FusionMethod.CONVEX, 0.5)
    assert str(chunk_count) in plan.reason
    assert plan.candidates == 60


def test_the_request_overrides_every_default_and_the_reason_says_so() -> None:
    request = replace(
        REQUEST,
        strategy=Strategy.LEXICAL,
        top_k=20,
        rerank=RerankMode.ON,
        fusion=FusionMethod.RRF,
        dense_weight=3.0,
        lexical_weight=1.0,
    )
    plan = plan_search(request, 100, OPTIONS)
    assert (plan.strategy, plan.top_k, plan.rerank, plan.fusion) == (
        Strategy.LEXICAL,
        20,
        RerankMode.ON,
        FusionMethod.RRF,
    )
    assert (plan.dense_weight, plan.lexical_weight, plan.candidates) == (0.75, 0.25, 100)
    assert "except for strategy, top_k, rerank, fusion, weights" in plan.reason


def test_settings_move_the_sizes_and_choose_the_engines_of_small_collections() -> None:
    options = replace(OPTIONS, small_corpus_chunks=10, small_strategy=Strategy.DENSE, rerank=RerankMode.ON)
    small, medium = plan_search(REQUEST, 9, options), plan_search(REQUEST, 10, options)
    assert (small.strategy, small.rerank) == (Strategy.DENSE, RerankMode.ON)
    assert medium.strategy is Strategy.HYBRID
