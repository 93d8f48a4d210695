"""Identifiers are found in any spelling, and what a sign tells apart stays apart. tantivy, and a real Elasticsearch server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.retriever.models import LexicalQuery
from services.retriever.ports import LexicalIndex
from tests.contract.retriever_index_contract import KEY, SCOPE, store
from tests.contract.retriever_servers import elasticsearch_over_real_server
from tests.contract.test_lexical_index import tantivy

TEXTS = {
    "billing": "The billing team writes its services in C++ and uses CMake.",
    "desktop": "The desktop team writes its tools in C# with WinForms and .NET.",
    "firmware": "The firmware team writes in C and assembler for the net.",
    "web": "The web team runs node.js, version v3.0.0, on 10.20.30.41:5432.",
    "pad": "PPR-9087 is the brake pad, ISBN 978-3-16-148410-0 its manual.",
    "filter": "352 030 15 97 is the oil filter. The constant MAX_RETRY_COUNT is 7.",
}
FIRST = {
    "who writes in C": "firmware",
    "C++": "billing",
    "team with C#": "desktop",
    ".NET": "desktop",
    "NodeJS": "web",
    "what changed in 3.0.0": "web",
    "10.20.30.41": "web",
    "ppr9087": "pad",
    "9783161484100": "pad",
    "3520301597": "filter",
    "maxRetryCount": "filter",
    "max retry count": "filter",
}


@pytest.fixture(params=["tantivy", "elasticsearch"])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LexicalIndex]:
    async with tantivy(tmp_path) if request.param == "tantivy" else elasticsearch_over_real_server() as made:
        yield made


@pytest.mark.parametrize("languages", [(), ("en",), ("en", "de", "ru")], ids=["unknown", "one", "three"])
async def test_an_identifier_is_found_first(index: LexicalIndex, languages: tuple[str, ...]) -> None:
    await store(index, KEY, list(TEXTS.values()), language="en")
    queries = [LexicalQuery(text, (), languages) for text in FIRST]
    for (query_text, name), hits in zip(FIRST.items(), await index.search(SCOPE, queries, 10), strict=True):
        assert hits, query_text
        assert hits[0].stored.chunk.text == TEXTS[name], query_text
