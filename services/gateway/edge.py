"""The outermost layer: a span, a log line and two measurements a request, headers that every answer carries, and the last
resort for errors that nobody expected."""

import asyncio
import time
from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any

import structlog
from opentelemetry.trace import Span, SpanKind, StatusCode
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kit.observability.telemetry import TRACEPARENT, continued_span, current_trace_id
from services.gateway.access.audit import AuditLog
from services.gateway.access.auth import is_by_credential
from services.gateway.metrics import REQUEST_SECONDS, REQUESTS
from services.gateway.problems import unknown_error
from services.gateway.serving.requests import is_request, method_of, refuse

_log = structlog.get_logger()
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"})
_HANDSHAKE_ANSWERS = {"accept": 101, "close": 403}
"""The status that a server answers to the handshake of a WebSocket, by our message."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class Edge:
    """ASGI middleware around everything else."""

    def __init__(self, app: ASGIApp, *, audit: AuditLog) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_request(scope):
            await self._app(scope, receive, send)
            return
        traceparent, method = Headers(scope=scope).get(TRACEPARENT, ""), _method(scope)
        attributes = {"http.request.method": method, "url.scheme": scope.get("scheme", "http")}
        with continued_span(f"HTTP {method}", traceparent, attributes, SpanKind.SERVER) as span:
            answer = _Answer(scope, send, self._audit)
            began = time.perf_counter()
            try:
                await self._run(scope, receive, answer)
            finally:
                _record(scope, answer.status, time.perf_counter() - began)
                if not answer.is_audited:
                    self._audit.request(scope, answer.status)
                _name(span, scope, answer.status)

    async def _run(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        try:
            await self._app(scope, receive, answer)
        except (asyncio.CancelledError, ClientDisconnect):
            # Nobody is left to be answered; uvicorn cancels when it drains.
            if answer.status == 0:
                answer.status = 499
        except Exception as error:
            trace_id = current_trace_id()
            _log.error("http_request_failed", path=scope["path"], trace_id=trace_id, exc_info=error)
            if answer.status:
                raise  # bytes are out: only breaking the connection tells the client
            await refuse(unknown_error(trace_id), scope, receive, answer)


class _Answer:
    """`send` that remembers the status, adds our headers, and lets no answer to a change out before its audit entry is stored."""

    def __init__(self, scope: Scope, send: Send, audit: AuditLog) -> None:
        self._scope = scope
        self._send = send
        self._audit = audit
        self.status = 0
        self.is_audited = False

    async def __call__(self, message: Message) -> None:
        kind = message["type"].removeprefix("websocket.")
        self.status = self.status or _HANDSHAKE_ANSWERS.get(kind, 0)
        if kind.endswith("http.response.start"):
            self.status = message["status"]
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("X-Trace-Id", current_trace_id())
            if is_by_credential(self._scope):
                headers.setdefault("Cache-Control", "no-store")  # a shared cache knows nothing of X-API-Key
            await self._note(headers.get("location", ""))
        await self._send(message)

    async def _note(self, made: str) -> None:
        self.is_audited = True
        if stored := self._audit.request(self._scope, self.status, made):
            await self._audit.wait_stored(stored)


def _method(scope: MutableMapping[str, Any]) -> str:
    """The method as a bounded label: a client may send any word as one."""
    return method_of(scope) if method_of(scope) in _METHODS else "other"


def _route(scope: MutableMapping[str, Any]) -> str:
    """The template of the path, which FastAPI leaves in the scope: a bounded label, as a path would not be."""
    route: str = getattr(scope.get("route"), "path", "unmatched")
    return route


def _name(span: Span, scope: MutableMapping[str, Any], status: int) -> None:
    """What is known of the request only once it was answered."""
    route = _route(scope)
    span.update_name(f"{_method(scope)} {route}")
    span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", status)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        span.set_attribute("error.type", str(status))
        span.set_status(StatusCode.ERROR)


def _record(scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
    route = _route(scope)
    REQUESTS.labels(_method(scope), route, str(status)).inc()
    REQUEST_SECONDS.labels(_method(scope), route).observe(seconds)
    _log.debug("http_request", method=_method(scope), route=route, status=status, seconds=round(seconds, 4))
