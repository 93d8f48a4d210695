"""Remembered answers: when they are given, and that no change of a collection leaves one behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kit.errors import Unavailable
from services.retriever.errors import SearchUnavailable
from services.retriever.models import CacheOutcome, RevisionKey, SearchScope
from services.retriever.searching import search
from tests.unit.retriever.core_over_fakes import OPTIONS, Core, texts

OLD, NEW = RevisionKey("local", "d1", "r1"), RevisionKey("local", "d1", "r2")
ELSEWHERE = RevisionKey("local", "d9", "r9")
QUESTION = "how long is the notice period of an employee during the probation time at this company"
REWORDED = "how long is the notice period of employees during the probation time at this company"
"""The fake embeds words: one of fifteen differs, cosine 0.94."""


@pytest.fixture
def core() -> Core:
    return Core(options=replace(OPTIONS, cache_bytes=1_000_000, cache_similarity=0.9))


async def outcome(core: Core, query_text: str = "solar", **fields: object) -> CacheOutcome:
    return (await core.search(query_text, **fields)).cache


async def test_the_same_request_is_answered_from_memory(core: Core) -> None:
    await core.publish(OLD, ["solar panel", "wind"])
    first = await core.search("solar")
    asked = (core.models.calls, len(core.dense.limits), len(core.lexical.limits))
    second = await core.search("solar", explain=True)
    assert (first.cache, second.cache) == (CacheOutcome.MISS, CacheOutcome.HIT)
    assert (second.hits, second.dropped) == (first.hits, first.dropped)
    assert (core.models.calls, len(core.dense.limits), len(core.lexical.limits)) == asked
    assert set(second.timings_ms) == {"total"}


@pytest.mark.parametrize(
    "fields",
    [
        {"top_k": 4},
        {"window": 1},
        {"must_phrases": ("solar",)},
        {"scope": SearchScope("local", ("default", "other"))},
        {"scope": SearchScope("local", ("default",), ("d1",))},
        {"scope": SearchScope("local", ("default",), date_from_s=1)},
        {"tenant_id": "rival"},
    ],
    ids=str,
)
async def test_another_request_is_not(core: Core, fields: dict[str, object]) -> None:
    await core.publish(OLD, ["solar panel", "wind"])
    await core.search("solar")
    assert await outcome(core, **fields) is CacheOutcome.MISS


async def test_the_same_question_in_other_forms_of_its_words_is_answered_from_memory(core: Core) -> None:
    await core.publish(OLD, ["the notice period is two weeks", "wind"])
    first = await core.search(QUESTION)
    asked = len(core.dense.limits)
    second = await core.search(REWORDED)
    assert (second.cache, texts(second)) == (CacheOutcome.SEMANTIC, texts(first))
    assert len(core.dense.limits) == asked
    assert set(second.timings_ms) >= {"embed", "total"}


@pytest.mark.parametrize(
    ("query_text", "fields"),
    [
        (f"{REWORDED} in 2023", {}),
        ("who sells wind turbines", {}),
        (REWORDED.replace("how long", "why long"), {}),
        (REWORDED.replace("employees", "zqbbbgux"), {}),
        (REWORDED.replace("notice period of employees", "employees period of notice"), {}),
        (REWORDED.replace("is the", "is not the"), {}),
        (REWORDED.replace("notice period", '"notice period"'), {"exact_quotes": True}),
        (REWORDED, {"top_k": 4}),
        (REWORDED, {"tenant_id": "rival"}),
        (REWORDED, {"scope": SearchScope("local", ("default",), ("d1",))}),
    ],
    ids=str,
)
async def test_other_words_numbers_quotes_and_filters_are_other_questions(
    core: Core, query_text: str, fields: dict[str, object]
) -> None:
    await core.publish(OLD, ["the notice period is two weeks", "wind"])
    await core.search(f"{QUESTION} in 2022" if "2023" in query_text else QUESTION)
    assert await outcome(core, query_text, **fields) is CacheOutcome.MISS


@pytest.mark.parametrize("query_text", [QUESTION, REWORDED], ids=["same words", "other words"])
async def test_a_new_revision_is_found_by_the_next_query(core: Core, query_text: str) -> None:
    await core.publish(OLD, ["the notice period is two weeks"])
    assert texts(await core.search(QUESTION)) == ["the notice period is two weeks"]
    await core.publish(NEW, ["the notice period is three weeks"], number=2)
    changed = await core.search(query_text)
    assert (changed.cache, texts(changed)) == (CacheOutcome.MISS, ["the notice period is three weeks"])


@pytest.mark.parametrize("query_text", [QUESTION, REWORDED], ids=["same words", "other words"])
async def test_a_deleted_document_is_gone_from_the_next_query_on(core: Core, query_text: str) -> None:
    await core.publish(OLD, ["the notice period is two weeks"])
    await core.search(QUESTION)
    await core.switch.delete("local", "d1")
    changed = await core.search(query_text)
    assert (changed.cache, texts(changed)) == (CacheOutcome.MISS, [])


async def test_text_of_a_deleted_document_does_not_stay_in_memory_until_somebody_asks(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    await core.publish(OLD, ["the notice period is two weeks"])
    await core.publish(RevisionKey("rival", "d1", "r1"), ["solar theirs"])
    await core.search(QUESTION)
    await core.search("solar", tenant_id="rival")
    assert core._searcher is not None
    searcher = core._searcher[1]
    monkeypatch.setattr(search, "_FORGET_INTERVAL_S", 0.0)
    upkeep = asyncio.create_task(searcher.forget_outdated())
    await core.switch.delete("local", "d1")
    async with asyncio.timeout(60):
        while len(searcher._cache._entries) > 1:
            await asyncio.sleep(0)
    assert "notice period is two weeks" not in repr(searcher._cache._entries)
    assert searcher._cache._wordings.keys() == {key.beyond_wording for key in searcher._cache._entries}
    assert await outcome(core, "solar", tenant_id="rival") is CacheOutcome.HIT
    upkeep.cancel()
    await asyncio.gather(upkeep, return_exceptions=True)


async def test_a_pointer_that_another_retriever_changed_voids_answers_too(core: Core) -> None:
    await core.publish(OLD, ["solar panel"])
    await core.search("solar")
    entry = core.store.entries["local", "d1"]
    core.revisions.apply(replace(entry, pointer=replace(entry.pointer, deleted=True), version=entry.version + 1))
    assert texts(await core.search("solar")) == []


async def test_a_document_that_arrives_in_the_collection_voids_answers(core: Core) -> None:
    await core.publish(OLD, ["solar panel"])
    await core.search("solar")
    await core.publish(ELSEWHERE, ["solar roof"])
    assert set(texts(await core.search("solar"))) == {"solar panel", "solar roof"}


async def test_what_changes_while_a_search_runs_is_not_remembered_as_it_was(core: Core) -> None:
    await core.publish(OLD, ["solar old"])
    core.dense.gate = asyncio.Event()
    search = asyncio.create_task(core.search("solar"))
    while not core.dense.limits:
        await asyncio.sleep(0)
    await core.publish(ELSEWHERE, ["solar new"])
    core.dense.gate.set()
    await search
    again = await core.search("solar")
    assert again.cache is CacheOutcome.MISS
    assert set(texts(again)) == {"solar old", "solar new"}


async def test_another_collection_or_tenant_changing_voids_nothing(core: Core) -> None:
    await core.publish(OLD, ["solar panel"])
    await core.search("solar")
    await core.publish(RevisionKey("rival", "d1", "r1"), ["solar theirs"])
    assert await outcome(core) is CacheOutcome.HIT


async def test_a_degraded_answer_is_not_remembered(core: Core) -> None:
    await core.publish(OLD, ["solar panel"])
    core.lexical.error = Unavailable("it is down", reason="TEST_DOWN")
    await core.search("solar")
    core.lexical.error = None
    whole = await core.search("solar")
    assert (whole.cache, whole.degraded) == (CacheOutcome.MISS, ())


async def test_that_nothing_can_be_searched_is_not_remembered(core: Core) -> None:
    await core.publish(OLD, ["solar panel"])
    core.dense.error = core.lexical.error = Unavailable("away")
    with pytest.raises(SearchUnavailable):
        await core.search("solar")
    core.dense.error = core.lexical.error = None
    assert (await outcome(core), await outcome(core)) == (CacheOutcome.MISS, CacheOutcome.HIT)


async def test_an_answer_is_remembered_for_so_long_only(core: Core) -> None:
    await core.publish(OLD, ["solar panel"])
    await core.search("solar")
    core.now_s += core.options.cache_ttl_s
    assert await outcome(core) is CacheOutcome.MISS


async def test_a_request_may_want_it_computed_now(core: Core) -> None:
    await core.publish(OLD, ["solar panel"])
    await core.search("solar")
    assert await outcome(core, no_cache=True) is CacheOutcome.OFF


async def test_memory_is_bounded_and_the_least_recently_used_answer_goes_first(core: Core) -> None:
    core.options = replace(core.options, cache_bytes=22_000)
    await core.publish(OLD, ["solar " + "panel " * 300, "wind"])
    for query_text in ("solar", "wind", "solar", *(f"nothing {n}" for n in range(2))):
        await core.search(query_text, top_k=1)
    assert await outcome(core, "solar", top_k=1) is CacheOutcome.HIT
    assert await outcome(core, "wind", top_k=1) is CacheOutcome.MISS


async def test_an_answer_larger_than_the_memory_is_not_remembered(core: Core) -> None:
    core.options = replace(core.options, cache_bytes=1)
    await core.publish(OLD, ["solar panel"])
    assert [await outcome(core), await outcome(core)] == [CacheOutcome.MISS] * 2


async def test_without_memory_nothing_is_remembered(core: Core) -> None:
    core.options = replace(core.options, cache_bytes=0)
    await core.publish(OLD, ["solar panel"])
    assert [await outcome(core), await outcome(core)] == [CacheOutcome.OFF] * 2
