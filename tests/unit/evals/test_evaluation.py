"""An evaluation against the API in memory: documents go in once, queries come out ranked by document, and trouble is said."""

import asyncio
from pathlib import Path

import pytest

from evals.datasets.files import write_files
from evals.datasets.models import Document, Mode, Query, TestCollection
from evals.errors import IndexingFailed, SearchFailed
from evals.retrieval import indexing
from evals.retrieval.evaluation import Evaluation, Plan, evaluate
from evals.retrieval.indexing import index
from evals.retrieval.modes import standard_modes
from evals.retrieval.scoring import facets
from evals.retrieval.searching import MOST_HITS, Asker
from tests.unit.evals.fake_api import FakeApi

DOCUMENTS = [
    Document("a/1", "Pump", "valve and oil"),
    Document("b", "Swifts", "nest in May"),
    Document("c", "", "oil lamp"),
]
QUERIES = [Query("q1", "pump oil", {"category": "paraphrase"}), Query("q2", "swifts in May", {"category": "date"})]
COLLECTION = TestCollection("tiny", DOCUMENTS, QUERIES, {"q1": {"a/1": 1}, "q2": {"b": 1, "c": 1}}, "made up")


def said(error: BaseException) -> str:
    return said(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else str(error)


async def run(api: FakeApi, modes: list[Mode], *, deep: bool = True) -> Evaluation:
    plan = Plan(COLLECTION, modes, top_k=5, file_format="md", deep=deep)
    async with api.gateway() as gateway:
        return await evaluate(gateway, plan, "eval-tiny", lambda _: None)


async def test_documents_stand_where_their_best_passage_stands() -> None:
    evaluation = await run(FakeApi(), [Mode("default")])
    (result,) = evaluation.results
    assert result.run["q1"].document_ids == ["a/1", "c"]
    (scores,) = evaluation.scores
    assert scores.mean("hit@1") == 1.0
    assert scores.mean("recall@100") == 0.75
    assert evaluation.indexed.chunks == 6


async def test_each_mode_sends_its_options_and_only_those() -> None:
    api = FakeApi()
    await run(api, standard_modes(), deep=False)
    sent = [
        {key: each[key] for key in each if key not in {"query", "collection_ids", "top_k"}} for each in api.searches
    ]
    assert {tuple(sorted(each.items())) for each in sent} == {
        tuple(sorted(mode.options.items())) for mode in standard_modes()
    }
    assert {each["top_k"] for each in api.searches} == {5}


async def test_second_pass_asks_for_all_hits_but_not_in_reranked_modes() -> None:
    api = FakeApi()
    evaluation = await run(api, [Mode("default"), Mode("rrf + rerank", {"rerank": "on"})])
    deep = [each for each in api.searches if each["top_k"] == MOST_HITS]
    assert [each.get("rerank") for each in deep] == [None, None]
    assert evaluation.scores[1].mean("recall@100") is None


async def test_degraded_answers_are_counted() -> None:
    evaluation = await run(FakeApi(degraded=True), [Mode("default")], deep=False)
    assert evaluation.scores[0].degraded == len(QUERIES)


async def test_refused_option_names_the_mode_and_the_query() -> None:
    async with FakeApi(refuses=frozenset({"wight"})).gateway() as gateway:
        with pytest.raises(SearchFailed, match=r"mode 'typo', query q1: .*unknown option wight"):
            await Asker(gateway, "eval-tiny").ask(QUERIES[0], Mode("typo", {"wight": 1}), 5)


async def test_documents_that_are_there_are_not_read_again(tmp_path: Path) -> None:
    api = FakeApi()
    files = write_files(DOCUMENTS, tmp_path, "txt")
    async with api.gateway() as gateway:
        first = await index(gateway, "eval-tiny", files)
        changes = {name: document["updated_at"] for name, document in api.documents.items()}
        assert (await index(gateway, "eval-tiny", files)).document_ids == first.document_ids
    assert {name: document["updated_at"] for name, document in api.documents.items()} == changes


async def test_broken_event_stream_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_RECONNECT_DELAY_S", 0.0)
    async with FakeApi(stream_breaks_after=1).gateway() as gateway, asyncio.timeout(60):
        indexed = await index(gateway, "eval-tiny", write_files(DOCUMENTS, tmp_path, "md"))
    assert len(indexed.document_ids) == len(DOCUMENTS)


async def test_failed_document_ends_indexing_with_its_reason(tmp_path: Path) -> None:
    async with FakeApi(failing=frozenset({"b.txt"})).gateway() as gateway:
        with pytest.raises((IndexingFailed, ExceptionGroup)) as caught:
            await index(gateway, "eval-tiny", write_files(DOCUMENTS, tmp_path, "txt"))
    assert said(caught.value) == "1 documents failed, the first: b.txt: EMPTY, there is no text in it"


async def test_standstill_is_said_instead_of_waited_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "STALLED_AFTER_S", 0.05)
    async with FakeApi(stuck=frozenset({"b.txt"})).gateway() as gateway:
        with pytest.raises((IndexingFailed, ExceptionGroup)) as caught:
            await index(gateway, "eval-tiny", write_files(DOCUMENTS, tmp_path, "txt"))
    assert "2 of 3 documents are ready and nothing has moved" in said(caught.value)


def test_facets_group_queries_by_value() -> None:
    assert facets(QUERIES) == {"category": {"paraphrase": frozenset({"q1"}), "date": frozenset({"q2"})}}
