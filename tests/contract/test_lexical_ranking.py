"""Both lexical engines rank alike: they are given the same terms and score them by the same formula. tantivy beside a real
Elasticsearch server, on the collection of evals/, in five languages."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from services.retriever.adapters.tantivy.index import TantivyIndex
from services.retriever.indexes.stored_chunk import Candidate
from services.retriever.models import LexicalQuery, RevisionKey
from services.retriever.ports import LexicalIndex
from tests.contract.retriever_index_contract import SCOPE
from tests.contract.retriever_servers import elasticsearch_over_real_server
from tests.unit.retriever.fakes import make_batch, make_chunk, write_key

COLLECTION = Path(__file__).parents[2] / "evals" / "data" / "small"
LIMIT = 20
LANGUAGES_SEARCHED: Sequence[tuple[str, ...]] = ((), ("en",), ("en", "de", "es", "ru", "he"))


def records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (COLLECTION / name).read_text().splitlines()]


async def fill(index: LexicalIndex) -> None:
    by_language = defaultdict(list)
    for document in records("corpus.jsonl"):
        by_language[document["_id"].partition("-")[0]].append(document)
    for language, documents in by_language.items():
        key = RevisionKey("local", f"d-{language}", f"r-{language}")
        chunks = [
            make_chunk(each["text"], number, key=key, language=language, heading_path=(each["title"],))
            for number, each in enumerate(documents)
        ]
        await index.write(write_key(key), make_batch(chunks))
        assert await index.commit(write_key(key)) == len(documents)


@pytest.fixture
async def engines(tmp_path: Path) -> AsyncIterator[tuple[LexicalIndex, LexicalIndex]]:
    async with elasticsearch_over_real_server() as server:
        embedded = await TantivyIndex.open(tmp_path)
        for index in (embedded, server):
            await fill(index)
        yield embedded, server
        await embedded.close()


def scores(hits: Sequence[Candidate]) -> dict[str, float]:
    return {hit.stored.chunk_id: hit.score for hit in hits}


@pytest.mark.parametrize("languages", LANGUAGES_SEARCHED, ids=["unknown", "one", "five"])
async def test_both_engines_give_the_same_chunks_the_same_scores(
    engines: tuple[LexicalIndex, LexicalIndex], languages: tuple[str, ...]
) -> None:
    texts = [query["text"] for query in records("queries.jsonl")]
    texts += [f'"{" ".join(text.split()[:3])}" {text}' for text in texts[::5]]
    queries = [LexicalQuery(text, (), languages) for text in texts]
    embedded, server = [await index.search(SCOPE, queries, LIMIT) for index in engines]
    assert sum(map(len, embedded)) > len(queries)
    for text, ours, theirs in zip(texts, embedded, server, strict=True):
        assert [hit.score for hit in ours] == pytest.approx([hit.score for hit in theirs], rel=1e-4), text
        lowest = ours[-1].score if len(ours) == LIMIT else 0.0  # chunks that tie for the last place may differ
        expected = {chunk_id: score for chunk_id, score in scores(ours).items() if score > lowest}
        assert expected.keys() <= scores(theirs).keys(), text
        assert {chunk_id: scores(theirs)[chunk_id] for chunk_id in expected} == pytest.approx(expected, rel=1e-4), text
