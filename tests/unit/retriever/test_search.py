"""Search over fakes: what is visible, what is dropped, what is degraded, what is explained."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from kit.errors import Unavailable
from kit.network.local_models import is_bound_to_local_models
from services.retriever.errors import InvalidRequest, SearchUnavailable
from services.retriever.models import (
    EmbeddingSpace,
    FusionMethod,
    MetadataCondition,
    RerankMode,
    RevisionKey,
    SearchScope,
    Strategy,
)
from tests.unit.retriever.core_over_fakes import Core, texts
from tests.unit.retriever.fakes import FakeModels

OLD, NEW = RevisionKey("local", "d1", "r1"), RevisionKey("local", "d1", "r2")
DOWN = Unavailable("it is down", reason="TEST_DOWN")


async def test_hybrid_search_asks_both_engines_and_explains(core: Core) -> None:
    await core.publish(OLD, ["solar panel roof", "wind turbine sea"])
    result = await core.search("solar panel")
    assert texts(result)[0] == "solar panel roof"
    best = result.hits[0].explanation
    assert (best.dense_rank, best.lexical_rank, best.fused_rank, best.rerank_rank) == (1, 1, 1, None)
    assert best.lexical_score == 2.0
    assert best.dense_score == pytest.approx(0.816, abs=0.01)
    assert result.hits[0].score == best.fused_score == pytest.approx(1 / 61)
    assert set(result.timings_ms) == {"embed", "dense", "lexical", "fuse", "total"}
    assert result.degraded == ()
    unmatched = result.hits[1].explanation
    assert (unmatched.dense_rank, unmatched.lexical_rank) == (2, None)


async def test_a_revision_is_invisible_until_activated_and_replaces_the_old_one_at_once(core: Core) -> None:
    await core.publish(OLD, ["solar old"])
    await core.index(NEW, ["solar new"])
    result = await core.search("solar")
    assert texts(result) == ["solar old"]
    assert [(drop.chunk_id, drop.stage) for drop in result.dropped] == [("r2-0", "revision")]
    await core.activate(NEW, 2, 1)
    assert texts(await core.search("solar")) == ["solar new"]


async def test_a_flip_between_the_engines_answers_shows_one_revision_only(core: Core) -> None:
    await core.publish(OLD, ["solar old"])
    await core.index(NEW, ["solar new"])
    core.dense.gate = asyncio.Event()
    search = asyncio.create_task(core.search("solar"))
    while not core.dense.limits or not core.lexical.limits:
        await asyncio.sleep(0)
    await core.activate(NEW, 2, 1)
    core.dense.gate.set()
    assert texts(await search) == ["solar new"]


async def test_search_widens_when_invisible_chunks_crowd_out_visible_ones(core: Core) -> None:
    await core.index(NEW, [f"solar {n}" for n in range(60)])
    await core.publish(RevisionKey("local", "d2", "r9"), ["the solar panel of a very long and other text"])
    result = await core.search("solar", top_k=2, strategy=Strategy.DENSE)
    assert texts(result) == ["the solar panel of a very long and other text"]
    assert core.dense.limits == [10, 40, 160]


async def test_the_same_text_is_shown_once(core: Core) -> None:
    await core.publish(OLD, ["Solar panels, on the roof!"])
    await core.publish(RevisionKey("local", "d2", "r9"), ["solar panels on the ROOF", "wind"])
    result = await core.search("solar panels")
    assert len(result.hits) == 2
    (drop,) = [drop for drop in result.dropped if drop.stage == "duplicate"]
    assert result.hits[0].chunk.chunk_id in drop.reason


async def test_what_is_cut_off_by_top_k_is_reported(core: Core) -> None:
    await core.publish(OLD, ["solar one", "solar two", "solar three"])
    result = await core.search("solar", top_k=1)
    assert len(result.hits) == 1
    assert [drop.stage for drop in result.dropped] == ["top_k", "top_k"]


async def test_two_tenants_with_the_same_document_id_never_meet(core: Core) -> None:
    theirs = RevisionKey("rival", "d1", "r1")
    await core.publish(OLD, ["solar ours"])
    await core.publish(theirs, ["solar theirs"])
    assert texts(await core.search("solar")) == ["solar ours"]
    assert texts(await core.search("solar", tenant_id="rival")) == ["solar theirs"]
    await core.switch.delete("rival", "d1")
    assert texts(await core.search("solar")) == ["solar ours"]
    assert texts(await core.search("solar", tenant_id="rival")) == []


async def test_many_queries_are_embedded_in_one_call_and_fused(core: Core) -> None:
    await core.publish(OLD, ["solar panel roof", "wind turbine sea", "pension fund"])
    result = await core.search("", queries=("solar panel", "wind turbine"), top_k=2, rerank=RerankMode.OFF)
    assert set(texts(result)) == {"solar panel roof", "wind turbine sea"}
    assert core.models.calls == 1


@pytest.mark.parametrize(("broken", "part"), [("dense", "dense"), ("models", "dense"), ("lexical", "lexical")])
async def test_one_engine_down_gives_the_others_hits_and_says_so(core: Core, broken: str, part: str) -> None:
    await core.publish(OLD, ["solar panel"])
    getattr(core, broken).error = DOWN
    result = await core.search("solar panel")
    assert texts(result) == ["solar panel"]
    assert [(item.part, item.reason) for item in result.degraded] == [(part, "TEST_DOWN")]


async def test_a_defect_in_a_part_degrades_too(core: Core) -> None:
    await core.publish(OLD, ["solar panel", "solar roof"])
    core.models.error = ZeroDivisionError()
    result = await core.search("solar", rerank=RerankMode.ON)
    assert [item.reason for item in result.degraded] == ["DENSE_FAILED", "RERANK_FAILED"]
    assert set(texts(result)) == {"solar panel", "solar roof"}


async def test_an_engine_that_hangs_is_left_out_in_time(core: Core) -> None:
    await core.publish(OLD, ["solar panel"])
    core.options = replace(core.options, engine_timeout_s=3.0)
    core.lexical.gate = asyncio.Event()
    result = await core.search("solar panel")
    assert texts(result) == ["solar panel"]
    assert [item.reason for item in result.degraded] == ["LEXICAL_TIMEOUT"]


async def test_queries_of_another_model_degrade_dense(core: Core) -> None:
    await core.publish(OLD, ["solar panel"])
    core.models.space = EmbeddingSpace("other-model", 16)
    assert [item.reason for item in (await core.search("solar")).degraded] == ["EMBEDDING_SPACE_MISMATCH"]


async def test_both_engines_down_is_unavailable(core: Core) -> None:
    core.dense.error = core.lexical.error = DOWN
    with pytest.raises(SearchUnavailable) as caught:
        await core.search("solar")
    assert caught.value.reason == "SEARCH_UNAVAILABLE"
    assert caught.value.retryable


async def test_the_only_engine_asked_being_down_is_unavailable(core: Core) -> None:
    core.lexical.error = DOWN
    with pytest.raises(SearchUnavailable):
        await core.search("solar", strategy=Strategy.LEXICAL)


@pytest.mark.parametrize(("strategy", "silent"), [(Strategy.DENSE, "lexical"), (Strategy.LEXICAL, "dense")])
async def test_a_strategy_asks_its_engine_only(core: Core, strategy: Strategy, silent: str) -> None:
    await core.publish(OLD, ["solar panel"])
    getattr(core, silent).error = DOWN
    result = await core.search("solar", strategy=strategy)
    assert texts(result) == ["solar panel"]
    assert (result.degraded, result.plan.strategy) == ((), strategy)
    assert silent not in result.timings_ms


async def test_reranking_changes_the_order_and_is_explained(core: Core) -> None:
    await core.publish(OLD, ["solar panel on the large roof of a house", "a house"])
    core.options = replace(core.options, rerank_weight=1.0)
    plain = await core.search("the large roof of a house", top_k=2, rerank=RerankMode.OFF)
    reranked = await core.search("the large roof of a house", top_k=2, rerank=RerankMode.ON)
    assert texts(reranked) == texts(plain)[::-1]
    assert [hit.explanation.rerank_rank for hit in reranked.hits] == [1, 2]
    assert "rerank" in reranked.timings_ms
    core.models.error = DOWN
    degraded = await core.search("the large roof of a house", top_k=2, rerank=RerankMode.ON)
    assert [item.part for item in degraded.degraded] == ["dense", "rerank"]
    assert texts(degraded) == texts(plain)


async def test_fusion_follows_the_request_then_the_setting(core: Core) -> None:
    await core.publish(OLD, ["solar panel", "wind"])
    assert (await core.search("solar")).plan.fusion is FusionMethod.RRF
    convex = await core.search("solar", fusion=FusionMethod.CONVEX)
    assert (convex.plan.fusion, convex.hits[0].score) == (FusionMethod.CONVEX, pytest.approx(1.0))


@pytest.mark.parametrize(
    "fields",
    [
        {"queries": ()},
        {"queries": ("  ",)},
        {"queries": ("q",) * 9},
        {"queries": ("q" * 9000,)},
        {"top_k": 0},
        {"top_k": 201},
        {"scope": SearchScope("local", ())},
        {"scope": SearchScope("", ("default",))},
        {"scope": SearchScope("local", ("*",))},
        {"scope": SearchScope("local", tuple(f"c{n}" for n in range(65)))},
        {"scope": SearchScope("local", ("default",), ("../x",))},
        {"scope": SearchScope("local", ("default",), (), (MetadataCondition("a\x1fb", ("c",)),))},
        {"scope": SearchScope("local", ("default",), (), (MetadataCondition("a", ()),))},
    ],
    ids=str,
)
async def test_a_request_against_the_contract_is_refused_before_anything_is_asked(
    core: Core, fields: dict[str, object]
) -> None:
    with pytest.raises(InvalidRequest):
        await core.search("solar", **fields)
    assert core.models.calls == 0


async def test_search_of_a_collection_with_local_models_only_is_bound_to_them(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    await core.publish(OLD, ["solar panel roof"])
    bound: list[bool] = []
    embed = FakeModels.embed_queries

    async def noting(self: FakeModels, *arguments: Any) -> Any:
        bound.append(is_bound_to_local_models())
        return await embed(self, *arguments)

    monkeypatch.setattr(FakeModels, "embed_queries", noting)
    await core.search("solar")
    core.rights.bound = {"default"}
    await core.search("panel")
    assert bound == [False, True]
