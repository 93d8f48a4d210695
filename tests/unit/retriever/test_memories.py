"""The index of memories over the engines of a laptop: what a text is found by, and what is left of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from services.retriever.adapters.edge.spaces import EdgeSpaces
from services.retriever.adapters.tantivy.index import TantivyIndex
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.memories.memory_index import Memory, MemoryIndex, Owner
from services.retriever.models import Strategy
from tests.unit.retriever.fakes import FakeModels

ANN = Owner("local", "ann")


@pytest.fixture
async def memories(tmp_path: Path) -> AsyncIterator[MemoryIndex]:
    async with AsyncExitStack() as stack:
        lexical = await TantivyIndex.open(tmp_path / "lexical")
        stack.push_async_callback(lexical.close)
        dense = await EdgeSpaces.open(tmp_path / "dense")
        stack.push_async_callback(dense.close)
        models = FakeModels()
        yield MemoryIndex(DenseSpaces(dense), lexical, models, models, embed_timeout_s=5, engine_timeout_s=5)


def _message(number: int, text: str, context: str = "") -> Memory:
    return Memory(f"thread/{number}", text, "message", "thread", context=context)


async def _by_words(memories: MemoryIndex, query: str) -> list[Memory]:
    return [each.memory for each in (await memories.search(ANN, query, 5, strategy=Strategy.LEXICAL)).found]


async def test_text_is_found_by_what_was_said_before_it_and_returned_without_that(memories: MemoryIndex) -> None:
    await memories.put(ANN, [_message(1, "It is a sloop."), _message(2, "She is red.", "What of the schooner?")])
    assert await _by_words(memories, "schooner") == [_message(2, "She is red.")]
    await memories.put(ANN, [_message(2, "She is red.")], known_only=True)
    assert await _by_words(memories, "schooner") == []
    assert await _by_words(memories, "red") == [_message(2, "She is red.")]


async def test_what_is_not_there_is_not_added_where_only_the_known_is_put(memories: MemoryIndex) -> None:
    await memories.put(ANN, [_message(1, "It is a sloop.")], known_only=True)
    assert await _by_words(memories, "sloop") == []
