"""Indexes of this process whose files are damaged: it is noticed, they begin anew, and what another process uses is left alone."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.retriever.adapters.edge.index import EdgeIndex
from services.retriever.adapters.tantivy.index import _FORMAT, TantivyIndex
from services.retriever.errors import IndexUnavailable
from services.retriever.models import LexicalQuery, RevisionKey, SearchScope
from tests.unit.retriever.fakes import SPACE, embed, make_batch, make_chunk, write_key

SCOPE = SearchScope("local", ("default",))
TEXTS = [f"solar panel number{number} of the roof" for number in range(40)]
Index = TantivyIndex | EdgeIndex


async def fill(index: Index) -> None:
    if isinstance(index, EdgeIndex):
        await index.prepare(SPACE)
    for number in range(3):
        key = RevisionKey("local", f"d{number}", f"r{number}")
        batch = make_batch([make_chunk(text, ordinal, key=key) for ordinal, text in enumerate(TEXTS)])
        await index.write(write_key(key), batch)
        await index.commit(write_key(key), is_last=True)
    await index.delete_revision(RevisionKey("local", "d0", "r0"))


async def found(index: Index) -> int:
    if isinstance(index, EdgeIndex):
        (hits,) = await index.search(SCOPE, embed(["solar"]), 200)
    else:
        (hits,) = await index.search(SCOPE, [LexicalQuery("solar")], 200)
    return len(hits)


@asynccontextmanager
async def opened(engine: type[TantivyIndex] | type[EdgeIndex], folder: Path) -> AsyncIterator[Index]:
    index = await engine.open(folder)
    try:
        yield index
    finally:
        await index.close()


async def _make(engine: type[TantivyIndex] | type[EdgeIndex], folder: Path) -> None:
    async with opened(engine, folder) as index:
        await fill(index)
        assert await index.inspect() is None


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both indexes, made once."""
    folder = tmp_path_factory.mktemp("filled")
    asyncio.run(_make(TantivyIndex, folder / "lexical"))
    asyncio.run(_make(EdgeIndex, folder / "dense"))
    return folder


@pytest.fixture
def lexical(filled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(filled / "lexical", tmp_path / "lexical")


@pytest.fixture
def dense(filled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(filled / "dense", tmp_path / "dense")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for position in random.Random(5).sample(range(len(content)), max(3, len(content) // 500)):
        content[position] ^= 0x55
    path.write_bytes(content)


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def files(folder: Path, pattern: str) -> list[Path]:
    found = [path for path in folder.rglob(pattern) if path.is_file() and path.stat().st_size]
    assert found, pattern
    return found


def set_aside(folder: Path) -> list[Path]:
    return list(folder.glob("*.damaged-*"))


LEXICAL_FILES = ["*.idx", "*.pos", "*.term", "*.store", "*.fast", "*.fieldnorm", "meta.json", ".managed.json"]


@pytest.mark.parametrize("damage", [flip, halve, Path.unlink])
@pytest.mark.parametrize("pattern", LEXICAL_FILES)
async def test_damaged_lexical_file_is_noticed_and_the_index_begins_anew(
    lexical: Path, pattern: str, damage: Callable[[Path], None]
) -> None:
    for path in files(lexical, pattern):
        damage(path)
    async with opened(TantivyIndex, lexical) as index:
        problem = await index.inspect()
        assert problem is None or not set_aside(lexical)
        if problem is not None:
            await index.start_anew(problem)
        # Without meta.json the engine itself begins anew; the list of its files it can do without.
        if pattern not in {"meta.json", ".managed.json"}:
            assert len(set_aside(lexical)) == 1
        assert await found(index) == (0 if set_aside(lexical) or pattern == "meta.json" else 80)
        assert await index.inspect() is None


async def test_lexical_index_damaged_while_it_is_open_is_suspected_and_replaced(lexical: Path) -> None:
    async with opened(TantivyIndex, lexical) as index:
        assert not index.suspected.is_set()
        for path in files(lexical, "*.store"):
            content = path.read_bytes()
            with path.open("r+b") as file:  # in place: the engine has the file mapped
                file.write(bytes(byte ^ 0x55 for byte in content[: len(content) // 2]))
        with pytest.raises(IndexUnavailable):
            await found(index)
        assert index.suspected.is_set()
        problem = await index.inspect()
        assert problem is not None
        assert ".store" in problem
        await index.start_anew(problem)
        assert (await found(index), await index.inspect()) == (0, None)
        await fill(index)
        assert await found(index) == 80
        assert len(set_aside(lexical)) == 1


async def test_lexical_index_is_whole_while_it_is_written_and_merged(tmp_path: Path) -> None:
    async with opened(TantivyIndex, tmp_path) as index:
        writing = asyncio.create_task(fill(index))
        while not writing.done():
            assert await index.inspect() is None
        await writing


@pytest.mark.parametrize("pattern", ["page_0.dat", "segment.json", "space.json"])
async def test_damaged_dense_file_is_noticed_and_the_index_begins_anew(dense: Path, pattern: str) -> None:
    for path in files(dense, pattern):
        flip(path)
    async with opened(EdgeIndex, dense) as index:
        if not set_aside(dense):
            with pytest.raises(IndexUnavailable):
                await found(index)
            assert index.suspected.is_set()
            problem = await index.inspect()
            assert problem is not None
            await index.start_anew(problem)
        assert (index.space, await found(index)) == (None, 0)
        assert len(set_aside(dense)) == 1
    async with opened(EdgeIndex, dense) as index:
        await fill(index)
        assert (await found(index), await index.inspect()) == (80, None)


@pytest.mark.parametrize("engine", [TantivyIndex, EdgeIndex])
async def test_folder_that_cannot_be_made_is_named(
    engine: type[TantivyIndex] | type[EdgeIndex], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(IndexUnavailable, match="check the folder's permissions"):
        await engine.open(tmp_path / "file" / "index")


@pytest.mark.parametrize("engine", [TantivyIndex, EdgeIndex])
async def test_index_that_another_process_uses_is_left_alone(
    engine: type[TantivyIndex] | type[EdgeIndex], tmp_path: Path
) -> None:
    async with opened(engine, tmp_path) as index:
        await fill(index)
        with pytest.raises(IndexUnavailable):
            await engine.open(tmp_path)
        for path in files(tmp_path, "*.fieldnorm" if engine is TantivyIndex else "segment.json"):
            flip(path)
        with pytest.raises(IndexUnavailable):
            await engine.open(tmp_path)
        assert set_aside(tmp_path) == []


@pytest.mark.parametrize("engine", [TantivyIndex, EdgeIndex])
async def test_write_that_is_under_way_when_the_index_begins_anew_fails_and_may_be_repeated(
    engine: type[TantivyIndex] | type[EdgeIndex], tmp_path: Path
) -> None:
    key = RevisionKey("local", "d9", "r1")
    batch = make_batch([make_chunk("solar", key=key)])
    async with opened(engine, tmp_path) as index:
        await fill(index)
        await index.write(write_key(key), batch)
        await index.start_anew("a test")
        if isinstance(index, EdgeIndex):
            with pytest.raises(IndexUnavailable):
                await index.write(write_key(key), batch)
            await index.prepare(SPACE)
        assert await index.commit(write_key(key), is_last=True) == 0
        await index.write(write_key(key), batch)
        assert await index.commit(write_key(key), is_last=True) == 1


async def test_older_index_that_was_set_aside_makes_room(lexical: Path) -> None:
    older = lexical / f"{_FORMAT}.damaged-1"
    older.mkdir()
    async with opened(TantivyIndex, lexical) as index:
        await index.start_anew("a test")
    assert older not in set_aside(lexical)
    assert len(set_aside(lexical)) == 1
