"""All services in this process over one real message store, and what one user has there: the things that strangers must not reach.
The language model and the model server are doubles."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from groundwork.common.v1 import common_pb2
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from groundwork.memory.v1 import memory_pb2, memory_pb2_grpc
from groundwork.orchestrator.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc

from kit.access.principal import ADMIN, Principal, use_principal
from kit.errors import FailedPrecondition
from kit.rpc.channel import Channel
from kit.testing.harness import USER_SCOPES, free_port, open_test_channel, running_service, running_servicer
from kit.testing.openai import Reply, scripted_model
from services.ingest import app as ingest
from services.ingest.settings import IngestSettings
from services.memory import app as memory
from services.memory.settings import MemorySettings
from services.orchestrator import app as orchestrator
from services.orchestrator.settings import OrchestratorSettings
from services.retriever import app as retriever
from services.retriever.settings import RetrieverSettings
from services.tools import app as tools
from services.tools.settings import ToolsSettings
from tests.service.retriever.conftest import FakeModelServer
from tests.unit.retriever.fakes import DIMENSION, MODEL

ANN = Principal("acme", "ann", USER_SCOPES)
"""Whose things they are."""
SECRET = "zanzibar"
"""A word in all texts, names and titles of Ann's."""
ENDLESSLY = "endlessly"
"""A word in questions whose answer does not end."""
TIMEOUT_S = 60.0
UNREADABLE = "unreadable"
"""A word that the model server fails at, so that the job of a text with it is given up."""
_FORGET = {"index": 0, "id": "c1", "function": {"name": "rag_forget", "arguments": f'{{"document": "{SECRET}.md"}}'}}


class ModelServer(FakeModelServer):
    """Embeds and scores, for ingest as well."""

    async def GetModelInfo(self, request: Any, context: Any) -> reranker_pb2.GetModelInfoResponse:
        return reranker_pb2.GetModelInfoResponse(embedding_model=MODEL, dimension=DIMENSION, window_tokens=128)

    async def GetTokenizer(self, request: Any, context: Any) -> reranker_pb2.GetTokenizerResponse:
        return reranker_pb2.GetTokenizerResponse()

    async def Embed(self, request: reranker_pb2.EmbedRequest, context: Any) -> reranker_pb2.EmbedResponse:
        if any(UNREADABLE in text for text in request.texts):
            raise FailedPrecondition("the model server cannot read this", reason="EMBEDDING_SPACE_MISMATCH")
        return await super().Embed(request, context)


def _reply(request: Mapping[str, Any]) -> Reply:
    """The model wants to delete a document whenever it has tools; else it answers, without an end if it is asked to."""
    if request.get("tools"):
        return Reply([{"tool_calls": [_FORGET]}], finish_reason="tool_calls")
    is_long = ENDLESSLY in json.dumps(request["messages"])
    return Reply([f"It says {SECRET} [1]. "], pause_s=0.02 if is_long else 0.0, endless=is_long)


@dataclass
class Things:
    """What Ann has, by kind of id."""

    ids: dict[str, str] = field(default_factory=dict)
    arguments_hash: str = ""
    page_tokens: dict[str, str] = field(default_factory=dict)
    """By the name of the listing."""


@dataclass
class World:
    """Where the services answer."""

    nats_url: str
    addresses: dict[str, str]
    channels: dict[str, Channel]
    things: Things = field(default_factory=Things)

    def stub(self, room: str) -> Any:
        """Of the service of a room; its calls are made as the present principal."""
        stubs: dict[str, Any] = {
            "ingest": ingest_pb2_grpc.IngestServiceStub,
            "memory": memory_pb2_grpc.MemoryServiceStub,
            "orchestrator": orchestrator_pb2_grpc.OrchestratorServiceStub,
            "retriever": retriever_pb2_grpc.RetrieverServiceStub,
        }
        return stubs[room](self.channels[room])


@asynccontextmanager
async def running_world(nats_url: str, data_dir: Path) -> AsyncIterator[World]:
    """All services, with what Ann has."""
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(scripted_model())
        model.reply_to = _reply
        addresses = await _services(stack, nats_url, data_dir, model.base_url)
        channels = {
            room: await stack.enter_async_context(open_test_channel(address, ANN))
            for room, address in addresses.items()
        }
        world = World(nats_url, addresses, channels)
        folders = {"acme/watched": str(data_dir / "watched")}
        (data_dir / "watched").mkdir()
        (data_dir / "ingest" / "watched-folders.json").write_text(json.dumps(folders))
        with use_principal(ANN):
            await _fill(world)
        yield world


async def _services(stack: AsyncExitStack, nats_url: str, data_dir: Path, model_url: str) -> dict[str, str]:
    """The address of each room."""
    models = await stack.enter_async_context(
        running_servicer(reranker_pb2_grpc.add_RerankerServiceServicer_to_server, ModelServer())
    )
    at = {
        room: f"127.0.0.1:{free_port()}"
        for room in ("ingest", "ingest-worker", "memory", "orchestrator", "retriever", "tools")
    }
    stored = {"nats_url": nats_url}
    neighbours = {"reranker_address": models, "retriever_address": at["retriever"]}
    reading = {
        "data_dir": data_dir / "ingest",
        "parse_time_limit_s": 20.0,
        "egress_allowed_networks": "127.0.0.1/32",  # for a source whose changes take a role, and no scope
        **stored,
        **neighbours,
    }
    served = [
        (
            retriever.run,
            RetrieverSettings(grpc_address=at["retriever"], reranker_address=models, data_dir=data_dir, **stored),
        ),
        (ingest.run_api, IngestSettings(grpc_address=at["ingest"], **reading)),
        (ingest.run_worker, IngestSettings(grpc_address=at["ingest-worker"], **reading)),
        (memory.run, MemorySettings(grpc_address=at["memory"], retriever_address=at["retriever"], **stored)),
        (
            tools.run,
            ToolsSettings(
                grpc_address=at["tools"],
                ingest_address=at["ingest"],
                memory_address=at["memory"],
                **stored,
                **neighbours,
            ),
        ),
        (
            orchestrator.run,
            OrchestratorSettings(
                grpc_address=at["orchestrator"],
                memory_address=at["memory"],
                tools_address=at["tools"],
                llm_base_url=model_url,
                ingest_address=at["ingest"],
                run_access_check_s=0.2,
                **stored,
                **neighbours,
            ),
        ),
    ]
    for run, settings in served:
        await stack.enter_async_context(running_service(run, settings))
    return {**at, "reranker": models}


async def _fill(world: World) -> None:
    ids = world.things.ids
    ids["key"] = f"{SECRET}-key"
    await _fill_documents(world)
    ids["thread"] = await _thread(world, f"About {SECRET}", ids["key"])
    await _thread(world, f"More about {SECRET}", "")
    ids["run"] = await _answered_run(world)
    ids["response"] = f"resp_{ids['run']}"
    ids["fact"] = await _fact(world)
    await _waiting_run(world)
    await _note_page_tokens(world)


async def _fill_documents(world: World) -> None:
    stub, ids = world.stub("ingest"), world.things.ids
    request = ingest_pb2.CreateCollectionRequest(collection_id="anns", name=SECRET, idempotency_key=ids["key"])
    ids["collection"] = (await stub.CreateCollection(request, timeout=TIMEOUT_S)).collection.collection_id
    text = f"# {SECRET}\n\nThe plan for {SECRET} is to leave in spring."
    ids["document"] = await read_document(world, f"{SECRET}.md", text)
    await read_document(world, f"{SECRET}-{UNREADABLE}.md", f"# {SECRET}\n\nThis is {UNREADABLE}.")
    (letter,) = (await stub.ListDeadLetters(ingest_pb2.ListDeadLettersRequest(), timeout=TIMEOUT_S)).dead_letters
    ids["dead letter"] = letter.dead_letter_id
    ids["source"] = await make_source(world, SECRET)
    search = retriever_pb2.SearchRequest(queries=[SECRET], collection_ids=[ids["collection"]])
    hits = (await world.stub("retriever").Search(search, timeout=TIMEOUT_S)).hits
    ids["chunk"], ids["revision"] = hits[0].chunk.chunk_id, hits[0].chunk.revision_id


async def make_source(world: World, name: str) -> str:
    """A folder of the server in Ann's collection, as its id."""
    new = ingest_pb2.CreateSourceRequest(
        kind="folder", collection_id=world.things.ids["collection"], name=name, settings={"folder": "watched"}
    )
    with use_principal(replace(ANN, scopes=frozenset({ADMIN}))):  # she may watch a folder of the server
        return str((await world.stub("ingest").CreateSource(new, timeout=TIMEOUT_S)).source.source_id)


async def read_document(world: World, name: str, text: str) -> str:
    """Uploads it and waits until it is ready or has failed."""
    stub = world.stub("ingest")
    parts = upload_parts(world.things.ids["collection"], name, text.encode())
    document_id: str = (await stub.UploadDocument(iter(parts), timeout=TIMEOUT_S)).document.document_id
    watch = ingest_pb2.WatchDocumentsRequest(document_ids=[document_id])
    async with aclosing(stub.WatchDocuments(watch, timeout=TIMEOUT_S)) as changes:
        async for change in changes:
            if change.document.status in (ingest_pb2.DOCUMENT_STATUS_READY, ingest_pb2.DOCUMENT_STATUS_FAILED):
                return document_id
    raise AssertionError("the watch ended")


def upload_parts(collection_id: str, name: str, data: bytes) -> list[ingest_pb2.UploadDocumentRequest]:
    """The messages of an upload."""
    header = ingest_pb2.UploadHeader(collection_id=collection_id, name=name)
    return [
        ingest_pb2.UploadDocumentRequest(header=header),
        ingest_pb2.UploadDocumentRequest(data=data),
        ingest_pb2.UploadDocumentRequest(end=ingest_pb2.UploadEnd(size_bytes=len(data))),
    ]


async def _thread(world: World, title: str, key: str) -> str:
    request = memory_pb2.CreateThreadRequest(title=title, idempotency_key=key)
    return str((await world.stub("memory").CreateThread(request, timeout=TIMEOUT_S)).thread.thread_id)


async def _answered_run(world: World) -> str:
    ids = world.things.ids
    request = orchestrator_pb2.StartRunRequest(
        mode=orchestrator_pb2.RUN_MODE_GROUNDED,
        question=f"What is the plan for {SECRET}?",
        collection_ids=[ids["collection"]],
        thread_id=ids["thread"],
        idempotency_key=ids["key"],
    )
    events = [each.event async for each in world.stub("orchestrator").StartRun(request, timeout=TIMEOUT_S)]
    assert events[-1].done.status == orchestrator_pb2.RUN_STATUS_COMPLETED, events
    history = memory_pb2.GetHistoryRequest(thread_id=ids["thread"])
    messages = (await world.stub("memory").GetHistory(history, timeout=TIMEOUT_S)).messages
    ids["message"] = messages[0].message_id
    return str(events[0].run_id)


async def _fact(world: World) -> str:
    """What Ann has said of herself. She says two things, so that there are two pages."""
    request = memory_pb2.LearnTurnRequest(
        run_id=uuid4().hex,  # of a turn of its own: what the run above said is learnt from in the background
        thread_id=world.things.ids["thread"],
        text=f"My name is {SECRET}. I live in {SECRET}.",
    )
    request.at.GetCurrentTime()
    facts = (await world.stub("memory").LearnTurn(request, timeout=TIMEOUT_S)).facts
    assert len(facts) == 2
    return str(facts[0].fact_id)


async def _waiting_run(world: World) -> None:
    """A chat whose model wants what a person must allow."""
    things, stub = world.things, world.stub("orchestrator")
    request = orchestrator_pb2.StartRunRequest(
        mode=orchestrator_pb2.RUN_MODE_CHAT,
        question=f"Forget {SECRET}",
        collection_ids=[things.ids["collection"]],
        tools=orchestrator_pb2.ToolSelection(names=["rag_forget"]),
    )
    async with aclosing(stub.StartRun(request, timeout=TIMEOUT_S)) as events:
        async for each in events:
            if each.event.HasField("approval"):
                things.ids["approval"] = each.event.approval.approval_id
                things.arguments_hash = each.event.approval.arguments_hash
                things.ids["waiting run"] = each.event.run_id
                break
    async with asyncio.timeout(TIMEOUT_S):
        while not (await stub.ListApprovals(orchestrator_pb2.ListApprovalsRequest(), timeout=TIMEOUT_S)).approvals:
            await asyncio.sleep(0.02)


async def _note_page_tokens(world: World) -> None:
    one, tokens = common_pb2.PageRequest(page_size=1), world.things.page_tokens
    collection_id = world.things.ids["collection"]
    for room, name, request in (
        ("ingest", "ListDocuments", ingest_pb2.ListDocumentsRequest(collection_id=collection_id, page=one)),
        ("memory", "ListThreads", memory_pb2.ListThreadsRequest(page=one)),
        ("memory", "ListFacts", memory_pb2.ListFactsRequest(page=one)),
        ("orchestrator", "ListRuns", orchestrator_pb2.ListRunsRequest(page=one)),
    ):
        answer = await getattr(world.stub(room), name)(request, timeout=TIMEOUT_S)
        assert answer.next_page_token
        tokens[name] = answer.next_page_token
