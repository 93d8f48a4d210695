"""Tools over all that they ask: real ingest, retriever and model server, with the real model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc

from kit.testing.harness import TEST_PRINCIPAL, free_port, open_test_channel, running_service
from services.ingest import app as ingest
from services.ingest.settings import IngestSettings
from services.reranker import app as reranker
from services.reranker.settings import RerankerSettings
from services.retriever import app as retriever
from services.retriever.settings import RetrieverSettings
from services.tools.projects.records import EXAMPLE_FILE
from tests.service.tools.calling import OTHER_TENANT, Tools, running_tools


@pytest.fixture
async def model_server(models_dir: Path) -> AsyncIterator[str]:
    settings = RerankerSettings(grpc_address=f"127.0.0.1:{free_port()}", models_dir=models_dir, reranker_store_bytes=0)
    async with running_service(reranker.run, settings) as address:
        yield address


@asynccontextmanager
async def _all_rooms(nats_url: str, model_server: str, folder: Path) -> AsyncIterator[tuple[Tools, Any]]:
    """Tools, and a stub of ingest."""
    async with AsyncExitStack() as stack:
        common: dict[str, Any] = {"nats_url": nats_url, "reranker_address": model_server}
        search_settings = RetrieverSettings(
            grpc_address=f"127.0.0.1:{free_port()}", data_dir=folder / "search", **common
        )
        search = await stack.enter_async_context(running_service(retriever.run, search_settings))
        common["retriever_address"] = search
        addresses = []
        common["local_subject"] = TEST_PRINCIPAL.subject
        for name, run in (("api", ingest.run_api), ("worker", ingest.run_worker)):
            settings = IngestSettings(grpc_address=f"127.0.0.1:{free_port()}", data_dir=folder / name, **common)
            addresses.append(await stack.enter_async_context(running_service(run, settings)))
        tools = await stack.enter_async_context(running_tools(ingest_address=addresses[0], **common))
        channel = await stack.enter_async_context(open_test_channel(addresses[0]))
        yield tools, ingest_pb2_grpc.IngestServiceStub(channel)


async def _until(
    call: Callable[[], Awaitable[dict[str, Any]]], is_so: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """What comes out once it is so: a busy machine answers later, or does without what takes too long."""
    async with asyncio.timeout(600):
        while not is_so(output := await call()):
            await asyncio.sleep(0.1)
    return output


def _is_all_ready(listed: dict[str, Any]) -> bool:
    return [document["state"] for document in listed["documents"]] == ["ready"]


def _is_by_meaning(found: dict[str, Any]) -> bool:
    """However long the vectors took; whether there was time to rerank as well is left to the machine."""
    return not any(each.startswith("Found by words") for each in found.get("degraded", ()))


async def test_a_note_is_found_by_its_own_tenant_until_it_is_forgotten(
    nats_url: str, model_server: str, tmp_path: Path
) -> None:
    text = "The staging database is restored from the backup every Sunday night."
    question: dict[str, Any] = {"query": "When is the staging database restored?"}
    async with _all_rooms(nats_url, model_server, tmp_path) as (tools, documents):
        kept = await tools.call("rag_index", "run1/call1", text=text, title="Staging")
        await _until(lambda: tools.call("rag_list"), _is_all_ready)

        found = await tools.result("rag_search", **question)
        assert [hit.chunk.text for hit in found.hits] == [text]
        assert found.hits[0].chunk.document_id == kept["document_id"]
        assert (await tools.call("rag_search", principal=OTHER_TENANT, **question))["passages"] == []
        theirs = await tools.call("rag_search", principal=OTHER_TENANT, collection_ids=["notes"], **question)
        assert theirs["passages"] == []

        assert (await tools.call("query_local_kb", **question))["error"] == "NO_KNOWLEDGE_BASE"
        request = ingest_pb2.CreateCollectionRequest(collection_id="knowledge-base")
        await documents.CreateCollection(request, timeout=60)
        assert (await tools.call("query_local_kb", **question))["passages"] == []
        into_kb: dict[str, Any] = {"text": text, "title": "Handbook", "collection_id": "knowledge-base"}
        await tools.call("rag_index", "run1/call2", **into_kb)
        await _until(lambda: tools.call("rag_list", collection_id="knowledge-base"), _is_all_ready)
        [passage] = (await tools.call("query_local_kb", **question))["passages"]
        assert passage["source"]["document"] == "Handbook.md"

        assert (await tools.call("rag_forget", "run1/call3", document="Staging"))["deleted"]
        left = await tools.call("rag_search", collection_ids=["notes"], **question)
        assert left["passages"] == []


async def test_projects_are_found_by_what_they_mean_and_by_words_when_the_model_server_is_away(
    nats_url: str, model_server: str
) -> None:
    query = "Which part turns scanned paper into text?"
    records: dict[str, Any] = {"tools_records_file": EXAMPLE_FILE}
    async with running_tools(nats_url, reranker_address=model_server, **records) as tools:
        found = await _until(lambda: tools.call("search_projects", query=query, top_k=1), _is_by_meaning)
        assert [project["id"] for project in found["projects"]] == ["ingest"]
        other = await _until(lambda: tools.call("search_projects", query="a recipe for apple pie"), _is_by_meaning)
        assert other["projects"] == []
    async with running_tools(nats_url, **records) as tools:
        found = await tools.call("search_projects", query="tantivy")
        assert [project["id"] for project in found["projects"]] == ["retriever"]
        assert found["degraded"][0].startswith("Found by words alone")
    async with running_tools(nats_url) as tools:
        assert (await tools.call("search_projects", query="tantivy"))["error"] == "TOOL_UNAVAILABLE", (
            "no records are named"
        )
