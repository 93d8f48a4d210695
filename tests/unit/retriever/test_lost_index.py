"""An index that was lost: searches say so until it is whole again, and it is filled from the other one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from kit.errors import Unavailable
from services.retriever.concurrency import KeyedLock
from services.retriever.errors import IndexUnavailable
from services.retriever.indexes.engine_answer import DENSE, LEXICAL, Part
from services.retriever.models import CacheOutcome, Pointer, RevisionKey, SearchScope, Strategy
from services.retriever.revisions.revision_reader import RevisionState
from services.retriever.upkeep.refill import Refiller
from tests.contract.retriever_servers import elasticsearch_over_double
from tests.unit.retriever.core_over_fakes import Core, texts
from tests.unit.retriever.fakes import make_batch, make_chunk, write_key

KEY, OTHER = RevisionKey("local", "d1", "r1"), RevisionKey("local", "d2", "r1")
TEXTS = ["solar panel", "solar roof", "wind turbine"]
DAY_S = 86_400


async def publish(core: Core, key: RevisionKey = KEY, prefix: str | None = "title\n\n") -> None:
    await core.publish(key, TEXTS, embedded_prefix=prefix)


async def lose(core: Core, part: Part) -> None:
    """The index is empty, and that has been noticed."""
    index = {DENSE.name: core.dense, LEXICAL.name: core.lexical}[part.name]
    index.rows = []
    await core.reconciler.reconcile()


async def degraded(core: Core, **options: object) -> list[tuple[str, str]]:
    return [(each.part, each.reason) for each in (await core.search("solar panel", **options)).degraded]


@pytest.mark.parametrize("part", [DENSE, LEXICAL])
async def test_search_says_that_an_index_is_lost_until_it_is_filled_from_the_other(core: Core, part: Part) -> None:
    await publish(core)
    await core.reconciler.reconcile()
    assert await degraded(core) == []
    await lose(core, part)
    for _ in range(2):
        assert await degraded(core) == [(part.name, "INDEX_INCOMPLETE")]
    other = Strategy.LEXICAL if part is DENSE else Strategy.DENSE
    assert await degraded(core, strategy=other) == []
    assert await core.refiller.fill()
    assert await degraded(core) == []
    only = Strategy.DENSE if part is DENSE else Strategy.LEXICAL
    assert set(texts(await core.search("solar panel", strategy=only))) >= set(TEXTS[:2])
    assert [check.state for check in await core.revision_reader.check([KEY])] == [RevisionState.ACTIVE]


async def test_what_was_embedded_is_embedded_again(core: Core) -> None:
    await publish(core)
    before = {row.stored.chunk_id: row.vector.tolist() for row in core.dense.rows}
    embedded = {row.stored.chunk_id: "title\n\n" + row.item.chunk.text for row in core.dense.rows}
    await lose(core, DENSE)
    await core.refiller.fill()
    assert {row.stored.chunk_id: row.item.embedded_text for row in core.dense.rows} == embedded
    assert {row.stored.chunk_id for row in core.dense.rows} == set(before)


@pytest.mark.parametrize("scope", [SearchScope("rival", ("default",)), SearchScope("local", ("elsewhere",))])
async def test_searches_elsewhere_are_not_degraded(core: Core, scope: SearchScope) -> None:
    await publish(core)
    await core.publish(RevisionKey("rival", "d1", "r1"), ["solar"])
    core.lexical.rows = [row for row in core.lexical.rows if row.write.revision != KEY]
    await core.reconciler.reconcile()
    assert await degraded(core, scope=scope) == []
    assert await degraded(core) == [("lexical", "INDEX_INCOMPLETE")]


async def test_what_is_not_visible_any_more_is_not_missed(core: Core) -> None:
    await publish(core)
    await lose(core, DENSE)
    await core.publish(replace(KEY, revision_id="r2"), ["solar again"], 2)
    assert await degraded(core) == []
    await core.refiller.fill()
    assert {row.write.revision.revision_id for row in core.dense.rows} == {"r2"}


async def test_vectors_of_a_text_that_is_not_known_are_left_to_ingestion(core: Core) -> None:
    await publish(core, prefix=None)
    await lose(core, DENSE)
    assert await core.refiller.fill()
    assert await degraded(core) == [("dense", "INDEX_INCOMPLETE")]
    assert [check.state for check in await core.revision_reader.check([KEY])] == [RevisionState.INCOMPLETE]


async def test_revision_that_both_engines_lost_is_left_to_ingestion(core: Core) -> None:
    await publish(core)
    await publish(core, OTHER)
    core.dense.rows = [row for row in core.dense.rows if row.write.revision != KEY]
    core.lexical.rows = []
    await core.reconciler.reconcile()
    assert await core.refiller.fill()
    states = [check.state for check in await core.revision_reader.check([KEY, OTHER])]
    assert states == [RevisionState.INCOMPLETE, RevisionState.ACTIVE]
    assert await degraded(core) == [("dense", "INDEX_INCOMPLETE"), ("lexical", "INDEX_INCOMPLETE")]


async def test_revision_is_not_called_incomplete_while_it_may_still_be_filled(core: Core) -> None:
    """Ingestion would make it again from the file."""
    await publish(core)
    await lose(core, DENSE)
    core.models.error = Unavailable("the model server is away")
    assert not await core.refiller.fill()
    with pytest.raises(IndexUnavailable) as caught:
        await core.revision_reader.check([KEY])
    assert caught.value.retryable
    core.models.error = None
    assert await core.refiller.fill()
    assert [check.state for check in await core.revision_reader.check([KEY])] == [RevisionState.ACTIVE]


async def test_retrievers_that_fill_a_server_at_once_leave_each_chunk_there_once(core: Core) -> None:
    large = RevisionKey("local", "d2", "r2")
    await publish(core)
    await core.publish(large, [f"solar {number}" for number in range(100)], embedded_prefix="title ")
    async with elasticsearch_over_double() as server:
        core.gaps.replace(LEXICAL, [KEY, large])
        parts = (core.spaces, server, core.copier, core.revisions, core.gaps)
        several = [Refiller(*parts, KeyedLock(), [], [LEXICAL]) for _ in range(3)]
        assert all(await asyncio.gather(*(each.fill() for each in several)))
        assert [await server.count(key) for key in (KEY, large)] == [len(TEXTS), 100]
        assert len({write.attempt_id for write in await server.writes()}) == 1
    assert core.gaps.count(LEXICAL) == 0


async def test_an_index_of_an_earlier_format_goes_once_nothing_is_missing(core: Core) -> None:
    await publish(core)
    await lose(core, LEXICAL)
    await core.reconciler.drop_outdated()
    assert core.lexical.outdated_dropped == 0
    await core.refiller.fill()
    await core.reconciler.drop_outdated()
    assert core.lexical.outdated_dropped == 1


async def test_refill_waits_for_who_writes_the_same_revision(core: Core) -> None:
    await publish(core)
    await lose(core, LEXICAL)
    async with core.writing(KEY):
        filling = asyncio.create_task(core.refiller.fill())
        for _ in range(50):
            await asyncio.sleep(0)
        assert core.lexical.rows == []
    assert await filling
    assert len(core.lexical.rows) == len(TEXTS)


async def test_nearest_is_shown_while_the_words_of_some_documents_are_missing(core: Core) -> None:
    core.options = replace(core.options, noise_cosine=0.95)
    await publish(core)
    await lose(core, LEXICAL)
    assert "solar roof" in texts(await core.search("solar house"))


async def test_answers_of_before_a_loss_and_before_a_repair_are_not_remembered(core: Core) -> None:
    core.options = replace(core.options, cache_bytes=1_000_000)
    await publish(core)
    await core.search("solar panel")
    assert (await core.search("solar panel")).cache is CacheOutcome.HIT
    await lose(core, LEXICAL)
    for _ in range(2):
        assert (await core.search("solar panel")).cache is CacheOutcome.MISS
    await core.refiller.fill()
    assert (await core.search("solar panel")).cache is CacheOutcome.MISS
    assert (await core.search("solar panel")).cache is CacheOutcome.HIT


async def test_vectors_that_find_nothing_at_all_are_suspicious(core: Core) -> None:
    await publish(core)
    core.dense.rows = []
    assert await degraded(core) == [("dense", "INDEX_INCOMPLETE")]
    assert core.gaps.suspected.is_set()
    core.gaps.suspected.clear()
    await core.reconciler.reconcile()
    assert await degraded(core) == [("dense", "INDEX_INCOMPLETE")]
    assert not core.gaps.suspected.is_set()  # it is known by now
    await core.refiller.fill()
    assert await degraded(core, must_phrases=("nowhere",)) == []
    assert not core.gaps.suspected.is_set()


async def test_revision_that_is_there_again_in_part_is_still_missing(core: Core) -> None:
    await publish(core)
    await lose(core, LEXICAL)
    await core.lexical.write(write_key(KEY), make_batch([make_chunk(TEXTS[0], key=KEY)]))
    await core.reconciler.reconcile()
    assert await degraded(core) == [("lexical", "INDEX_INCOMPLETE")]
    await core.refiller.fill()
    await core.reconciler.reconcile()
    assert await degraded(core) == []
    assert len(core.lexical.rows) == len(TEXTS)


async def test_loss_is_noticed_and_repaired_without_being_asked(core: Core) -> None:
    await publish(core)
    core.lexical.rows = []
    async with _running(core):
        await core.reconciler.wait_compared()
        while core.gaps.count(LEXICAL):
            await asyncio.sleep(0)
        assert len(core.lexical.rows) == len(TEXTS)
        core.dense.rows = []
        assert await degraded(core) == [("dense", "INDEX_INCOMPLETE")]
        while len(core.dense.rows) < len(TEXTS) or core.gaps.count(DENSE):
            await asyncio.sleep(0)


async def test_engine_that_does_not_answer_has_no_gaps_and_makes_no_orphans(core: Core) -> None:
    await publish(core)
    await core.lexical.write(write_key(OTHER), make_batch([make_chunk("orphan", key=OTHER)]))
    core.now_s += 4000
    core.lexical.error = Unavailable("away")
    core.dense.rows = []
    with pytest.raises(Unavailable):
        await core.reconciler.reconcile()
    assert (core.gaps.count(DENSE), core.gaps.count(LEXICAL)) == (1, 0)


async def test_tombstones_go_once_nobody_can_need_them(core: Core) -> None:
    following = asyncio.create_task(core.revisions.follow(core.store, retry_s=0.01, resync_s=60))
    await core.revisions.wait_loaded()
    await publish(core)
    await publish(core, OTHER)
    await core.switch.delete("local", "d1")
    core.now_s += 7 * DAY_S - 1
    assert await core.reconciler.collect_tombstones() == 0
    core.now_s += 2
    await core.switch.delete("local", "d2")
    assert await core.reconciler.collect_tombstones() == 1
    await core.revisions.wait_followed(await core.store.latest_version())
    assert set(core.store.entries) == {("local", "d2")}
    assert core.revisions.get("local", "d1") is None
    assert core.revisions.get("local", "d2") == replace(
        Pointer("", 1, "default", 0, int(core.now_s * 1000)), deleted=True
    )
    following.cancel()


@contextlib.asynccontextmanager
async def _running(core: Core) -> AsyncIterator[None]:
    tasks = [
        asyncio.create_task(each)
        for each in (
            core.revisions.follow(core.store, retry_s=0.01, resync_s=60),
            core.reconciler.run(),
            core.refiller.run(),
        )
    ]
    try:
        async with asyncio.timeout(60):
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
