"""The lexical index: what both engines promise, analysis, and what a SIGKILL may not destroy. Fake, tantivy, and the server
adapter over its HTTP double and over a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.retriever.adapters import damaged_folder
from services.retriever.adapters.tantivy.index import _FORMAT, TantivyIndex
from services.retriever.errors import IndexUnavailable
from services.retriever.indexes.stored_chunk import Candidate
from services.retriever.models import LexicalQuery, RevisionKey, SearchScope
from services.retriever.ports import ChunkIndex, LexicalIndex
from tests.contract.retriever_index_contract import KEY, SCOPE, ChunkIndexContract, store
from tests.contract.retriever_kill import killed_while_writing
from tests.contract.retriever_servers import elasticsearch_over_double, elasticsearch_over_real_server
from tests.unit.retriever.fakes import FakeLexical


@asynccontextmanager
async def fake(_: Path) -> AsyncIterator[LexicalIndex]:
    yield FakeLexical()


@asynccontextmanager
async def tantivy(path: Path) -> AsyncIterator[TantivyIndex]:
    index = await TantivyIndex.open(path)
    yield index
    await index.close()


ENGINES = {
    "fake": fake,
    "tantivy": tantivy,
    "elasticsearch double": lambda _: elasticsearch_over_double(),
    "elasticsearch": lambda _: elasticsearch_over_real_server(),
}


OTHER_REVISIONS = [("local", "d1", "r2"), ("local", "d11", "r3"), ("rival", "d1", "r4")]


@pytest.fixture(params=ENGINES)
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LexicalIndex]:
    async with ENGINES[request.param](tmp_path) as made:
        yield made


@pytest.fixture
async def tantivy_index(tmp_path: Path) -> AsyncIterator[TantivyIndex]:
    async with tantivy(tmp_path) as made:
        yield made


class TestLexicalIndex(ChunkIndexContract):
    async def found(self, index: ChunkIndex, scope: SearchScope, query_text: str, limit: int = 10) -> list[Candidate]:
        (hits,) = await index.search(scope, [LexicalQuery(query_text)], limit)  # type: ignore[attr-defined]
        return list(hits)

    @pytest.mark.parametrize(
        "query_text",
        ['"', "a:b AND (", "title:[* TO *]", "+-!(){}^~*?\\/", '"unclosed solar', "\x00\x1f", "(" * 200, "𝕊 ´`", "OR"],
    )
    async def test_any_text_is_a_valid_query(self, index: LexicalIndex, query_text: str) -> None:
        await store(index, KEY, ["solar panel"])
        (hits,) = await index.search(SCOPE, [LexicalQuery(query_text)], 10)
        assert len(hits) <= 1

    async def test_each_query_has_its_list(self, index: LexicalIndex) -> None:
        await store(index, KEY, ["solar panel", "wind turbine"])
        queries = [LexicalQuery(text) for text in ("panels", "turbines", "geothermal")]
        first, second, third = await index.search(SCOPE, queries, 5)
        assert [hit.stored.chunk.text for hit in first] == ["solar panel"]
        assert [hit.stored.chunk.text for hit in second] == ["wind turbine"]
        assert third == []

    async def test_must_phrases_stand_word_for_word(self, index: LexicalIndex) -> None:
        texts = ["the bear market of 2008", "bears in the market of bears", "a bear-market, it was", "Bear. Market!"]
        await store(index, KEY, texts)

        async def found(query_text: str, *phrases: str) -> set[str]:
            (hits,) = await index.search(SCOPE, [LexicalQuery(query_text, phrases)], 10)
            return {hit.stored.chunk.text for hit in hits}

        having = {texts[0], texts[2], texts[3]}
        assert await found("market", "Bear Market") == having
        assert await found("nothing of it", "bear market") == having
        assert await found("", "bear market") == having
        assert await found("market", "bear market", "2008") == {texts[0]}
        assert await found("market", "bear markets") == set()
        assert await found("", "the") == {texts[0], texts[1]}

    async def test_revisions_of_a_document_are_those_that_have_chunks(self, index: LexicalIndex) -> None:
        never_active, other, theirs = (RevisionKey(*names) for names in OTHER_REVISIONS)
        for key in (KEY, never_active, other, theirs):
            await store(index, key, ["solar panel", "wind turbine"])
        assert await index.revisions("local", "d1") == {KEY, never_active}
        await index.delete_revision(never_active)
        assert await index.revisions("local", "d1") == {KEY}
        assert await index.revisions("local", "d") == set()

    async def test_phrases_are_found_in_headings_too(self, index: LexicalIndex) -> None:
        await store(index, KEY, ["thirty days"], heading_path=("Paid leave", "Parents"))
        (hits,) = await index.search(SCOPE, [LexicalQuery("days", ("paid leave",))], 5)
        assert [hit.stored.chunk.text for hit in hits] == ["thirty days"]

    async def test_what_an_earlier_format_left_can_be_dropped_twice(self, index: LexicalIndex) -> None:
        await store(index, KEY, ["solar panel"])
        for _ in range(2):
            await index.drop_outdated()
        assert await index.count(KEY) == 1


class TestAnalysis:
    """Beyond what the fake can do."""

    async def _texts(self, index: TantivyIndex, query_text: str) -> list[str]:
        (hits,) = await index.search(SCOPE, [LexicalQuery(query_text)], 10)
        return [hit.stored.chunk.text for hit in hits]

    async def test_case_accents_and_endings_do_not_matter(self, tantivy_index: TantivyIndex) -> None:
        await store(tantivy_index, KEY, ["The Café was RENOVATED", "nothing here"])
        for query_text in ("cafe", "CAFÉS", "renovating", "renovation"):
            assert await self._texts(tantivy_index, query_text) == ["The Café was RENOVATED"]

    async def test_stop_words_do_not_find_chunks_when_better_words_are_there(self, tantivy_index: TantivyIndex) -> None:
        await store(tantivy_index, KEY, ["what is the the the of what", "the pension fund"])
        assert await self._texts(tantivy_index, "what is the pension?") == ["the pension fund"]
        assert await self._texts(tantivy_index, "what is the") == ["what is the the the of what", "the pension fund"]

    async def test_a_quoted_phrase_lifts_the_chunk_that_has_it(self, tantivy_index: TantivyIndex) -> None:
        texts = ["market share and bear market share bear", "the bear market ended in spring of that year"]
        await store(tantivy_index, KEY, texts)
        assert (await self._texts(tantivy_index, '"bear market ended"'))[0] == texts[1]

    async def test_a_heading_counts_beside_the_text(self, tantivy_index: TantivyIndex) -> None:
        await store(tantivy_index, KEY, ["thirty days"], heading_path=("Vacation",))
        assert await self._texts(tantivy_index, "vacations") == ["thirty days"]


async def test_concurrent_commits_share_file_syncs(
    tantivy_index: TantivyIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = 0
    commit_now = tantivy_index._commit_now

    def counted() -> None:
        nonlocal commits
        commits += 1
        commit_now()

    monkeypatch.setattr(tantivy_index, "_commit_now", counted)
    keys = [RevisionKey("local", f"d{n}", f"r{n}") for n in range(12)]
    counts = await asyncio.gather(*(store(tantivy_index, key, ["solar", "wind"]) for key in keys))
    assert counts == [2] * 12
    assert commits < 8


async def test_tantivy_says_what_to_do_when_it_may_be_the_disk_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damaged_folder, "_LEAST_FREE_BYTES", 1 << 60)
    (tmp_path / _FORMAT).mkdir()
    (tmp_path / _FORMAT / "meta.json").write_text("{")
    with pytest.raises(IndexUnavailable, match="remove it and index all documents again"):
        await TantivyIndex.open(tmp_path)
    assert (tmp_path / _FORMAT / "meta.json").exists()


async def test_folders_of_earlier_formats_go_and_this_one_stays(tmp_path: Path, tantivy_index: TantivyIndex) -> None:
    await store(tantivy_index, KEY, ["solar panel"])
    earlier = [tmp_path / name for name in ("v4", "v4.damaged-1")]
    for folder in earlier:
        folder.mkdir()
        (folder / "meta.json").write_text("{}")
    await tantivy_index.drop_outdated()
    assert not any(folder.exists() for folder in earlier)
    assert await tantivy_index.count(KEY) == 1


async def test_a_second_process_is_kept_out(tmp_path: Path, tantivy_index: TantivyIndex) -> None:
    with pytest.raises(IndexUnavailable, match="no other process uses it"):
        await TantivyIndex.open(tmp_path)


@pytest.mark.parametrize("after_writes", [1, 4])
async def test_tantivy_keeps_what_was_committed_when_it_is_killed(tmp_path: Path, after_writes: int) -> None:
    committed = await killed_while_writing("tantivy", tmp_path, after_writes)
    index = await TantivyIndex.open(tmp_path)
    for revision_id in committed:
        assert await index.count(RevisionKey("local", "d", revision_id)) == 50
    await index.close()
