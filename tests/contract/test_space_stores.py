"""Where the embedding spaces of an engine lie: Qdrant Edge's folders, and a Qdrant server over its double and over a real one."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from services.retriever.adapters.edge.index import EdgeIndex
from services.retriever.adapters.edge.spaces import EdgeSpaces
from services.retriever.adapters.qdrant.spaces import QdrantSpaces
from services.retriever.indexes.similarity import Group
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.models import EmbeddingSpace, RevisionKey
from services.retriever.options import QdrantOptions
from tests.contract.retriever_index_contract import SCOPE, store
from tests.contract.retriever_servers import remove_collections, server_url
from tests.doubles.qdrant import qdrant_server
from tests.unit.retriever.fakes import SPACE, embed, make_batch, make_chunk, write_key

OTHER = EmbeddingSpace("other-model", 16)
ONE, TWO = RevisionKey("local", "d1", "r1"), RevisionKey("local", "d2", "r2")

OpenSpaces = Callable[[], Awaitable[EdgeSpaces | QdrantSpaces]]


@asynccontextmanager
async def edge(path: Path) -> AsyncIterator[OpenSpaces]:
    yield lambda: EdgeSpaces.open(path)


@asynccontextmanager
async def qdrant_double(_: Path) -> AsyncIterator[OpenSpaces]:
    async with qdrant_server() as server:
        yield lambda: QdrantSpaces.open(QdrantOptions(server.url))


@asynccontextmanager
async def real_qdrant(_: Path) -> AsyncIterator[OpenSpaces]:
    url, name = server_url("TEST_QDRANT_URL"), f"test-{uuid.uuid4().hex}"
    try:
        yield lambda: QdrantSpaces.open(QdrantOptions(url, collection=name))
    finally:
        await remove_collections(url, name)


ENGINES = {"edge": edge, "qdrant double": qdrant_double, "qdrant": real_qdrant}


@pytest.fixture(params=ENGINES)
async def open_spaces(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenSpaces]:
    async with ENGINES[request.param](tmp_path) as opener:
        yield opener


async def write(spaces: DenseSpaces, key: RevisionKey, text: str, space: EmbeddingSpace) -> None:
    await spaces.prepare(space)
    batch = make_batch([make_chunk(text, key=key)])
    await spaces.write(write_key(key), replace(batch, vectors=embed([text], space.dimension), space=space))
    assert await spaces.commit(write_key(key)) == 1


async def found(spaces: DenseSpaces, space: EmbeddingSpace) -> list[str]:
    (hits,) = await spaces.search(SCOPE, Group(space), embed(["solar"], space.dimension), 10)
    return [hit.stored.chunk_id for hit in hits]


async def test_each_space_finds_its_own_also_after_a_start(open_spaces: OpenSpaces) -> None:
    first = await open_spaces()
    spaces = DenseSpaces(first)
    await write(spaces, ONE, "solar panel", SPACE)
    await write(spaces, TWO, "solar roof", OTHER)
    await first.close()
    second = await open_spaces()
    spaces = DenseSpaces(second)
    assert set(spaces.held) == {SPACE, OTHER}
    assert (await found(spaces, SPACE), await found(spaces, OTHER)) == (["r1-0"], ["r2-0"])
    assert [await spaces.model_of(key) for key in (ONE, TWO)] == [SPACE.model, OTHER.model]
    assert {write.revision for write in await spaces.writes()} == {ONE, TWO}
    await spaces.delete_document("local", "d2")
    assert (await found(spaces, SPACE), await found(spaces, OTHER)) == (["r1-0"], [])
    await second.close()


async def test_room_is_made_once(open_spaces: OpenSpaces) -> None:
    store = await open_spaces()
    for space in (SPACE, OTHER, SPACE, OTHER):
        await store.make_room(space)
    assert [index.space for index in store.indexes] == [SPACE, OTHER]
    await store.close()


async def test_copy_in_another_space_is_written_counted_and_removed_without_the_first(open_spaces: OpenSpaces) -> None:
    opened = await open_spaces()
    spaces = DenseSpaces(opened)
    await write(spaces, ONE, "solar panel", SPACE)
    await spaces.prepare(OTHER)
    copy = replace(make_batch([make_chunk("solar panel", key=ONE)]), vectors=embed(["solar panel"], 16), space=OTHER)
    for attempt in ("killed", "copy"):
        await spaces.write(write_key(ONE, attempt), copy)
    assert await spaces.commit_copy(write_key(ONE, "copy"), OTHER) == 1
    assert (await found(spaces, SPACE), await found(spaces, OTHER)) == (["r1-0"], ["r1-0"])
    assert [await spaces.count(ONE, model) for model in ("", SPACE.model, OTHER.model)] == [1, 1, 1]
    assert [stored.chunk_id for stored in await spaces.fetch_ordinals(ONE, [0])] == ["r1-0"]
    by_model = await spaces.writes_by_model()
    assert {model: {write.revision for write in writes} for model, writes in by_model.items()} == {
        SPACE.model: {ONE},
        OTHER.model: {ONE},
    }
    for space in (SPACE, OTHER):
        (vector,) = (await spaces.vectors("local", ["r1-0"], {"r1-0": space.model})).values()
        assert len(vector) == space.dimension
    await spaces.delete_copy(ONE, SPACE.model)
    assert (await found(spaces, SPACE), await found(spaces, OTHER)) == ([], ["r1-0"])
    await opened.close()


@pytest.mark.parametrize("engine", ["qdrant double", "qdrant"])
async def test_space_that_another_process_began_is_found_when_it_is_asked_for(engine: str, tmp_path: Path) -> None:
    async with ENGINES[engine](tmp_path) as opener, AsyncExitStack() as stack:
        mine, theirs = [DenseSpaces(store) for store in (await _opened(opener, stack), await _opened(opener, stack))]
        await write(theirs, ONE, "solar panel", SPACE)
        await write(theirs, TWO, "solar roof", OTHER)
        assert await mine.spaces_of(OTHER.model) == [OTHER]
        assert await found(mine, OTHER) == ["r2-0"]


async def _opened(opener: OpenSpaces, stack: AsyncExitStack) -> EdgeSpaces | QdrantSpaces:
    opened = await opener()
    stack.push_async_callback(opened.close)
    return opened


async def test_index_of_a_version_that_had_one_space_is_the_first_of_several(tmp_path: Path) -> None:
    old = await EdgeIndex.open(tmp_path)
    await old.prepare(SPACE)
    await store(old, ONE, ["solar panel"])
    await old.close()
    opened = await EdgeSpaces.open(tmp_path)
    spaces = DenseSpaces(opened)
    await write(spaces, TWO, "solar roof", OTHER)
    assert spaces.held == [SPACE, OTHER]
    assert await found(spaces, SPACE) == ["r1-0"]
    await opened.close()


async def test_damaged_space_begins_anew_and_the_others_stay(tmp_path: Path) -> None:
    opened = await EdgeSpaces.open(tmp_path)
    spaces = DenseSpaces(opened)
    await write(spaces, ONE, "solar panel", SPACE)
    await write(spaces, TWO, "solar roof", OTHER)
    assert await opened.inspect() is None
    await opened.close()
    for path in (tmp_path / "spaces").rglob("*"):
        if path.is_file() and path.stat().st_size:
            path.write_bytes(os.urandom(path.stat().st_size))
    opened = await EdgeSpaces.open(tmp_path)
    spaces = DenseSpaces(opened)
    if await opened.inspect() is not None:
        await opened.start_anew("damaged")
    assert (await found(spaces, SPACE), await spaces.count(TWO)) == (["r1-0"], 0)
    await write(spaces, TWO, "solar roof", OTHER)
    assert await found(spaces, OTHER) == ["r2-0"]
    await opened.close()
