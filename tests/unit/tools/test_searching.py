"""search, fetch_docs and verify: what may be read, what is told, and how much of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kit.llm import estimate_tokens
from services.tools import toolbox
from services.tools.documents import CollectionMissing, CollectionNotAllowed
from services.tools.errors import InvalidArguments, ToolError
from services.tools.models import Effect, ToolOutput
from services.tools.passages.given import PassagesNotFound
from services.tools.passages.retrieval import Degradation, Strategy
from services.tools.passages.scope import TooManyCollections
from services.tools.passages.whole import DocumentNotFound
from services.tools.sources.discovery import discover
from services.tools.toolbox.documents.fetch_docs import fetch_docs
from services.tools.toolbox.searching.search import SCHEMA, search
from tests.unit.tools.document_fakes import FakeDocuments, tool_context
from tests.unit.tools.search_fakes import FakeRetriever

LONG = "The notice period is six weeks. " * 400
DENSE_DOWN = Degradation("dense", "EMBEDDER_UNAVAILABLE", "Only words were searched for.")


@pytest.fixture
def retriever() -> FakeRetriever:
    retriever = FakeRetriever()
    retriever.add("d1", "The notice period is six weeks.", "Probation ends after six months.", "Leave is 28 days.")
    retriever.add(
        "d2", "Our notice board hangs in the hall.", collection_id="hall", heading_path=["House", "Hall"], page=3
    )
    return retriever


def _context(retriever: FakeRetriever, *collection_ids: str) -> Any:
    documents = FakeDocuments(collections={"default", "hall"})
    return tool_context(retriever=retriever, documents=documents, collection_ids=collection_ids)


def _ids(output: ToolOutput, key: str = "hits") -> list[str]:
    return [passage["chunk_id"] for passage in output.content[key]]


async def test_hits_name_their_place_and_come_with_what_may_be_cited(retriever: FakeRetriever) -> None:
    output = await search(_context(retriever), ["notice board"], k=1)
    [hit] = output.content["hits"]
    assert hit | {"score": 0} == {
        "chunk_id": "d2-0",
        "source": {"document": "d2.md", "page": 3, "text": "Our notice board hangs in the hall."},
        "document_id": "d2",
        "heading_path": ["House", "Hall"],
        "score": 0,
    }
    assert output.content["strategy"] == "hybrid"
    assert output.summary == "1 passage from 1 document for “notice board”."
    assert [(each.chunk_id, each.hit.chunk.text) for each in output.passages] == [("d2-0", hit["source"]["text"])]


async def test_all_collections_of_the_tenant_are_searched_unless_the_call_is_bound(retriever: FakeRetriever) -> None:
    assert _ids(await search(_context(retriever), ["notice period"])) == ["d1-0", "d2-0"]
    assert _ids(await search(_context(retriever, "hall"), ["notice period"])) == ["d2-0"]
    assert _ids(await search(_context(retriever), ["notice period"], collection_ids=["default"])) == ["d1-0"]


async def test_a_bound_call_cannot_search_another_collection_and_an_unknown_one_is_named(
    retriever: FakeRetriever,
) -> None:
    with pytest.raises(CollectionNotAllowed, match="hall"):
        await search(_context(retriever, "hall"), ["notice"], collection_ids=["hall", "default"])
    with pytest.raises(CollectionMissing, match=r"'attic'; there are: default, hall"):
        await search(_context(retriever), ["notice"], collection_ids=["attic"])
    assert retriever.queries == []


async def test_more_collections_than_fit_into_one_search_are_searched_in_parts(retriever: FakeRetriever) -> None:
    names = [f"c{number:03}" for number in range(100)]
    documents = FakeDocuments(collections={*names, "default", "hall"})
    context = tool_context(retriever=retriever, documents=documents)
    output = await search(context, ["notice period"])
    assert [len(query.collection_ids) for query in retriever.queries] == [64, 38]
    assert sorted(_ids(output)) == ["d1-0", "d2-0"]
    documents.collections |= {f"d{number:03}" for number in range(200)}
    with pytest.raises(TooManyCollections, match="name up to 256"):
        await search(context, ["notice period"])


async def test_filters_become_conditions_of_the_search(retriever: FakeRetriever) -> None:
    filters = {
        "date_from": "2024-01-31",
        "date_to": "2024-12-31",
        "channel": ["@news"],
        "author": ["Ann"],
        "metadata": {"kind": ["post"]},
        "document_ids": ["d1"],
    }
    await search(_context(retriever), ["a", "b"], filters, 3, "lexical", ["six weeks"])
    [query] = retriever.queries
    assert (query.queries, query.top_k, query.strategy) == (["a", "b"], 3, Strategy.LEXICAL)
    assert query.metadata == {"channel": ["@news", "news"], "author": ["Ann"], "kind": ["post"]}
    assert (query.document_ids, query.must_phrases) == (("d1",), ["six weeks"])
    assert query.date_from == datetime(2024, 1, 31, tzinfo=UTC)
    assert query.date_to == datetime(2025, 1, 1, tzinfo=UTC)  # the whole last day


@pytest.mark.parametrize(
    ("given", "moment"),
    [
        ("2024-12-31T18:00:00Z", datetime(2024, 12, 31, 18, tzinfo=UTC)),
        ("2024-12-31T18:00:00+02:00", datetime(2024, 12, 31, 16, tzinfo=UTC)),
        ("2024-12-31T18:00", datetime(2024, 12, 31, 18, tzinfo=UTC)),
    ],
)
async def test_a_time_is_taken_as_it_is(retriever: FakeRetriever, given: str, moment: datetime) -> None:
    await search(_context(retriever), ["a"], {"date_to": given})
    assert retriever.queries[0].date_to == moment


async def test_a_side_without_a_limit_may_be_null(retriever: FakeRetriever) -> None:
    filters = {"date_from": "2024-01-01T00:00:00+01:00", "date_to": None}
    Draft202012Validator(SCHEMA["function"]["parameters"]).validate({"queries": ["a"], "filters": filters})
    await search(_context(retriever), ["a"], filters)
    assert retriever.queries[0].date_from == datetime(2023, 12, 31, 23, tzinfo=UTC)
    assert retriever.queries[0].date_to is None


@pytest.mark.parametrize("date", ["last month", "31.12.2024", "9999-12-31", "2024-13-01"])
async def test_a_date_that_is_none_is_refused_with_the_way_to_one(retriever: FakeRetriever, date: str) -> None:
    with pytest.raises(InvalidArguments, match="temporal_normalize"):
        await search(_context(retriever), ["a"], {"date_to": date})


async def test_nothing_found_is_said_with_what_to_do(retriever: FakeRetriever) -> None:
    output = await search(_context(retriever), ["zebra"])
    assert output.content["hits"] == []
    assert "other words" in output.content["note"]
    assert output.summary == "Nothing found for “zebra”."


async def test_what_the_search_had_to_do_without_is_told_to_the_model_and_the_person(retriever: FakeRetriever) -> None:
    retriever.degraded = [DENSE_DOWN]
    output = await search(_context(retriever), ["notice"])
    assert output.content["degraded"] == [
        {"part": "dense", "reason": "EMBEDDER_UNAVAILABLE", "message": "Only words were searched for."}
    ]
    assert output.summary.endswith("Only words were searched for.")


async def test_long_passages_are_cut_alike_and_cited_as_they_were_shown(retriever: FakeRetriever) -> None:
    retriever.add("d3", LONG, LONG.replace("six", "ten"), "The notice period is short.")
    context = _context(retriever)
    output = await search(context, ["the notice period is"])
    texts = {hit["chunk_id"]: hit["source"]["text"] for hit in output.content["hits"]}
    assert sum(map(estimate_tokens, texts.values())) <= context.settings.tools_text_tokens
    assert texts["d3-2"] == "The notice period is short."
    assert texts["d3-0"].endswith("weeks.")
    assert len(texts["d3-0"]) == len(texts["d3-1"]) > 1000
    assert {hit["chunk_id"] for hit in output.content["hits"] if hit.get("is_cut")} == {"d3-0", "d3-1"}
    assert {each.chunk_id: each.hit.chunk.text for each in output.passages} == texts
    assert retriever.documents["d3"][0].hit.chunk.text == LONG  # the message that came is left as it was


async def test_names_are_cut_as_well(retriever: FakeRetriever) -> None:
    retriever.add(
        "d3", "Zebra.", metadata={"author": "A" * 9000}, heading_path=["H" * 9000] * 9, document_name="D" * 9000
    )
    [hit] = (await search(_context(retriever), ["zebra"])).content["hits"]
    assert len(str(hit)) < 2000
    assert hit["author"] == "A" * 199 + "…"


async def test_a_search_that_does_not_answer_is_an_error_for_the_model(retriever: FakeRetriever) -> None:
    retriever.error = ToolError("the search does not answer now", reason="SEARCH_UNAVAILABLE")
    with pytest.raises(ToolError, match="does not answer") as caught:
        await search(_context(retriever), ["notice"])
    assert caught.value.reason == "SEARCH_UNAVAILABLE"


async def test_passages_are_read_with_their_neighbours_in_reading_order(retriever: FakeRetriever) -> None:
    retriever.add("d3", *[f"Passage {number}." for number in range(9)])
    output = await fetch_docs(_context(retriever), ["d3-5", "d3-2", "d2-0"], window=1)
    assert _ids(output, "passages") == [*(f"d3-{number}" for number in (1, 2, 3, 4, 5, 6)), "d2-0"]
    assert [each.chunk_id for each in output.passages] == _ids(output, "passages")
    assert output.summary == "7 passages from 2 documents read."


async def test_what_was_asked_for_comes_before_neighbours_and_what_is_left_out_is_named(
    retriever: FakeRetriever,
) -> None:
    third = LONG[: len(LONG) // 7]  # of what an answer may hold
    retriever.add("d3", *[third] * 9)
    output = await fetch_docs(_context(retriever), ["d3-1", "d3-8"], window=1)
    assert {"d3-1", "d3-8"} < set(_ids(output, "passages"))
    output = await fetch_docs(_context(retriever), [f"d3-{number}" for number in range(9)], window=1)
    shown = _ids(output, "passages")
    assert 0 < len(shown) < 9
    assert [*shown, *output.content["left_out"]] == [f"d3-{number}" for number in range(9)]


async def test_short_passages_are_bounded_in_number(retriever: FakeRetriever) -> None:
    ids = retriever.add("d3", *["Short."] * 300)
    output = await fetch_docs(_context(retriever), ids[5:300:6], window=5)
    assert len(output.passages) == 50
    assert set(_ids(output, "passages")) >= set(ids[5:300:6])


async def test_a_passage_longer_than_an_answer_may_be_is_cut(retriever: FakeRetriever) -> None:
    retriever.add("d3", LONG)
    output = await fetch_docs(_context(retriever), ["d3-0"])
    [passage] = output.content["passages"]
    assert passage["is_cut"]
    assert 1500 < estimate_tokens(passage["source"]["text"]) <= 2000


async def test_unknown_invented_and_foreign_ids_are_named_and_never_read(retriever: FakeRetriever) -> None:
    output = await fetch_docs(_context(retriever, "hall"), ["d2-0", "d1-0", "gone", "not an id!"])
    assert _ids(output, "passages") == ["d2-0"]
    assert output.content["not_found"] == ["d1-0", "gone", "not an id!"]
    assert output.summary == "1 passage from 1 document read. 3 of the ids are unknown or gone."
    assert all("not an id!" not in ids for ids in retriever.fetched)
    with pytest.raises(PassagesNotFound, match="search again"):
        await fetch_docs(_context(retriever, "hall"), ["d1-0", "not an id!"])


async def test_a_document_is_read_in_parts(retriever: FakeRetriever) -> None:
    retriever.add("d3", *[LONG[:2000]] * 10)
    first = await fetch_docs(_context(retriever), document_id="d3")
    assert first.content["document_passages"] == 10
    start = first.content["next_start"]
    assert _ids(first, "passages") == [f"d3-{number}" for number in range(start)]
    second = await fetch_docs(_context(retriever), document_id="d3", start=start)
    assert _ids(second, "passages")[0] == f"d3-{start}"
    last = await fetch_docs(_context(retriever), document_id="d3", start=9)
    assert "next_start" not in last.content
    beyond = await fetch_docs(_context(retriever), document_id="d3", start=10)
    assert "has 10 passages" in beyond.content["note"]


@pytest.mark.parametrize("start", [0, 99])
@pytest.mark.parametrize("document_id", ["d1", "gone", "../d1"])
async def test_a_document_that_is_gone_or_of_another_collection_cannot_be_told_apart(
    retriever: FakeRetriever, document_id: str, start: int
) -> None:
    with pytest.raises(DocumentNotFound, match="may have been deleted"):
        await fetch_docs(_context(retriever, "hall"), document_id=document_id, start=start)


async def test_passages_of_another_document_than_was_named_are_not_read(retriever: FakeRetriever) -> None:
    output = await fetch_docs(_context(retriever), ["d1-0", "d2-0"], document_id="d2")
    assert (_ids(output, "passages"), output.content["not_found"]) == (["d2-0"], ["d1-0"])


async def test_nothing_to_fetch_is_refused(retriever: FakeRetriever) -> None:
    with pytest.raises(InvalidArguments, match="chunk_ids or a document_id"):
        await fetch_docs(_context(retriever))


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("search", False),
        ("fetch_docs", False),
        ("verify", False),
        ("rerank", True),
        ("compose_context", True),
        ("dedup_diversify", True),
    ],
)
def test_tools_that_hold_text_are_remembered_nowhere_and_may_be_repeated(name: str, waits: bool) -> None:
    tool = discover(toolbox)[name]
    assert not tool.cacheable
    assert tool.wants_context
    assert tool.policy.effect is Effect.NONE
    assert tool.policy.parallel_safe
    assert not tool.policy.needs_approval
    assert 4.0 <= tool.policy.timeout_s <= 5.0
    assert tool.policy.requires_fresh_input is waits


def test_a_search_for_more_of_the_same_is_the_same_search() -> None:
    tool = discover(toolbox)["search"]
    assert set(tool.parameters["properties"]) - set(tool.policy.key_arguments) == {"k", "strategy"}
