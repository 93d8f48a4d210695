"""Indexes of this process: after a removal and an erasure no file has the removed text, whatever the index does meanwhile, and
wherever it is cut off."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.retriever.adapters.edge import shards
from services.retriever.adapters.edge.index import EdgeIndex
from services.retriever.adapters.edge.open_shard import OpenShard
from services.retriever.adapters.tantivy.index import TantivyIndex
from services.retriever.errors import IndexUnavailable
from services.retriever.models import LexicalQuery, RevisionKey, SearchScope
from tests.unit.retriever.fakes import SPACE, embed, make_batch, make_chunk, write_key

SCOPE = SearchScope("local", ("default",))
KEPT, GONE, LATER = (RevisionKey("local", name, f"r-{name}") for name in ("kept", "gone", "later"))
WORD = "zqvorlux"
"""Also in a compressed file it stands as it is: nothing before it is like it."""
Index = TantivyIndex | EdgeIndex


@pytest.fixture(params=[TantivyIndex, EdgeIndex], ids=["tantivy", "edge"])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Index]:
    opened = await request.param.open(tmp_path)
    if isinstance(opened, EdgeIndex):
        await opened.prepare(SPACE)
    yield opened
    await opened.close()


async def write(index: Index, key: RevisionKey, *texts: str) -> None:
    batch = make_batch([make_chunk(text, ordinal, key=key) for ordinal, text in enumerate(texts)])
    await index.write(write_key(key), batch)


async def put(index: Index, key: RevisionKey, *texts: str) -> None:
    await write(index, key, *texts)
    await index.commit(write_key(key), is_last=True)


async def put_together(index: Index, texts: dict[RevisionKey, list[str]]) -> None:
    """In one commit, so that they share files."""
    for key, lines in texts.items():
        await write(index, key, *lines)
    for key in texts:
        await index.commit(write_key(key), is_last=True)


async def texts_of(index: Index, words: str) -> set[str]:
    if isinstance(index, EdgeIndex):
        (hits,) = await index.search(SCOPE, embed([words]), 200)
    else:
        (hits,) = await index.search(SCOPE, [LexicalQuery(words)], 200)
    return {hit.stored.chunk.text for hit in hits}


def files_with(folder: Path, word: str = WORD) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_removed_text_is_in_no_file_and_all_else_is_found_as_before(index: Index, tmp_path: Path) -> None:
    kept = [f"solar panel number{number} of the roof" for number in range(100)]
    gone = [f"the {WORD} of the solar panel", "another solar text"]
    await put_together(index, {GONE: gone, KEPT: kept})
    before = await texts_of(index, "solar panel")
    assert not index.removed.is_set()
    await index.delete_revision(GONE)
    assert index.removed.is_set()
    assert files_with(tmp_path)
    await index.erase()
    assert files_with(tmp_path) == []
    assert await texts_of(index, "solar panel") == before - {*gone}
    assert await index.count(KEPT) == 100
    assert await index.writes() == [write_key(KEPT)]
    stored = await index.fetch_ordinals(KEPT, [7])
    assert [each.chunk.text for each in stored] == [kept[7]]
    await put(index, LATER, "solar later")
    assert "solar later" in await texts_of(index, "solar later")


async def test_text_that_another_took_the_place_of_is_in_no_file(index: Index, tmp_path: Path) -> None:
    await put_together(index, {KEPT: [f"solar {WORD}"], LATER: ["later"]})
    later = write_key(KEPT, "second")
    await index.write(later, make_batch([make_chunk("solar only", 0, key=KEPT)]))
    await index.commit(later, is_last=True)
    assert index.removed.is_set()
    await index.erase()
    assert files_with(tmp_path) == []
    assert await texts_of(index, "solar only") >= {"solar only"}


async def test_changes_during_an_erasure_are_neither_lost_nor_undone(index: Index, tmp_path: Path) -> None:
    others = [RevisionKey("local", f"d{number}", f"r{number}") for number in range(70)]
    texts = {key: [f"solar number{number}"] for number, key in enumerate(others)}
    for key, lines in texts.items():
        await write(index, key, *lines)
    await write(index, GONE, f"solar {WORD}")
    await asyncio.gather(*(index.commit(write_key(key)) for key in (*others, GONE)))
    await index.delete_revision(GONE)
    erasing = asyncio.create_task(index.erase())
    for first in (0, 2):
        await asyncio.gather(*(index.delete_revision(key) for key in others[first::4]))
        await put(index, RevisionKey("local", f"new{first}", f"new{first}"), f"solar new{first}")
    await erasing
    expected = {*(f"solar number{number}" for number in range(1, 70, 2)), "solar new0", "solar new2"}
    assert await texts_of(index, "solar") == expected
    assert files_with(tmp_path) == []
    await index.erase()
    assert files_with(tmp_path, "number2 ") == []
    assert await texts_of(index, "solar") == expected


async def test_removal_before_a_restart_is_still_to_be_erased(tmp_path: Path) -> None:
    for engine in (TantivyIndex, EdgeIndex):
        folder = tmp_path / engine.__name__
        index: Index = await engine.open(folder)
        if isinstance(index, EdgeIndex):
            await index.prepare(SPACE)
        await put_together(index, {GONE: [f"solar {WORD}"], KEPT: ["solar kept"]})
        await index.delete_revision(GONE)
        await index.close()
        index = await engine.open(folder)
        assert index.removed.is_set()
        await index.erase()
        assert files_with(folder) == []
        await index.close()
        index = await engine.open(folder)
        assert not index.removed.is_set()
        assert await texts_of(index, "solar") == {"solar kept"}
        await index.close()


class Killed(Exception):
    """In place of a step, or behind it."""


@dataclass(frozen=True)
class Cut:
    """Where the copy of a shard ends."""

    target: object
    step: str
    is_made: bool
    """Whether the step was made before."""

    raised: type[Exception] = IndexUnavailable

    def apply(self, monkeypatch: pytest.MonkeyPatch) -> None:
        step = getattr(self.target, self.step)

        def run(*args: object, **kwargs: object) -> None:
            if self.is_made:
                step(*args, **kwargs)
            raise Killed

        monkeypatch.setattr(self.target, self.step, run)


CUTS = {
    "behind the empty copy": Cut(OpenShard, "begin_copy", True),
    "behind a piece": Cut(OpenShard, "copy_piece", True),
    "before the copy counts": Cut(shards, "finish", False),
    "when the copy counts": Cut(shards, "finish", True),
    "when the old shard does not count": Cut(shards, "retire", True),
    "before the old shard goes": Cut(shards, "close_and_remove", False, Killed),
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
async def test_edge_cut_off_while_it_copies_has_the_old_shard_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: Cut
) -> None:
    index = await EdgeIndex.open(tmp_path / "running")
    await index.prepare(SPACE)
    await put(index, GONE, f"solar {WORD}")
    await put(index, KEPT, *(f"solar number{number}" for number in range(40)))
    await index.delete_revision(GONE)
    with monkeypatch.context() as patched:
        patched.setattr(OpenShard, "give_up_copy", lambda _: None)  # a process that is killed does not tidy up
        cut.apply(patched)
        with pytest.raises(cut.raised):
            await index.erase()
        shutil.copytree(tmp_path / "running", tmp_path / "killed")
    again = await EdgeIndex.open(tmp_path / "killed")
    assert await again.count(KEPT) == 40
    assert await again.count(GONE) == 0
    await again.erase()
    assert files_with(tmp_path / "killed") == []
    assert len(list((tmp_path / "killed").iterdir())) == 1
    assert len(await texts_of(again, "solar")) == 40
    await again.close()
    await index.close()


async def test_edge_uses_what_an_earlier_release_began_anew_and_not_a_copy_from_before(tmp_path: Path) -> None:
    """That release knows no copies: after a kill it finds none of them, and fills a shard of its own."""
    index = await EdgeIndex.open(tmp_path / "running")
    await index.prepare(SPACE)
    await put_together(index, {GONE: [f"solar {WORD}"], KEPT: ["solar kept"]})
    await index.delete_revision(GONE)
    await index.erase()
    assert names_in(tmp_path / "running") == ["shard-v3.1"]
    shutil.copytree(tmp_path / "running", tmp_path / "killed")
    await index.close()
    earlier = await EdgeIndex.open(tmp_path / "earlier")
    await earlier.prepare(SPACE)
    await put(earlier, LATER, "solar later")
    await earlier.close()
    shutil.copytree(tmp_path / "earlier" / "shard-v3", tmp_path / "killed" / "shard-v3")
    again = await EdgeIndex.open(tmp_path / "killed")
    assert await texts_of(again, "solar") == {"solar later"}
    assert names_in(tmp_path / "killed") == ["shard-v3"]
    await again.close()


async def test_second_process_leaves_the_copy_of_the_first_alone(tmp_path: Path) -> None:
    index = await EdgeIndex.open(tmp_path)
    await index.prepare(SPACE)
    await put(index, GONE, f"solar {WORD}")
    await index.delete_revision(GONE)
    await index.erase()
    with pytest.raises(IndexUnavailable, match="another process"):
        await EdgeIndex.open(tmp_path)
    await put(index, KEPT, "solar kept")
    assert await texts_of(index, "solar") == {"solar kept"}
    await index.close()


async def test_edge_leaves_no_folder_of_a_copy_that_could_not_be_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = await EdgeIndex.open(tmp_path)
    await index.prepare(SPACE)
    await put(index, GONE, f"solar {WORD}")
    await index.delete_revision(GONE)
    with monkeypatch.context() as patched:
        Cut(shards, "make_empty", True).apply(patched)
        with pytest.raises(IndexUnavailable):
            await index.erase()
    assert names_in(tmp_path) == ["shard-v3"]
    await index.erase()
    assert files_with(tmp_path) == []
    await index.close()


async def test_tantivy_writes_all_again_wherever_chunks_say_that_they_stand(tmp_path: Path) -> None:
    index = await TantivyIndex.open(tmp_path)
    places = {KEPT: [7] * 50, LATER: [*range(10, 45), 9_000, 90_000], RevisionKey("local", "few", "few"): [3, 3, 80]}
    texts = {f"solar {key.document_id}{number}" for key, ordinals in places.items() for number in range(len(ordinals))}
    await write(index, GONE, f"solar {WORD}")
    for key, ordinals in places.items():
        chunks = [
            make_chunk(f"solar {key.document_id}{number}", ordinal, key=key, chunk_id=f"{key.document_id}-{number}")
            for number, ordinal in enumerate(ordinals)
        ]
        await index.write(write_key(key), make_batch(chunks))
    await index.commit(write_key(KEPT), is_last=True)
    await index.delete_revision(GONE)
    await index.erase()
    assert files_with(tmp_path) == []
    assert await texts_of(index, "solar") == texts
    await index.close()


async def test_tantivy_writes_nothing_again_where_the_disk_has_too_little_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = await TantivyIndex.open(tmp_path)
    await put_together(index, {GONE: [f"solar {WORD}"], KEPT: ["solar kept"]})
    await index.delete_revision(GONE)
    with monkeypatch.context() as patched:
        patched.setattr("services.retriever.adapters.tantivy.index._ERASE_SIZES", 10**12)
        with pytest.raises(IndexUnavailable, match="make room"):
            await index.erase()
    await put(index, LATER, "solar later")
    assert await texts_of(index, "solar") == {"solar kept", "solar later"}
    await index.erase()
    assert files_with(tmp_path) == []
    await index.close()


async def test_edge_goes_on_without_a_copy_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = await EdgeIndex.open(tmp_path)
    await index.prepare(SPACE)
    await put(index, GONE, f"solar {WORD}")
    await index.delete_revision(GONE)
    with monkeypatch.context() as patched:
        patched.setattr("services.retriever.adapters.edge.open_shard._COPY_SIZES", 10**12)
        with pytest.raises(IndexUnavailable, match="make room"):
            await index.erase()
    await put(index, KEPT, "solar kept")
    assert await texts_of(index, "solar") == {"solar kept"}
    await index.erase()
    assert files_with(tmp_path) == []
    await index.close()
