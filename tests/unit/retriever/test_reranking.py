"""Whether reranking pays, and what happens when it fails."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kit.errors import Unavailable
from services.retriever.models import FusionMethod, RerankMode, RevisionKey
from services.retriever.searching.reranking import RerankStage
from tests.unit.retriever.core_over_fakes import OPTIONS, Core, texts
from tests.unit.retriever.fakes import FakeModels

KEY = RevisionKey("local", "d1", "r1")
AUTO = {"rerank": RerankMode.AUTO, "top_k": 20}
CONVEX = replace(OPTIONS, fusion=FusionMethod.CONVEX, min_candidates=30)


async def _many_alike(core: Core) -> None:
    await core.publish(KEY, [f"solar panel kind{n}" for n in range(25)])


async def test_many_candidates_with_close_scores_are_reranked() -> None:
    core = Core(options=CONVEX)
    await _many_alike(core)
    first = await core.search("solar panel", **AUTO)
    assert first.rerank_reason == "reranked 25: many candidates or close scores"
    assert first.degraded == ()


async def test_chunks_are_named_to_the_reranker_in_the_order_of_the_passages() -> None:
    core = Core(options=CONVEX)
    for n in range(25):
        await core.publish(RevisionKey("local", f"d{n}", f"r{n}"), [f"solar panel kind{n}"], content_hash=f"hash{n}")
    asked: list[tuple[str, str]] = []

    async def rerank(_: str, passages: list[str], timeout_s: float, content_hashes: list[str]) -> list[float]:
        asked.extend(zip(passages, content_hashes, strict=True))
        return [1.0] * len(passages)

    core.models.rerank = rerank  # type: ignore[method-assign,assignment]
    await core.search("solar panel", rerank=RerankMode.ON)
    assert len(asked) == 25
    assert all(passage.rpartition("kind")[2] == content_hash.removeprefix("hash") for passage, content_hash in asked)


async def test_a_direct_hit_is_not() -> None:
    core = Core(options=CONVEX)
    await core.publish(KEY, ["solar panel on the roof", *(f"wind turbine {n}" for n in range(25))])
    result = await core.search("solar panel on the roof", **AUTO)
    assert "first in both engines and clearly ahead" in result.rerank_reason
    assert texts(result)[0] == "solar panel on the roof"


async def test_few_candidates_with_clear_scores_are_not() -> None:
    core = Core(options=replace(CONVEX, noise_cosine=0.1))
    await core.publish(KEY, ["solar panel", "a panel of six with many words in it"])
    result = await core.search("solar", **AUTO)
    assert "skipped" in result.rerank_reason


async def test_a_single_candidate_is_never() -> None:
    core = Core(options=CONVEX)
    await core.publish(KEY, ["solar panel"])
    result = await core.search("solar", rerank=RerankMode.ON)
    assert result.rerank_reason == "skipped: there is nothing to reorder"


class SlowModels(FakeModels):
    """Reranks for longer than the budget, which is a moment."""

    asked = 0

    async def rerank(self, query_text: str, passages: object, timeout_s: float, content_hashes: object) -> list[float]:
        self.asked += 1
        await asyncio.Event().wait()
        raise AssertionError("nobody wakes it")


async def test_a_reranker_that_is_too_slow_is_left_out_which_is_said_and_tried_again_later() -> None:
    models = SlowModels()
    core = Core(options=replace(CONVEX, rerank_budget_s=0.01), models=models)
    await _many_alike(core)
    first = await core.search("solar panel", **AUTO)
    assert [(each.part, each.reason) for each in first.degraded] == [("rerank", "RERANK_TIMEOUT")]
    await core.search("solar panel", **AUTO)
    third = await core.search("solar panel", **AUTO)
    assert third.rerank_reason == "skipped: too slow here for the budget of 0.01 s"
    assert [(each.part, each.reason) for each in third.degraded] == [("rerank", "RERANK_CUT")]
    assert (models.asked, texts(third)) == (2, texts(first)), "the second time with fewer passages"
    core.now_s += 60
    await core.search("solar panel", **AUTO)
    assert models.asked == 3


@pytest.mark.parametrize(("passage_s", "depth"), [(0.004, 30), (0.0099, 14), (0.0199, 7), (0.0279, 5), (0.03, 0)])
def test_as_many_are_reranked_as_the_budget_allows(passage_s: float, depth: int) -> None:
    stage = RerankStage(FakeModels(), replace(OPTIONS, rerank_budget_s=0.2), clock=lambda: 0.0)
    assert stage._affordable_depth(30) == 30, "all, while nothing is known"
    stage._learn(passage_s)
    assert stage._affordable_depth(30) == depth
    assert stage._affordable_depth(3) in (0, 3)


async def test_fewer_passages_than_wanted_are_said() -> None:
    core = Core(options=replace(CONVEX, rerank_budget_s=0.2))
    await _many_alike(core)
    searcher = core.make_searcher()
    searcher._rerank._learn(0.0199)
    core._searcher = (core.options, searcher)
    result = await core.search("solar panel", **AUTO)
    assert result.rerank_reason.startswith("reranked 7:")
    assert [(each.part, each.reason) for each in result.degraded] == [("rerank", "RERANK_CUT")]


async def test_a_reranker_that_fails_leaves_the_fused_order_and_says_so() -> None:
    core = Core(options=CONVEX)
    await _many_alike(core)
    fused = texts(await core.search("solar panel", rerank=RerankMode.OFF, top_k=20))

    async def fail(*_: object) -> list[float]:
        raise Unavailable("it is down", reason="TEST_DOWN")

    core.models.rerank = fail  # type: ignore[method-assign]
    result = await core.search("solar panel", **AUTO)
    assert texts(result) == fused
    assert [(each.part, each.reason) for each in result.degraded] == [("rerank", "TEST_DOWN")]
    assert result.rerank_reason == "failed: hits are in fused order"


async def test_too_few_scores_are_a_failure_of_the_reranker() -> None:
    core = Core(options=CONVEX)
    await _many_alike(core)

    async def too_few(*_: object) -> list[float]:
        return [1.0]

    core.models.rerank = too_few  # type: ignore[method-assign]
    result = await core.search("solar panel", rerank=RerankMode.ON)
    assert [each.part for each in result.degraded] == ["rerank"]
    assert len(result.hits) == 5
