"""Searching documents and the knowledge base for one query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from services.tools.documents import CollectionMissing, CollectionNotAllowed
from services.tools.errors import ToolError
from services.tools.models import ToolOutput
from services.tools.passages.retrieval import Degradation
from services.tools.toolbox.searching.query_local_kb import query_local_kb
from services.tools.toolbox.searching.rag_search import rag_search
from tests.unit.tools.document_fakes import FakeDocuments, FakeRetriever, tool_context

KB = "knowledge-base"


@pytest.fixture
def retriever() -> FakeRetriever:
    retriever = FakeRetriever()
    retriever.add("bread of the notes", "notes")
    retriever.add("bread of the reports", "reports")
    retriever.add("bread of the base", KB)
    return retriever


def _context(retriever: FakeRetriever, collections: Sequence[str] = (), **more: Any) -> Any:
    documents = FakeDocuments(collections={"default", "notes", "reports", *collections})
    return tool_context(documents=documents, retriever=retriever, **more)


def _texts(output: ToolOutput) -> list[str]:
    assert [passage.hit.chunk.text for passage in output.passages] == [
        each["source"]["text"] for each in output.content["passages"]
    ]
    return [each["source"]["text"] for each in output.content["passages"]]


async def test_notes_and_all_that_may_be_read_are_searched(retriever: FakeRetriever) -> None:
    assert _texts(await rag_search("bread", _context(retriever))) == ["bread of the notes", "bread of the reports"]
    assert list(retriever.queries[-1].collection_ids) == ["default", "notes", "reports"]
    assert _texts(await rag_search("bread", _context(retriever), top_k=1)) == ["bread of the notes"]
    bound = _context(retriever, collection_ids=["reports"])
    assert _texts(await rag_search("bread", bound)) == ["bread of the reports"]


async def test_collections_that_are_asked_for_must_be_readable(retriever: FakeRetriever) -> None:
    asked = await rag_search("bread", _context(retriever), collection_ids=["reports"])
    assert _texts(asked) == ["bread of the reports"]
    bound = _context(retriever, collection_ids=["reports"])
    with pytest.raises(CollectionNotAllowed, match="it may use: reports"):
        await rag_search("bread", bound, collection_ids=["notes"])
    with pytest.raises(CollectionMissing, match="there are: default, notes, reports"):
        await rag_search("bread", _context(retriever), collection_ids=["nowhere"])


async def test_what_is_found_and_what_was_done_without_is_said(retriever: FakeRetriever) -> None:
    retriever.degraded = (Degradation("lexical", "ENGINE_DOWN", "The word index does not answer."),)
    output = await rag_search("bread", _context(retriever))
    assert output.summary == "2 passages from 2 documents found for “bread”. The word index does not answer."
    assert output.content["degraded"][0]["reason"] == "ENGINE_DOWN"
    nothing = await rag_search("tax", _context(retriever))
    assert nothing.content["passages"] == []
    assert "rag_list" in nothing.content["message"]


@pytest.mark.parametrize("tool", [rag_search, query_local_kb])
async def test_an_empty_query_is_refused(tool: Any, retriever: FakeRetriever) -> None:
    with pytest.raises(ToolError, match="say what to look for"):
        await tool(" ", _context(retriever, [KB]))


async def test_the_knowledge_base_is_one_collection(retriever: FakeRetriever) -> None:
    output = await query_local_kb("bread", _context(retriever, [KB]))
    assert _texts(output) == ["bread of the base"]
    assert output.summary == "1 passage from 1 document found for “bread” in the knowledge base."


async def test_where_there_is_no_knowledge_base_that_is_said(retriever: FakeRetriever) -> None:
    with pytest.raises(ToolError, match="there is no knowledge base here") as failure:
        await query_local_kb("bread", _context(retriever))
    assert failure.value.reason == "NO_KNOWLEDGE_BASE"
    with pytest.raises(CollectionNotAllowed):
        await query_local_kb("bread", _context(retriever, [KB], collection_ids=["reports"]))
    assert not retriever.queries
