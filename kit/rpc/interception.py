"""What interceptors of the gRPC server are made from: one way around unary and streaming handlers alike."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

HEALTH_PREFIX = "/grpc.health.v1.Health/"
Behaviour = Callable[[Any, Any], Any]
"""A handler: request or request iterator, and the servicer context."""


class Around(grpc.aio.ServerInterceptor):
    """Wraps handlers; a subclass says what happens around them. Health checks are left alone."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        method: str = handler_call_details.method
        if handler is None or method.startswith(HEALTH_PREFIX):
            return handler
        return self._wrapped(handler, method)

    def _wrapped(self, handler: Any, method: str) -> Any:
        if handler.response_streaming:
            kind = "stream_stream" if handler.request_streaming else "unary_stream"
            around: Behaviour = self._around_stream(getattr(handler, kind), method)
        else:
            kind = "stream_unary" if handler.request_streaming else "unary_unary"
            around = self._around_unary(getattr(handler, kind), method)
        make = getattr(grpc, f"{kind}_rpc_method_handler")
        return make(around, handler.request_deserializer, handler.response_serializer)

    @abstractmethod
    def _around_unary(self, inner: Behaviour, method: str) -> Behaviour: ...

    @abstractmethod
    def _around_stream(self, inner: Behaviour, method: str) -> Behaviour: ...
