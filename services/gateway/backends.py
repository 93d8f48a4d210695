"""The services behind the gateway, as one bundle that routes receive."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from google.protobuf.descriptor import ServiceDescriptor
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from groundwork.memory.v1 import memory_pb2, memory_pb2_grpc
from groundwork.orchestrator.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc
from groundwork.store.v1 import store_pb2_grpc
from groundwork.tools.v1 import tools_pb2, tools_pb2_grpc
from starlette.requests import HTTPConnection

from kit.access.tokens import TokenSigner
from kit.rpc.calls import health_stub
from kit.rpc.channel import Channel, open_channel
from services.gateway.adapters.health import GrpcHealthProbe
from services.gateway.adapters.ingest import document_watch
from services.gateway.adapters.orchestrator import OrchestratorRunLog
from services.gateway.adapters.speech import SpeechApi, open_speech
from services.gateway.ports import HealthProbe, RunLog
from services.gateway.settings import GatewaySettings
from services.gateway.streams.document_feed import DocumentFeeds


@dataclass(frozen=True)
class Backends:
    """What routes may call."""

    settings: GatewaySettings
    ingest: ingest_pb2_grpc.IngestServiceStub
    retriever: retriever_pb2_grpc.RetrieverServiceStub
    memory: memory_pb2_grpc.MemoryServiceStub
    orchestrator: orchestrator_pb2_grpc.OrchestratorServiceStub
    tools: tools_pb2_grpc.ToolsServiceStub
    reranker: reranker_pb2_grpc.RerankerServiceStub
    run_log: RunLog
    documents: DocumentFeeds
    probes: Mapping[str, HealthProbe]
    stopping: asyncio.Event
    """Set when the gateway is to stop: /readyz says so, and everything is served until the drain delay is over."""
    speech: SpeechApi
    """Endpoints that hear and speak, as far as they are set up."""
    store: store_pb2_grpc.StoreServiceStub
    """What is known about the condition of the stored data; served by ingest."""
    closing: asyncio.Event
    """Set when the drain delay is over: event streams end, and clients reconnect to another gateway."""


async def open_backends(
    stack: AsyncExitStack, settings: GatewaySettings, stopping: asyncio.Event, closing: asyncio.Event
) -> Backends:
    """Opens a channel to each service; nothing is called yet, so the order in which services start does not matter."""
    signer, certificates = TokenSigner(settings.signing_key()), settings.certificates()

    async def channel(address: str, services: Iterable[ServiceDescriptor] = ()) -> Channel:
        return await stack.enter_async_context(
            open_channel(
                address,
                signer,
                list(services),
                patience_s=settings.connection_patience_s,
                certificates=certificates,
            )
        )

    ingest = await channel(settings.ingest_address, ingest_pb2.DESCRIPTOR.services_by_name.values())
    retriever = await channel(settings.retriever_address, retriever_pb2.DESCRIPTOR.services_by_name.values())
    memory = await channel(settings.memory_address, memory_pb2.DESCRIPTOR.services_by_name.values())
    orchestrator = await channel(settings.orchestrator_address, orchestrator_pb2.DESCRIPTOR.services_by_name.values())
    tools = await channel(settings.tools_address, tools_pb2.DESCRIPTOR.services_by_name.values())
    reranker = await channel(settings.reranker_address, reranker_pb2.DESCRIPTOR.services_by_name.values())
    health_channels = {
        "reranker": reranker,
        "retriever": retriever,
        "ingest": ingest,
        "ingest-worker": await channel(settings.ingest_worker_address),
        "memory": memory,
        "tools": tools,
        "orchestrator": orchestrator,
    }
    ingest_stub = ingest_pb2_grpc.IngestServiceStub(ingest)
    watch = document_watch(ingest_stub, timeout_s=settings.stream_timeout_s)
    feeds = DocumentFeeds(watch, reattach_for_s=settings.reattach_for_s)
    stack.push_async_callback(feeds.close)
    orchestrator_stub = orchestrator_pb2_grpc.OrchestratorServiceStub(orchestrator)
    return Backends(
        settings=settings,
        ingest=ingest_stub,
        retriever=retriever_pb2_grpc.RetrieverServiceStub(retriever),
        memory=memory_pb2_grpc.MemoryServiceStub(memory),
        orchestrator=orchestrator_stub,
        tools=tools_pb2_grpc.ToolsServiceStub(tools),
        reranker=reranker_pb2_grpc.RerankerServiceStub(reranker),
        run_log=OrchestratorRunLog(
            orchestrator_stub, timeout_s=settings.stream_timeout_s, start_timeout_s=settings.rpc_timeout_s
        ),
        documents=feeds,
        probes={
            name: GrpcHealthProbe(health_stub(each), timeout_s=settings.health_timeout_s)
            for name, each in health_channels.items()
        },
        stopping=stopping,
        speech=await stack.enter_async_context(open_speech(settings)),
        store=store_pb2_grpc.StoreServiceStub(ingest),
        closing=closing,
    )


async def backends(request: HTTPConnection) -> Backends:
    """The bundle of the running app. A coroutine, for FastAPI would send a plain function to a thread."""
    bundle: Backends = request.app.state.backends
    return bundle


Services = Annotated[Backends, Depends(backends)]
