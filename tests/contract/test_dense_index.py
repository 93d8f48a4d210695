"""The dense index: what both engines promise, vectors, and what a SIGKILL may not destroy. Fake, Qdrant Edge, and the server
adapter over its HTTP double and over a real server."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.retriever.adapters import damaged_folder
from services.retriever.adapters.edge.index import EdgeIndex
from services.retriever.errors import EmbeddingSpaceMismatch, IndexUnavailable
from services.retriever.indexes.stored_chunk import Candidate
from services.retriever.models import EmbeddingSpace, Languages, RevisionKey, SearchScope
from services.retriever.ports import ChunkIndex, DenseIndex
from tests.contract.retriever_index_contract import KEY, SCOPE, ChunkIndexContract, store
from tests.contract.retriever_kill import killed_while_writing
from tests.contract.retriever_servers import qdrant_over_double, qdrant_over_real_server
from tests.doubles.http_double import OTHER_LOOPBACK
from tests.unit.retriever.fakes import SPACE, FakeDense, embed, make_batch, make_chunk, write_key


@asynccontextmanager
async def fake_index(_: Path) -> AsyncIterator[DenseIndex]:
    yield FakeDense()


@asynccontextmanager
async def edge_index(path: Path) -> AsyncIterator[DenseIndex]:
    edge = await EdgeIndex.open(path)
    yield edge
    await edge.close()


HALF_PRECISION = 5e-4
"""An index may keep vectors as float16."""

ENGINES = {
    "fake": fake_index,
    "edge": edge_index,
    "qdrant double": lambda _: qdrant_over_double(),
    "qdrant double elsewhere": lambda _: qdrant_over_double(OTHER_LOOPBACK),
    "qdrant": lambda _: qdrant_over_real_server(),
}


@pytest.fixture(params=ENGINES)
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DenseIndex]:
    async with ENGINES[request.param](tmp_path) as made:
        await made.prepare(SPACE)
        yield made


class TestDenseIndex(ChunkIndexContract):
    async def found(self, index: ChunkIndex, scope: SearchScope, query_text: str, limit: int = 10) -> list[Candidate]:
        (hits,) = await index.search(scope, embed([query_text]), limit)  # type: ignore[attr-defined]
        # A dense engine ranks everything; for the contract a chunk counts as found when it shares a word.
        return [hit for hit in hits if hit.score > 0.2]

    async def test_scores_are_cosines_and_each_query_has_its_list(self, index: DenseIndex) -> None:
        await store(index, KEY, ["solar panel", "wind turbine"])
        first, second = await index.search(SCOPE, embed(["solar panel", "wind turbine"]), 1)
        assert [hits[0].stored.chunk.text for hits in (first, second)] == ["solar panel", "wind turbine"]
        assert first[0].score == pytest.approx(1.0, abs=HALF_PRECISION)

    async def test_vectors_are_read_back_as_they_were_written(self, index: DenseIndex) -> None:
        await store(index, KEY, ["solar panel", "wind turbine"])
        await store(index, RevisionKey("rival", "d1", "r1"), ["their own"])
        vectors = await index.vectors("local", ["r1-1", "unknown"])
        assert list(vectors) == ["r1-1"]
        assert vectors["r1-1"] == pytest.approx(embed(["wind turbine"])[0], abs=HALF_PRECISION)
        assert await index.vectors("local", []) == {}

    async def test_cosines_with_chunks_by_id(self, index: DenseIndex) -> None:
        await store(index, KEY, ["solar panel", "wind turbine", "not asked for"])
        await store(index, RevisionKey("rival", "d1", "r1"), ["their own"])
        queries = embed(["solar panel", "wind"])
        first, second = await index.cosines("local", ["r1-0", "r1-1", "unknown"], queries)
        texts = embed(["solar panel", "wind turbine"])
        assert first == pytest.approx(
            {"r1-0": texts[0] @ queries[0], "r1-1": texts[1] @ queries[0]}, abs=HALF_PRECISION
        )
        assert second == pytest.approx(
            {"r1-0": texts[0] @ queries[1], "r1-1": texts[1] @ queries[1]}, abs=HALF_PRECISION
        )
        assert await index.cosines("local", [], queries) == [{}, {}]

    async def test_languages_are_searched_on_their_own_or_left_out(self, index: DenseIndex) -> None:
        chunks = [
            make_chunk("solar panel", ordinal, key=KEY, language=code) for ordinal, code in enumerate(("en", "de", ""))
        ]
        await index.write(write_key(KEY), make_batch(chunks))
        await index.commit(write_key(KEY))
        for languages, expected in (
            (None, {0, 1, 2}),
            (Languages(("en",)), {0}),
            (Languages(("en", "de")), {0, 1}),
            (Languages(("en",), are_left_out=True), {1, 2}),
        ):
            (hits,) = await index.search(SCOPE, embed(["solar"]), 10, languages)
            assert {hit.stored.chunk.ordinal for hit in hits} == expected

    async def test_vectors_of_another_model_or_dimension_are_refused(self, index: DenseIndex) -> None:
        for space in (EmbeddingSpace("other", SPACE.dimension), EmbeddingSpace(SPACE.model, 8)):
            with pytest.raises(EmbeddingSpaceMismatch):
                await index.prepare(space)
        assert index.space == SPACE


async def test_edge_finds_what_was_committed_when_only_its_log_reached_the_disk(tmp_path: Path) -> None:
    """A power cut: of the files of the shard the disk has what was flushed long ago, of the log what was synced at the commit."""
    running, cut = tmp_path / "running", tmp_path / "cut"
    index = await EdgeIndex.open(running)
    await index.prepare(SPACE)
    shutil.copytree(running, cut)
    await store(index, KEY, ["solar panel", "wind turbine"])
    shutil.rmtree(cut / "shard-v3" / "wal")
    shutil.copytree(running / "shard-v3" / "wal", cut / "shard-v3" / "wal")
    await index.close()
    index = await EdgeIndex.open(cut)
    assert await index.count(KEY) == 2
    await index.close()


async def test_edge_finds_everything_after_it_was_closed_and_opened(tmp_path: Path) -> None:
    index = await EdgeIndex.open(tmp_path)
    assert index.space is None
    await index.prepare(SPACE)
    await store(index, KEY, ["solar panel"])
    await index.close()
    index = await EdgeIndex.open(tmp_path)
    assert (index.space, await index.count(KEY)) == (SPACE, 1)
    await index.close()


async def test_edge_says_what_to_do_when_it_may_be_the_disk_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damaged_folder, "_LEAST_FREE_BYTES", 1 << 60)
    (tmp_path / "shard-v3").mkdir()
    (tmp_path / "shard-v3" / "space.json").write_text("{")
    with pytest.raises(IndexUnavailable, match="remove it and index all documents again"):
        await EdgeIndex.open(tmp_path)
    assert (tmp_path / "shard-v3" / "space.json").exists()


async def test_edge_starts_anew_after_a_kill_during_creation(tmp_path: Path) -> None:
    (tmp_path / "shard.creating" / "segments").mkdir(parents=True)
    index = await EdgeIndex.open(tmp_path)
    await index.prepare(SPACE)
    assert await index.count(KEY) == 0
    await index.close()


@pytest.mark.parametrize("after_writes", [1, 4])
async def test_edge_keeps_what_was_committed_when_it_is_killed(tmp_path: Path, after_writes: int) -> None:
    committed = await killed_while_writing("edge", tmp_path, after_writes)
    index = await EdgeIndex.open(tmp_path)
    for revision_id in committed:
        assert await index.count(RevisionKey("local", "d", revision_id)) == 50
    await index.close()
