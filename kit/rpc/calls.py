"""Typed helpers around generated stubs: a streamed answer that can be closed, a stream of requests that may be sent again, and a
client of health checks, whose published stub has no types."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Protocol, TypeVar, cast

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


def responses(call: grpc.aio.UnaryStreamCall[_Request, _Response]) -> AsyncGenerator[_Response, None]:
    """The streamed answer of a call on a kit channel. Closing it cancels the call."""
    return cast("AsyncGenerator[_Response, None]", call)


class WholeRequests(AsyncIterator[_Request]):
    """A stream of requests that the server drops unless it receives the last one: a broken one is safe to send again.

    `is_last` recognises the last request."""

    def __init__(self, requests: AsyncIterator[_Request], is_last: Callable[[_Request], bool]) -> None:
        self._requests = requests
        self.is_last = is_last

    async def __anext__(self) -> _Request:
        return await anext(self._requests)


class HealthStub(Protocol):
    """The client of grpc.health.v1."""

    @property
    def Check(  # noqa: N802 - the contract's name
        self,
    ) -> grpc.aio.UnaryUnaryMultiCallable[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse]:
        """Asks for the condition of a service."""


def health_stub(channel: grpc.aio.Channel) -> HealthStub:
    """Makes a client of a channel's health checks."""
    return cast("HealthStub", health_pb2_grpc.HealthStub(channel))
