"""Tools that search, over a real tools service, a real retriever with real engines, and a model server that goes by words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2
from groundwork.tools.v1 import tools_pb2 as pb
from groundwork.tools.v1 import tools_pb2_grpc

from kit.access.principal import Principal
from kit.jetstream import KeyValue, connect
from kit.shared_state import COLLECTIONS
from kit.testing.harness import TEST_PRINCIPAL, free_port, open_test_channel, running_service, running_servicer
from services.tools.app import run
from services.tools.settings import ToolsSettings
from tests.service.retriever.conftest import FakeModelServer, Retriever, index_batch, index_header, retriever_as

OTHER_TENANT = Principal("umbrella", "tester")
NOTICE = "The notice period is six weeks for all employees."


class _Collections(ingest_pb2_grpc.IngestServiceServicer):
    """IngestService as far as these tools ask it."""

    async def ListCollections(
        self, request: ingest_pb2.ListCollectionsRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> ingest_pb2.ListCollectionsResponse:
        ids = ("default", "hall")
        return ingest_pb2.ListCollectionsResponse(
            collections=[ingest_pb2.Collection(collection_id=each) for each in ids]
        )


class Tools:
    """Calls of tools in the name of somebody."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def call(
        self,
        name: str,
        *,
        principal: Principal = TEST_PRINCIPAL,
        bound_to: Sequence[str] = (),
        **arguments: Any,
    ) -> pb.ToolResult:
        request = pb.CallToolRequest(name=name, collection_ids=bound_to)
        request.arguments.update(arguments)
        async with open_test_channel(self._address, principal) as channel:
            stub: Any = tools_pb2_grpc.ToolsServiceStub(channel)
            events = [event async for event in stub.CallTool(request, timeout=60)]
        result: pb.ToolResult = events[-1].result
        return result

    async def told(self, name: str, **arguments: Any) -> dict[str, Any]:
        """What the model is told of a call that works."""
        result = await self.call(name, **arguments)
        assert result.ok, result.error_message
        output: dict[str, Any] = json_format.MessageToDict(result.output)
        return output

    async def refusal(self, name: str, **arguments: Any) -> str:
        """The reason of a call that does not work."""
        result = await self.call(name, **arguments)
        assert not result.ok
        assert result.error_message
        return result.error_reason


@asynccontextmanager
async def _tools(nats_url: str, **addresses: str) -> AsyncIterator[Tools]:
    settings = ToolsSettings(
        grpc_address=f"127.0.0.1:{free_port()}", nats_url=nats_url, connection_patience_s=0.1, **addresses
    )
    async with running_service(run, settings) as address:
        yield Tools(address)


@pytest.fixture
async def tools(nats_url: str, address: str, models_address: str) -> AsyncIterator[Tools]:
    add = ingest_pb2_grpc.add_IngestServiceServicer_to_server
    async with connect(nats_url, name="test") as nats:
        # The retriever goes by the records that ingestion keeps; one without an owner is everybody's.
        await (await KeyValue.open(nats, COLLECTIONS.name)).put(f"{TEST_PRINCIPAL.tenant_id}.hall", b"{}")
    async with (
        running_servicer(add, _Collections()) as ingest_address,
        _tools(
            nats_url, retriever_address=address, reranker_address=models_address, ingest_address=ingest_address
        ) as tools,
    ):
        yield tools


async def _publish(
    retriever: Retriever, document_id: str, *texts: str, collection_id: str = "default", **fields: Any
) -> list[str]:
    """The ids of the chunks."""
    header = index_header(document_id, f"{document_id}-r1")
    header.collection_id = collection_id
    header.first_batch.CopyFrom(index_batch(document_id, f"{document_id}-r1", texts, **fields))
    header.activate.CopyFrom(retriever_pb2.Activation(revision_number=1, expected_chunk_count=len(texts)))
    request = retriever_pb2.IndexChunksRequest(header=header)
    await retriever.stub.IndexChunks(iter([request]), timeout=60)
    return [chunk.chunk_id for chunk in header.first_batch.chunks]


def _ids(told: Mapping[str, Any], key: str = "hits") -> list[str]:
    return [passage["chunk_id"] for passage in told[key]]


async def test_a_question_is_searched_read_reranked_composed_and_verified(tools: Tools, local: Retriever) -> None:
    rules = await _publish(local, "rules", NOTICE, "During probation it is two weeks.", "Leave is 28 days.", page=4)
    await _publish(local, "house", "The notice board hangs in the hall.", collection_id="hall")
    result = await tools.call("search", queries=["notice period"], k=2)
    assert result.summary == "2 passages from 2 documents for “notice period”."
    assert [(hit.chunk.chunk_id, hit.chunk.text, hit.chunk.page) for hit in result.hits][:1] == [(rules[0], NOTICE, 4)]
    found = _ids(json_format.MessageToDict(result.output))
    assert set(found) == {rules[0], "house-r1-0"}

    fetched = await tools.told("fetch_docs", chunk_ids=[rules[0]], window=1)
    assert _ids(fetched, "passages") == rules[:2]
    assert _ids(await tools.told("fetch_docs", document_id="rules", start=1), "passages") == rules[1:]
    reranked = await tools.told("rerank", query="notice period", chunk_ids=[*found, rules[1]], top_n=2)
    assert len(_ids(reranked)) == 2
    diverse = await tools.told("dedup_diversify", chunk_ids=[*found, rules[1]], query="notice period")
    assert sorted(_ids(diverse)) == sorted([*found, rules[1]])
    composed = await tools.told("compose_context", chunk_ids=found, question="What is the notice period?")
    assert composed["coverage"] == 1.0
    verified = await tools.told("verify", claim="The notice period is six weeks.")
    assert (verified["verdict"], verified["evidence"][0]["chunk_id"]) == ("similar_wording", rules[0])


async def test_conditions_hold_in_both_engines(tools: Tools, local: Retriever) -> None:
    await _publish(local, "old", NOTICE, metadata={"date": "2023-12-31", "author": "Ann", "channel": "news"})
    await _publish(local, "new", NOTICE + " New.", metadata={"date": "2024-01-31", "author": "Bo", "channel": "news"})
    for filters, documents in (
        ({"date_from": "2024-01-01"}, ["new"]),
        ({"date_to": "2023-12-31"}, ["old"]),
        ({"channel": ["@news"], "author": ["Ann"]}, ["old"]),
        ({"document_ids": ["new"]}, ["new"]),
        ({"metadata": {"author": ["Ann", "Bo"]}}, ["new", "old"]),
    ):
        told = await tools.told("search", queries=["notice period"], filters=filters)
        assert sorted(hit["document_id"] for hit in told["hits"]) == documents


async def test_a_tenant_reads_no_passage_of_another(tools: Tools, local: Retriever, address: str) -> None:
    ids = await _publish(local, "rules", NOTICE)
    as_other = {"principal": OTHER_TENANT}
    assert (await tools.told("search", queries=["notice period"], **as_other))["hits"] == []
    assert await tools.refusal("fetch_docs", chunk_ids=ids, **as_other) == "PASSAGES_NOT_FOUND"
    assert await tools.refusal("fetch_docs", document_id="rules", **as_other) == "DOCUMENT_NOT_FOUND"
    assert await tools.refusal("compose_context", chunk_ids=ids, **as_other) == "PASSAGES_NOT_FOUND"
    verified = await tools.told("verify", claim="The notice period is six weeks.", **as_other)
    assert (verified["verdict"], verified["evidence"]) == ("not_found", [])
    async with retriever_as(address, OTHER_TENANT.tenant_id) as theirs:
        await _publish(theirs, "rules", "The notice period is ten years.")
    told = await tools.told("search", queries=["notice period"], **as_other)
    assert [hit["source"]["text"] for hit in told["hits"]] == ["The notice period is ten years."]


async def test_a_bound_call_reads_no_other_collection(tools: Tools, local: Retriever) -> None:
    ids = await _publish(local, "rules", NOTICE)
    await _publish(local, "house", "The notice board hangs in the hall.", collection_id="hall")
    bound: dict[str, Any] = {"bound_to": ["hall"]}
    told = await tools.told("search", queries=["notice period"], **bound)
    assert [hit["document_id"] for hit in told["hits"]] == ["house"]
    refused = await tools.refusal("search", queries=["notice"], collection_ids=["default"], **bound)
    assert refused == "COLLECTION_NOT_ALLOWED"
    assert (await tools.told("search", queries=["notice"], filters={"document_ids": ["rules"]}, **bound))["hits"] == []
    for name, arguments in (("fetch_docs", {}), ("rerank", {"query": "notice"}), ("dedup_diversify", {})):
        assert await tools.refusal(name, chunk_ids=ids, **arguments, **bound) == "PASSAGES_NOT_FOUND"
    for start in (0, 99):
        assert await tools.refusal("fetch_docs", document_id="rules", start=start, **bound) == "DOCUMENT_NOT_FOUND"


async def test_a_deleted_document_is_not_returned_by_any_tool(tools: Tools, local: Retriever) -> None:
    ids = await _publish(local, "rules", NOTICE)
    asked: dict[str, Any] = {"queries": ["notice period"]}
    assert _ids(await tools.told("search", **asked)) == ids
    await local.stub.DeleteDocument(retriever_pb2.DeleteDocumentRequest(document_id="rules"), timeout=60)
    assert (await tools.told("search", **asked))["hits"] == []
    assert await tools.refusal("fetch_docs", chunk_ids=ids) == "PASSAGES_NOT_FOUND"
    assert await tools.refusal("fetch_docs", document_id="rules") == "DOCUMENT_NOT_FOUND"
    assert await tools.refusal("rerank", query="notice", chunk_ids=ids) == "PASSAGES_NOT_FOUND"
    assert (await tools.told("verify", claim="The notice period is six weeks."))["evidence"] == []


async def test_without_the_model_server_what_works_goes_on_and_says_so(
    tools: Tools, local: Retriever, models: FakeModelServer
) -> None:
    ids = await _publish(local, "rules", NOTICE, "During probation it is two weeks.")
    models.is_down = True
    result = await tools.call("search", queries=["notice period"])
    [degraded] = json_format.MessageToDict(result.output)["degraded"]
    assert degraded["reason"] == "EMBEDDER_UNAVAILABLE"
    assert result.summary.endswith(degraded["message"])
    reranked = await tools.told("rerank", query="probation", chunk_ids=ids)
    assert _ids(reranked) == ids
    assert reranked["degraded"][0]["reason"] == "MODEL_SERVER_UNAVAILABLE"
    assert (await tools.told("dedup_diversify", chunk_ids=ids))["degraded"][0]["part"] == "dense"


async def test_a_request_that_the_search_refuses_says_why(tools: Tools, local: Retriever) -> None:
    await _publish(local, "rules", NOTICE)
    result = await tools.call("search", queries=[" "])
    assert (result.error_reason, result.error_message) == (
        "INVALID_REQUEST",
        "a query is empty; say what to search for",
    )


async def test_without_the_retriever_it_is_said_what_does_not_answer(nats_url: str) -> None:
    async with _tools(nats_url, retriever_address=f"127.0.0.1:{free_port()}") as tools:
        for name, arguments in (
            ("search", {"queries": ["notice"]}),
            ("fetch_docs", {"chunk_ids": ["c1"]}),
            ("verify", {"claim": "The notice period is six weeks."}),
        ):
            assert await tools.refusal(name, bound_to=["default"], **arguments) == "SEARCH_UNAVAILABLE"
