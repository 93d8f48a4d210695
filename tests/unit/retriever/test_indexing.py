"""Writing revisions and reading chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest

from kit.errors import DeadlineExceeded, Unavailable
from services.retriever.concurrency import KeyedLock
from services.retriever.errors import IndexUnavailable, InvalidRequest
from services.retriever.indexes.chunk_encoding import text_hash
from services.retriever.models import EmbeddingSpace, IndexBatch, RevisionKey
from services.retriever.options import IndexingOptions
from services.retriever.revisions.indexing import IndexHeader, RevisionWriter
from services.retriever.revisions.written import WrittenRevisions
from tests.unit.retriever.core_over_fakes import Core
from tests.unit.retriever.fakes import MODEL, make_batch, make_chunk

KEY = RevisionKey("local", "d1", "r1")
HEADER = IndexHeader(KEY, "default", MODEL)


async def _stream(*batches: IndexBatch) -> AsyncIterator[IndexBatch]:
    for batch in batches:
        yield batch


async def test_both_indexes_hold_what_was_answered(core: Core) -> None:
    assert await core.index(KEY, ["a", "b", "c", "d", "e"]) == 5
    assert (await core.dense.count(KEY), await core.lexical.count(KEY)) == (5, 5)
    assert await core.index(KEY, ["a", "b"]) == 2
    assert (await core.dense.count(KEY), await core.lexical.count(KEY)) == (2, 2)


async def test_an_index_that_lost_chunks_is_not_reported_as_written(core: Core) -> None:
    core.lexical.lost = 1
    with pytest.raises(IndexUnavailable) as caught:
        await core.index(KEY, ["a", "b"])
    assert caught.value.retryable


async def test_an_engine_that_fails_fails_the_write_with_its_own_error(core: Core) -> None:
    core.lexical.error = Unavailable("disk full", reason="TEST_DISK")
    with pytest.raises(Unavailable) as caught:
        await core.index(KEY, ["a"])
    assert caught.value.reason == "TEST_DISK"


async def test_an_engine_that_does_not_get_ready_is_not_waited_for(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(space: EmbeddingSpace) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(core.dense, "prepare", hang)
    options, written = IndexingOptions(engine_timeout_s=0.01), WrittenRevisions(core.clock)
    writer = RevisionWriter(core.dense, core.lexical, core.revisions, written, options, KeyedLock(), core.switch.place)
    with pytest.raises(IndexUnavailable, match="did not answer within"):
        await writer.index(HEADER, _stream(make_batch([make_chunk("a", key=KEY)])))


def _with_vectors(vectors: np.ndarray) -> IndexBatch:
    return IndexBatch(make_batch([make_chunk("a", key=KEY)]).chunks, vectors.astype(np.float32))


@pytest.mark.parametrize(
    "batches",
    [
        [_with_vectors(np.full((1, 32), np.nan))],
        [_with_vectors(np.full((1, 32), 3.0))],
        [_with_vectors(np.zeros((1, 32)))],
        [_with_vectors(np.ones((2, 1)))],
        [make_batch([make_chunk("a", key=KEY)]), _with_vectors(np.ones((1, 1)))],
        [make_batch([make_chunk("a", key=KEY)]), make_batch([make_chunk("b", key=KEY)])],
        [make_batch([make_chunk("", key=KEY)])],
        [make_batch([make_chunk("a", key=KEY, chunk_id="a/b")])],
        [make_batch([make_chunk("a", key=KEY, metadata={"a\x1fb": "c"})])],
    ],
    ids=["nan", "long", "zero", "rows", "dimension changes", "id twice", "no text", "bad id", "bad metadata key"],
)
async def test_a_batch_against_the_contract_is_refused(core: Core, batches: list[IndexBatch]) -> None:
    with pytest.raises(InvalidRequest):
        await core.writer.index(HEADER, _stream(*batches))


async def test_a_stream_that_stalls_is_given_up(core: Core) -> None:
    async def stalled() -> AsyncIterator[IndexBatch]:
        await asyncio.Event().wait()
        yield make_batch([])

    with pytest.raises(DeadlineExceeded):
        await core.writer.index(HEADER, stalled())
    assert await core.index(KEY, ["a"]) == 1


async def test_two_attempts_at_one_revision_take_turns(core: Core) -> None:
    counts = await asyncio.gather(*(core.index(KEY, [f"{n} {m}" for m in range(5)]) for n in range(4)))
    assert counts == [5] * 4
    assert (await core.dense.count(KEY), await core.lexical.count(KEY)) == (5, 5)


@pytest.mark.parametrize(("told", "expected"), [(None, False), (3, False), (0, True)])
async def test_engines_learn_whether_others_are_to_come(core: Core, told: int | None, expected: bool) -> None:
    batch = make_batch([make_chunk("a", key=KEY)])
    await core.writer.index(IndexHeader(KEY, "default", MODEL, told), _stream(batch))
    assert core.dense.last_ones == core.lexical.last_ones == [expected]


async def test_a_revision_that_is_being_written_is_still_to_come(core: Core) -> None:
    release = asyncio.Event()
    other = RevisionKey("local", "d2", "r2")

    async def slow() -> AsyncIterator[IndexBatch]:
        await release.wait()
        yield make_batch([make_chunk("b", key=other)])

    written = asyncio.create_task(core.writer.index(IndexHeader(other, "default", MODEL, 1), slow()))
    await asyncio.sleep(0)
    await core.writer.index(IndexHeader(KEY, "default", MODEL, 0), _stream(make_batch([make_chunk("a", key=KEY)])))
    release.set()
    await written
    assert core.dense.last_ones == [False, True]


async def test_chunks_come_in_the_order_asked_with_their_neighbours(core: Core) -> None:
    await core.publish(KEY, [f"part {n}" for n in range(6)])
    windows = await core.reader.fetch("local", ["r1-5", "nope", "r1-0", "r1-5"], 2)
    assert [
        ([chunk.text for chunk in window.before], window.chunk.text, [chunk.text for chunk in window.after])
        for window in windows
    ] == [
        (["part 3", "part 4"], "part 5", []),
        ([], "part 0", ["part 1", "part 2"]),
        (["part 3", "part 4"], "part 5", []),
    ]


async def test_inactive_chunks_and_those_of_other_tenants_are_left_out(core: Core) -> None:
    await core.index(KEY, ["hidden"])
    assert await core.reader.fetch("local", ["r1-0"], 0) == []
    await core.activate(KEY, 1, 1)
    assert len(await core.reader.fetch("local", ["r1-0"], 0)) == 1
    assert await core.reader.fetch("rival", ["r1-0"], 0) == []


async def test_chunks_are_read_from_the_other_index_when_one_is_down(core: Core) -> None:
    await core.publish(KEY, ["part"])
    core.lexical.error = Unavailable("down")
    assert [window.chunk.text for window in await core.reader.fetch("local", ["r1-0"], 1)] == ["part"]
    core.dense.error = Unavailable("down too")
    with pytest.raises(Unavailable):
        await core.reader.fetch("local", ["r1-0"], 1)


@pytest.mark.parametrize(("chunk_ids", "window"), [([], 0), (["a"] * 201, 0), (["a"], 11), (["../a"], 0)])
async def test_fetch_limits_hold(core: Core, chunk_ids: list[str], window: int) -> None:
    with pytest.raises(InvalidRequest):
        await core.reader.fetch("local", chunk_ids, window)


def test_texts_that_differ_in_case_and_punctuation_hash_alike() -> None:
    assert text_hash("Solar — panels!") == text_hash("solar panels")
    assert text_hash("solar panel") != text_hash("solar panels")
    assert text_hash("!!!") != text_hash("???")
