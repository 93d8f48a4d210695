"""What both engines of the retriever promise alike. test_dense_index.py and test_lexical_index.py inherit it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from services.retriever.indexes.stored_chunk import Candidate
from services.retriever.models import (
    BoundingBox,
    MetadataCondition,
    RevisionKey,
    SearchScope,
)
from services.retriever.ports import ChunkIndex
from tests.unit.retriever.fakes import make_batch, make_chunk, write_key


@dataclass(frozen=True)
class FilterCase:
    """What is found of FILTERED in a scope with these fields."""

    name: str
    fields: dict[str, object]
    found: str


FILTERED = {
    "a": {"date": "2024-03-01T10:00:00", "channel": "news", "author": "Ann"},
    "b": {"date": "2024-03-01T10:00:00+02:00", "channel": "news", "author": "Bo"},
    "c": {"date": "2024-03-02", "channel": "chat", "author": "Ann"},
    "d": {"date": "1969-12-31T23:59:59Z", "channel": "chat"},
    "e": {"date": "some day"},
    "f": {},
}
MARCH_1_10_00 = 1_709_287_200
MARCH_2 = 1_709_337_600
FILTERS = [
    FilterCase("nothing restricts", {}, "abcdef"),
    FilterCase("from a time on, itself among them", {"date_from_s": MARCH_1_10_00}, "ac"),
    FilterCase("before a time, itself not among them", {"date_to_s": MARCH_1_10_00}, "bd"),
    FilterCase("between two times", {"date_from_s": MARCH_1_10_00, "date_to_s": MARCH_2}, "a"),
    FilterCase("before 1970 too", {"date_to_s": 0}, "d"),
    FilterCase(
        "a zone is heeded, and without one it is UTC", {"date_from_s": MARCH_1_10_00 - 7200, "date_to_s": MARCH_2}, "ab"
    ),
    FilterCase("a channel", {"metadata": (MetadataCondition("channel", ("news",)),)}, "ab"),
    FilterCase(
        "a channel and an author",
        {"metadata": (MetadataCondition("channel", ("news",)), MetadataCondition("author", ("Ann", "Cy")))},
        "a",
    ),
    FilterCase(
        "an author since a time",
        {"metadata": (MetadataCondition("author", ("Ann",)),), "date_from_s": MARCH_2},
        "c",
    ),
    FilterCase("chunks by id", {"chunk_ids": ("ra-0", "rf-0", "unknown")}, "af"),
    FilterCase("documents", {"document_ids": ("db", "dc"), "date_from_s": MARCH_2}, "c"),
    FilterCase("hidden documents", {"hidden_document_ids": frozenset({"db", "dx"})}, "acdef"),
]

KEY = RevisionKey("local", "d1", "r1")
SCOPE = SearchScope("local", ("default",))


async def store(index: ChunkIndex, key: RevisionKey, texts: list[str], attempt: str = "a", **fields: object) -> int:
    chunks = [make_chunk(text, ordinal, key=key, **fields) for ordinal, text in enumerate(texts)]
    await index.write(write_key(key, attempt), make_batch(chunks))
    return await index.commit(write_key(key, attempt))


class ChunkIndexContract(ABC):
    """Runs against the fixture `index`; `found` searches it for one text."""

    @abstractmethod
    async def found(
        self, index: ChunkIndex, scope: SearchScope, query_text: str, limit: int = 10
    ) -> list[Candidate]: ...

    async def ids(self, index: ChunkIndex, scope: SearchScope, query_text: str) -> set[str]:
        return {hit.stored.chunk_id for hit in await self.found(index, scope, query_text)}

    async def test_an_empty_index_finds_and_counts_nothing(self, index: ChunkIndex) -> None:
        assert await self.found(index, SCOPE, "solar panels") == []
        assert await index.count(KEY) == 0
        assert await index.fetch("local", ["r1-0"]) == []
        assert await index.writes() == []
        await index.delete_revision(KEY)
        await index.delete_document("local", "d1")

    async def test_the_best_match_comes_first_with_all_fields_of_its_chunk(self, index: ChunkIndex) -> None:
        chunk = make_chunk(
            "solar panels on the roof \x1f «ünïcödé»",
            0,
            key=KEY,
            page=3,
            heading_path=("Energy", "Sun"),
            char_start=5,
            char_end=40,
            token_count=7,
            content_hash="ab",
            bounding_boxes=(BoundingBox(3, 1.0, 2.0, 3.5, 4.5),),
            metadata={"year": "2024", "team": "a b"},
            language="en",
        )
        other = make_chunk("wind turbines at sea", 1, key=KEY)
        await index.write(write_key(KEY), make_batch([other, chunk]))
        assert await index.commit(write_key(KEY)) == 2
        hits = await self.found(index, SCOPE, "solar panels roof")
        assert hits[0].stored.chunk == chunk
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)

    async def test_the_limit_holds(self, index: ChunkIndex) -> None:
        await store(index, KEY, [f"solar panel number {n}" for n in range(20)])
        assert len(await self.found(index, SCOPE, "solar panel", limit=7)) == 7

    async def test_another_tenant_or_collection_sees_nothing(self, index: ChunkIndex) -> None:
        theirs = RevisionKey("rival", "d1", "r1")
        await store(index, KEY, ["solar ours"])
        await store(index, theirs, ["solar theirs"])
        await store(index, RevisionKey("local", "d2", "r2"), ["solar hidden"], collection_id="secret")
        ours = await self.found(index, SCOPE, "solar")
        assert [hit.stored.chunk.text for hit in ours] == ["solar ours"]
        rivals = await self.found(index, SearchScope("rival", ("default",)), "solar")
        assert [hit.stored.chunk.text for hit in rivals] == ["solar theirs"]
        assert [chunk.chunk.text for chunk in await index.fetch("rival", ["r1-0"])] == ["solar theirs"]
        assert await self.ids(index, SearchScope("local", ("default", "secret")), "solar") == {"r1-0", "r2-0"}
        await index.delete_document("rival", "d1")
        assert (await index.count(KEY), await index.count(theirs)) == (1, 0)

    async def test_document_and_metadata_filters_hold_together(self, index: ChunkIndex) -> None:
        for name, year, team in (("a", "2023", "x"), ("b", "2024", "x"), ("c", "2024", "y")):
            key = RevisionKey("local", f"d{name}", f"r{name}")
            await store(index, key, ["solar panel"], metadata={"year": year, "team": team, "blob": "z" * 5000})

        async def ids(document_ids: tuple[str, ...], *metadata: MetadataCondition) -> set[str]:
            return await self.ids(index, SearchScope("local", ("default",), document_ids, metadata), "solar")

        assert await ids(("da", "dc")) == {"ra-0", "rc-0"}
        assert await ids((), MetadataCondition("year", ("2024",))) == {"rb-0", "rc-0"}
        assert await ids((), MetadataCondition("year", ("2023", "2024")), MetadataCondition("team", ("x",))) == {
            "ra-0",
            "rb-0",
        }
        assert await ids(("da",), MetadataCondition("year", ("2024",))) == set()
        assert await ids((), MetadataCondition("team", ("2024",))) == set()
        assert await ids((), MetadataCondition("blob", ("z" * 5000,))) == {"ra-0", "rb-0", "rc-0"}

    async def test_a_search_may_be_held_to_some_chunks(self, index: ChunkIndex) -> None:
        await store(index, KEY, [f"solar {n}" for n in range(5)])
        for unknown in (1, 100):
            chunk_ids = ("r1-1", "r1-4", *(f"unknown-{n}" for n in range(unknown)))
            scope = SearchScope("local", ("default",), chunk_ids=chunk_ids)
            assert await self.ids(index, scope, "solar") == {"r1-1", "r1-4"}

    async def test_a_document_of_many_batches_is_whole(self, index: ChunkIndex) -> None:
        chunks = [make_chunk(f"solar {n}", n, key=KEY) for n in range(150)]
        for start in (0, 75):
            await index.write(write_key(KEY), make_batch(chunks[start : start + 75]))
        assert await index.commit(write_key(KEY)) == 150
        fetched = await index.fetch("local", [chunk.chunk_id for chunk in chunks])
        assert {stored.chunk_id for stored in fetched} == {chunk.chunk_id for chunk in chunks}
        assert len(await index.fetch_ordinals(KEY, range(150))) == 150

    async def test_each_filter_holds(self, index: ChunkIndex) -> None:
        for name, metadata in FILTERED.items():
            await store(index, RevisionKey("local", f"d{name}", f"r{name}"), ["solar panel"], metadata=metadata)
        found = {}
        for case in FILTERS:
            scope = SearchScope("local", ("default",), **case.fields)  # type: ignore[arg-type]
            found[case.name] = "".join(sorted(chunk_id[1] for chunk_id in await self.ids(index, scope, "solar")))
        assert found == {case.name: case.found for case in FILTERS}

    async def test_a_later_attempt_replaces_what_earlier_ones_left(self, index: ChunkIndex) -> None:
        assert await store(index, KEY, ["solar one", "solar two", "solar three"], "a") == 3
        assert await store(index, KEY, ["solar uno", "solar due"], "b") == 2
        assert await index.count(KEY) == 2
        texts = {hit.stored.chunk.text for hit in await self.found(index, SCOPE, "solar")}
        assert texts == {"solar uno", "solar due"}

    async def test_the_same_chunks_written_again_are_there_once(self, index: ChunkIndex) -> None:
        for attempt in ("a", "b"):
            assert await store(index, KEY, ["solar one", "solar two"], attempt) == 2
        assert len(await index.fetch("local", ["r1-0"])) == 1

    async def test_writes_name_revision_and_start(self, index: ChunkIndex) -> None:
        key = write_key(KEY, "x", started_at_ms=123)
        await index.write(key, make_batch([make_chunk("solar", key=KEY)]))
        await index.commit(key)
        assert await index.writes() == [key]

    async def test_deleting_a_revision_leaves_the_others(self, index: ChunkIndex) -> None:
        newer = RevisionKey("local", "d1", "r2")
        await store(index, KEY, ["solar old"])
        await store(index, newer, ["solar new"])
        await index.delete_revision(KEY)
        await index.delete_revision(KEY)
        assert await self.ids(index, SCOPE, "solar") == {"r2-0"}
        await index.delete_document("local", "d1")
        assert await self.ids(index, SCOPE, "solar") == set()

    async def test_neighbours_are_found_by_position(self, index: ChunkIndex) -> None:
        await store(index, KEY, [f"solar part {n}" for n in range(6)])
        await store(index, RevisionKey("local", "d1", "r2"), [f"solar new {n}" for n in range(6)])
        found = await index.fetch_ordinals(KEY, [1, 2, 9])
        assert {chunk.chunk.text for chunk in found} == {"solar part 1", "solar part 2"}
