"""What a request may ask of a search, over fakes: phrases, weights, gate, diversity, neighbours, and what the plan says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.errors import Unavailable
from services.retriever.errors import InvalidRequest
from services.retriever.models import FusionMethod, RevisionKey, SearchScope, Strategy
from tests.unit.retriever.core_over_fakes import OPTIONS, Core, texts

KEY, OTHER = RevisionKey("local", "d1", "r1"), RevisionKey("local", "d2", "r2")
DOWN = Unavailable("it is down", reason="TEST_DOWN")
LONG = "the notice period during probation is two weeks from the day on which the letter arrives at the other side"


@pytest.fixture
def core() -> Core:
    return Core(options=replace(OPTIONS, fusion=FusionMethod.CONVEX))


def dropped(result: object, stage: str) -> list[str]:
    return [each.chunk_id for each in result.dropped if each.stage == stage]  # type: ignore[attr-defined]


PHRASED = ["the bear market ended", "market share of a bear", "a Bear-Märket, again", "wind"]


@pytest.mark.parametrize("strategy", [None, *Strategy], ids=str)
async def test_every_hit_contains_each_phrase_whatever_engine_found_it(core: Core, strategy: Strategy | None) -> None:
    await core.publish(KEY, PHRASED)
    result = await core.search("market share", must_phrases=("bear market",), strategy=strategy)
    assert set(texts(result)) == {PHRASED[0], PHRASED[2]}
    both = await core.search("market share", must_phrases=("bear market", "again"), strategy=strategy)
    assert texts(both) == [PHRASED[2]]
    assert texts(await core.search("market", must_phrases=("no such thing",), strategy=strategy)) == []


async def test_quotes_are_exact_when_the_request_wants_it_and_lift_otherwise(core: Core) -> None:
    await core.publish(KEY, PHRASED)
    assert set(texts(await core.search('"bear market"', exact_quotes=True))) == {PHRASED[0], PHRASED[2]}
    assert len((await core.search('"bear market"')).hits) == 4


async def test_quotes_hold_for_the_hits_of_their_query_only(core: Core) -> None:
    await core.publish(KEY, PHRASED)
    result = await core.search(
        "", queries=('"bear market ended"', "wind"), exact_quotes=True, strategy=Strategy.LEXICAL
    )
    assert set(texts(result)) == {PHRASED[0], PHRASED[3]}


async def test_with_the_lexical_engine_down_phrases_are_checked_in_what_vectors_find(core: Core) -> None:
    await core.publish(KEY, PHRASED)
    core.lexical.error = DOWN
    result = await core.search("market share", must_phrases=("bear market",))
    assert set(texts(result)) == {PHRASED[0], PHRASED[2]}
    assert [each.part for each in result.degraded] == ["lexical"]
    assert set(dropped(result, "must_phrase")) == {"r1-1", "r1-3"}


async def test_a_phrase_that_only_an_invisible_revision_has_finds_nothing(core: Core) -> None:
    await core.publish(KEY, ["solar panel"])
    await core.index(RevisionKey("local", "d1", "r2"), ["solar roof"])
    assert texts(await core.search("solar", must_phrases=("solar roof",))) == []


async def test_what_words_alone_found_gets_its_cosine(core: Core) -> None:
    core.options = replace(core.options, min_candidates=2)
    await core.publish(KEY, ["solar panel", "solar roof", "solar"])
    await core.publish(OTHER, ["a solar text that shares one word and has many others which make it far away from it"])
    result = await core.search("solar", top_k=4, strategy=Strategy.HYBRID)
    assert all(hit.explanation.dense_score is not None for hit in result.hits)


async def test_engine_weights_decide_whose_order_counts(core: Core) -> None:
    await core.publish(KEY, ["solar panel panel panel", "solar"])
    for dense, lexical, first in ((1.0, 0.0, "solar"), (0.0, 1.0, "solar panel panel panel")):
        result = await core.search("solar panel" if lexical else "solar", dense_weight=dense, lexical_weight=lexical)
        assert texts(result)[0] == first
        assert (result.plan.dense_weight, result.plan.lexical_weight) == (dense, lexical)


async def test_query_weights_decide_whose_hits_come_first(core: Core) -> None:
    await core.publish(KEY, ["solar panel", "wind turbine"])
    for weights, first in (((1.0, 0.2), "solar panel"), ((0.2, 1.0), "wind turbine")):
        result = await core.search("", queries=("solar panel", "wind turbine"), query_weights=weights)
        assert texts(result)[0] == first


async def test_near_duplicates_are_shown_once_and_the_original_before_its_forward(core: Core) -> None:
    await core.publish(KEY, [f"{LONG} today"], metadata={"forwarded_from": "Ann"})
    await core.publish(OTHER, [LONG])
    result = await core.search("notice period today")
    assert texts(result) == [LONG]
    assert dropped(result, "near_duplicate") == ["r1-0"]


async def test_texts_that_differ_in_a_word_of_the_question_are_both_shown(core: Core) -> None:
    await core.publish(KEY, [f"{LONG} today"])
    await core.publish(OTHER, [f"{LONG} tomorrow"])
    assert len((await core.search("notice period")).hits) == 1
    assert len((await core.search("notice period tomorrow")).hits) == 2


async def test_below_the_least_score_nothing_is_returned(core: Core) -> None:
    await core.publish(KEY, ["solar panel", "wind turbine"])
    result = await core.search("solar panel", min_score=0.5)
    assert (texts(result), dropped(result, "gate")) == (["solar panel"], ["r1-1"])
    assert texts(await core.search("geothermal heat", min_score=0.5)) == []


@pytest.mark.parametrize("strategy", [Strategy.LEXICAL, Strategy.DENSE])
async def test_the_least_score_holds_for_each_engine_alone(core: Core, strategy: Strategy) -> None:
    await core.publish(KEY, ["solar panel", "solar " + " ".join(f"word{n}" for n in range(30))])
    assert texts(await core.search("solar panel", min_score=0.5, strategy=strategy)) == ["solar panel"]


async def test_noise_is_what_vectors_alone_found_below_the_threshold(core: Core) -> None:
    core.options = replace(core.options, noise_cosine=0.3)
    await core.publish(KEY, ["solar " + " ".join(f"word{n}" for n in range(30)), "wind turbine"])
    result = await core.search("solar panel")
    assert len(result.hits) == 1
    assert texts(result)[0].startswith("solar word0")
    assert dropped(result, "gate") == ["r1-1"]


async def test_what_is_nearest_is_shown_while_words_cannot_vouch_for_it(core: Core) -> None:
    core.options = replace(core.options, noise_cosine=0.9)
    await core.publish(KEY, ["solar panel roof house", "wind turbine"])
    core.lexical.error = DOWN
    result = await core.search("solar panel")
    assert texts(result)[0] == "solar panel roof house"
    assert [each.part for each in result.degraded] == ["lexical"]
    assert texts(await core.search("solar panel", strategy=Strategy.DENSE)) == []
    assert texts(await core.search("solar panel", min_score=0.9)) == []


async def test_when_similarity_cannot_be_known_hits_stay_and_the_answer_says_so(core: Core) -> None:
    await core.publish(KEY, ["solar panel"])
    core.models.error = DOWN
    result = await core.search("solar", min_score=0.9)
    assert texts(result) == ["solar panel"]
    assert [each.part for each in result.degraded] == ["dense"]


async def test_diverse_hits_do_not_repeat_each_other(core: Core) -> None:
    alike = [f"solar panel roof house number{n}" for n in range(3)]
    await core.publish(KEY, [*alike, "solar house"])
    plain = await core.search("solar panel roof house", top_k=2)
    assert set(texts(plain)) < set(alike)
    diverse = await core.search("solar panel roof house", top_k=2, diversity=0.9)
    assert texts(diverse) == [texts(plain)[0], "solar house"]
    assert [hit.explanation.diversity_rank for hit in diverse.hits] == [1, 2]
    assert len(dropped(diverse, "diversity")) == 1


async def test_without_vectors_hits_come_in_order_of_relevance_and_the_answer_says_so(core: Core) -> None:
    await core.publish(KEY, ["solar panel", "solar roof"])
    core.dense.error = DOWN
    result = await core.search("solar panel", diversity=0.5)
    assert texts(result) == ["solar panel", "solar roof"]
    assert [each.part for each in result.degraded] == ["dense", "diversity"]


async def test_hits_come_with_their_neighbours(core: Core) -> None:
    await core.publish(KEY, ["before it", "solar panel", "after it", "far away"])
    result = await core.search("solar panel", top_k=1, window=1)
    (hit,) = result.hits
    assert ([each.text for each in hit.before], [each.text for each in hit.after]) == (["before it"], ["after it"])


async def test_a_search_is_planned_by_the_active_chunks_of_its_collections(core: Core) -> None:
    core.options = replace(core.options, small_corpus_chunks=3)
    await core.publish(KEY, ["solar one", "solar two"])
    await core.publish(OTHER, ["solar three"])
    assert (await core.search("solar", top_k=None)).plan.chunk_count == 3
    await core.switch.delete("local", "d2")
    plan = (await core.search("solar", top_k=None)).plan
    assert (plan.chunk_count, plan.top_k) == (2, 5)
    assert "small" in plan.reason


@pytest.mark.parametrize(
    "fields",
    [
        {"must_phrases": ("?!",)},
        {"must_phrases": ("a",) * 9},
        {"must_phrases": ("x" * 501,)},
        {"query_weights": (1.0, 1.0)},
        {"query_weights": (0.0,)},
        {"query_weights": (float("nan"),)},
        {"dense_weight": -1.0, "lexical_weight": 1.0},
        {"dense_weight": 0.0, "lexical_weight": 0.0},
        {"diversity": 1.1},
        {"diversity": float("nan")},
        {"min_score": -1.1},
        {"window": 11},
        {"scope": SearchScope("local", ("default",), date_from_s=2, date_to_s=2)},
    ],
    ids=str,
)
async def test_what_makes_no_sense_is_refused(core: Core, fields: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        await core.search("solar", **fields)
    assert core.models.calls == 0
