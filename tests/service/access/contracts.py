"""All services and methods of the contracts, as their descriptors tell."""

import importlib
import pkgutil
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

import groundwork
import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from kit.access.tokens import call_of
from kit.errors import Unimplemented
from kit.rpc.channel import Channel

OF_NO_TENANT = {"store/GetCondition", "reranker/Embed", "reranker/GetModelInfo"}
"""What the gateway asks besides, which tells nothing of any tenant: its health check, and the vectors of a caller's own texts."""


def path_of(method: MethodDescriptor) -> str:
    """As it is called: "/groundwork.retriever.v1.RetrieverService/Search"."""
    return f"/{method.containing_service.full_name}/{method.name}"


def call_name(method: MethodDescriptor) -> str:
    """As lists of signers have it: "retriever/Search"."""
    return "/".join(call_of(path_of(method)))


def contracts() -> Iterator[tuple[ServiceDescriptor, ModuleType]]:
    """Each service with the generated module that has its servicer and stub."""
    for found in pkgutil.walk_packages(groundwork.__path__, "groundwork."):
        if found.name.endswith("_pb2"):
            services = importlib.import_module(found.name).DESCRIPTOR.services_by_name.values()
            for service in services:
                yield service, importlib.import_module(f"{found.name}_grpc")


def methods() -> list[MethodDescriptor]:
    """Every method of every service."""
    return [method for service, _ in contracts() for method in service.methods]


def request_class(method: MethodDescriptor) -> Any:
    return message_factory.GetMessageClass(method.input_type)


class Unimplementing:
    """A servicer of any service whose every method raises Unimplemented: who is told so has come past the interceptors."""

    def __init__(self, service: ServiceDescriptor) -> None:
        for method in service.methods:
            setattr(self, method.name, self._stream if method.server_streaming else self._unary)

    async def _unary(self, request: Any, context: Any) -> None:
        raise Unimplemented("the call came through")

    async def _stream(self, request: Any, context: Any) -> AsyncIterator[None]:
        raise Unimplemented("the call came through")
        yield


def add_unimplementing(server: grpc.aio.Server) -> None:
    """Every service of the contracts."""
    for service, module in contracts():
        getattr(module, f"add_{service.name}Servicer_to_server")(Unimplementing(service), server)


async def ask(
    channel: Channel | grpc.aio.Channel, method: MethodDescriptor, *requests: Any, **options: Any
) -> list[Any]:
    """The answers to a call. Streamed answers are read until there are no more. Raises what the channel raises."""
    stub = stub_of(channel, method)
    request = iter(requests) if method.client_streaming else requests[0]
    answer = getattr(stub, method.name)(request, **options)
    return [each async for each in answer] if method.server_streaming else [await answer]


def stub_of(channel: Channel | grpc.aio.Channel, method: MethodDescriptor) -> Any:
    """Of the method's service."""
    service = method.containing_service
    module = next(module for each, module in contracts() if each is service)
    return getattr(module, f"{service.name}Stub")(channel)
