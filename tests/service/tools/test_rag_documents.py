"""Tools that keep, list and delete documents, over a real tools service and a real ingest service."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from groundwork.ingest.v1 import ingest_pb2

from kit.jetstream import KeyValue, connect
from tests.service.ingest.conftest import TIMEOUT_S, System
from tests.service.ingest.source_user import source_user
from tests.service.tools.calling import OTHER_TENANT, Tools, running_tools


@pytest.fixture
async def tools(system: System, nats_url: str) -> AsyncIterator[Tools]:
    async with running_tools(nats_url, ingest_address=system.api_address) as tools:
        yield tools


async def test_a_kept_text_is_searchable_listed_and_forgotten(system: System, tools: Tools) -> None:
    async with system.worker():
        kept = await tools.call("rag_index", "run1/call1", text="The API is at /v2/users.", title="API notes")
    assert (kept["name"], kept["state"], kept["searchable"], kept["chunks"]) == ("API notes.md", "ready", True, 1)
    assert [chunk.text for chunk in system.retriever.searchable(kept["document_id"])] == ["The API is at /v2/users."]
    listed = await tools.call("rag_list")
    assert listed["collections"] == ["default", "notes"]
    assert [(each["document_id"], each["state"], each["chunks"]) for each in listed["documents"]] == [
        (kept["document_id"], "ready", 1)
    ]
    assert (await tools.call("rag_forget", "run1/call2", document="API notes"))["deleted"]
    assert not system.retriever.searchable(kept["document_id"])
    assert (await tools.call("rag_list"))["documents"] == []


async def test_a_text_kept_again_by_the_same_name_replaces_it_and_by_the_same_call_changes_nothing(
    system: System, tools: Tools, nats_url: str
) -> None:
    async with system.worker():
        first = await tools.call("rag_index", "run1/call1", text="Old.", title="Plan")
        second = await tools.call("rag_index", "run1/call2", text="New.", title="Plan")
        assert first["document_id"] == second["document_id"]
        # Asked again with nothing remembered of the call, as after a crash between the upload and its note.
        async with running_tools(await _without_call_notes(nats_url), ingest_address=system.api_address) as fresh:
            again = await fresh.call("rag_index", "run1/call1", text="Old.", title="Plan")
    assert again["document_id"] == first["document_id"]
    assert [chunk.text for chunk in system.retriever.searchable(first["document_id"])] == ["New."]


async def _without_call_notes(nats_url: str) -> str:
    async with connect(nats_url, name="test") as nats:
        bucket = await KeyValue.open(nats, "TOOL_CALLS")
        for key in [entry.key async for entry in bucket.entries(">")]:
            await bucket.purge(key)
    return nats_url


async def test_nobody_reaches_the_documents_of_another_tenant(system: System, tools: Tools) -> None:
    async with system.worker():
        kept = await tools.call("rag_index", "run1/call1", text="A secret.", title="Secret")
        theirs = await tools.call("rag_index", "run1/call1", principal=OTHER_TENANT, text="Theirs.", title="Secret")
    assert theirs["document_id"] != kept["document_id"]
    for number, named in enumerate([kept["document_id"], "Secret"]):
        await tools.call("rag_forget", f"run2/call{number}", principal=OTHER_TENANT, document=named)
    listed = await tools.call("rag_list", principal=OTHER_TENANT)
    assert listed["documents"] == []  # their own was deleted by its name, and nothing else
    assert [each["document_id"] for each in (await tools.call("rag_list"))["documents"]] == [kept["document_id"]]


async def test_a_file_of_a_source_is_indexed_by_its_path(system: System, tools: Tools, tmp_path: Path) -> None:
    folder = tmp_path / "watched"
    folder.mkdir()
    (tmp_path / "watched-folders.json").write_text(json.dumps({"local/contracts": str(folder)}))
    (folder / "plan.md").write_text("The tower is to be painted green.")
    async with source_user(system) as user:
        await user.make(kind="folder", settings={"folder": "contracts"})
        await user.until(lambda it: it.file_count == 1 and not it.pending_count)
        kept = await tools.call("rag_index", "run1/call1", source_path="contracts/plan.md")
        assert (kept["name"], kept["state"], kept["chunks"]) == ("contracts/plan.md", "ready", 1)
        (folder / "new.md").write_text("The bridge is of stone.")
        new = await tools.call("rag_index", "run1/call2", source_path="contracts/new.md")
        assert (new["name"], new["searchable"]) == ("contracts/new.md", True)
        assert set(await user.documents()) == {"plan.md", "new.md"}
        unknown = await tools.call("rag_index", "run1/call3", source_path="contracts/news.md")
        assert unknown["error"] == "SOURCE_FILE_NOT_FOUND"
        assert "Like it are: contracts/new.md" in unknown["message"]
        theirs = await tools.call("rag_index", "run1/call4", principal=OTHER_TENANT, source_path="contracts/plan.md")
        assert theirs["error"] == "SOURCE_NOT_FOUND"


async def test_a_bound_call_is_refused_what_lies_outside(system: System, tools: Tools) -> None:
    document = await system.upload(b"Some text.", "law.txt")
    bound: dict[str, Any] = {"collection_ids": ["notes"]}
    refused = await tools.call("rag_forget", "run1/call1", document=document.document_id, **bound)
    assert refused["error"] == "COLLECTION_NOT_ALLOWED"
    request = ingest_pb2.GetDocumentRequest(document_id=document.document_id)
    assert (await system.stub.GetDocument(request, timeout=TIMEOUT_S)).document.name == "law.txt"


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("rag_index", {"text": "x", "collection_id": "reports"}, "COLLECTION_NOT_FOUND"),
        ("rag_index", {"text": "x", "collection_id": "Not an id"}, "INVALID_ARGUMENTS"),
        ("rag_list", {"collection_id": "reports"}, "COLLECTION_NOT_FOUND"),
        ("rag_list", {"collection_id": "default", "page_token": "nonsense"}, "BAD_PAGE_TOKEN"),
        ("rag_forget", {"document": "x", "collection_id": "reports"}, "COLLECTION_NOT_FOUND"),
    ],
)
async def test_what_the_store_of_documents_refuses_is_said(
    tools: Tools, name: str, arguments: dict[str, Any], reason: str
) -> None:
    refused = await tools.call(name, "run1/call1", **arguments)
    assert refused.get("error") == reason, refused
    assert refused["message"]


async def test_a_store_of_documents_that_is_away_is_said_in_plain_words(nats_url: str) -> None:
    async with running_tools(nats_url) as tools:
        refused = await tools.call("rag_index", "run1/call1", text="A note.")
        assert refused["error"] == "SERVICE_UNAVAILABLE"
        assert "try again in a minute" in refused["message"]
        assert (await tools.call("rag_list"))["error"] == "SERVICE_UNAVAILABLE"
