"""What an ASGI scope is to the layers around the routes. A WebSocket is opened by a request, and passes the same checks."""

from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from kit.errors import GroundworkError
from services.gateway.problems import problem_response

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
WEBSOCKET_PATHS = frozenset({"/v1/realtime", "/ws/voice-chat"})
"""Where WebSockets are opened."""
_WEBSOCKET = "WEBSOCKET"
_POLICY_VIOLATION = 1008
"""RFC 6455, section 7.4.1."""


def is_request(scope: Scope) -> bool:
    """Whether a client asks for something: False for the server's own lifespan. Raises NotImplementedError for an unknown scope."""
    kind = scope["type"]
    if kind not in {"http", "websocket", "lifespan"}:
        raise NotImplementedError(f"the gateway serves no ASGI scope of type {kind}")
    return bool(kind != "lifespan")


def method_of(scope: Scope) -> str:
    """The request's method. A WebSocket has one of its own, which is not safe: it may change anything once it is open."""
    method: str = scope.get("method", _WEBSOCKET)
    return method


def base_url(scope: Scope, public_url: str) -> str:
    """Where clients reach the gateway: under its public address, or without one under the name that the request has."""
    return public_url or f"{scope.get('scheme', 'http')}://{Headers(scope=scope).get('host', 'localhost')}"


def passage_url(base_url: str, chunk_id: str, quote_start: int = 0, quote_end: int = 0) -> str:
    """The page of the console that shows a passage, with these characters of it marked; none where `quote_end` is 0."""
    marked = f"?from={quote_start}&to={quote_end}" if quote_end > quote_start else ""
    return f"{base_url}/passages/{quote(chunk_id, safe='')}{marked}"


async def refuse(error: GroundworkError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the problem. A WebSocket is closed where the server cannot answer its handshake."""
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": error.reason})
    else:
        await problem_response(error)(scope, receive, send)
