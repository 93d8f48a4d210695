"""A collection ranks the same whatever else the index holds: words are counted in the collections that are searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.retriever.models import LexicalQuery, RevisionKey, SearchScope
from services.retriever.ports import LexicalIndex
from tests.contract.retriever_index_contract import store
from tests.contract.test_lexical_index import ENGINES

TEXTS = [
    "the pump was replaced in spring",
    *(f"the valve of line {n} was replaced" for n in range(9)),
    "pump and valve were painted",
]
QUERIES = ["pump", "valve pump", "pump or valves of line 3", '"pump and valve"', "was it painted or replaced"]
HERE = SearchScope("local", ("here",))


async def ranked(index: LexicalIndex) -> list[list[tuple[str, float]]]:
    found = await index.search(HERE, [LexicalQuery(text, (), ("en",)) for text in QUERIES], 20)
    return [[(hit.stored.chunk_id, hit.score) for hit in hits] for hits in found]


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "fake"])
async def test_other_collections_change_no_rank(tmp_path: Path, engine: str) -> None:
    """The others have the words that are rare here, and are shorter."""
    async with ENGINES[engine](tmp_path) as index:
        await store(index, RevisionKey("local", "d1", "r1"), TEXTS, collection_id="here", language="en")
        alone = await ranked(index)
        others = [f"pump {n} painted" for n in range(200)]
        await store(index, RevisionKey("local", "d2", "r2"), others, collection_id="there", language="en")
        await store(index, RevisionKey("rival", "d3", "r3"), others, collection_id="here", language="en")
        beside = await ranked(index)
    for before, now in zip(alone, beside, strict=True):
        assert [chunk_id for chunk_id, _ in now] == [chunk_id for chunk_id, _ in before]
        assert [score for _, score in now] == pytest.approx([score for _, score in before])
