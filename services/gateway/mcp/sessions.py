"""MCP over HTTP at `/mcp`: sessions of the handshake versions of the protocol, and requests that need none.

A session lives in the gateway that began it, which is named in the session's id. It holds nothing that a request needs: another
gateway, or this one after a restart, answers the session's requests one by one, and resumes the stream of a run from the run's log.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kit.errors import GroundworkError
from services.gateway.access.auth import Admission, admission_of
from services.gateway.errors import MethodNotAllowed
from services.gateway.mcp.caller import CallersApi
from services.gateway.mcp.own_api import OwnApi
from services.gateway.mcp.resuming import Place, RunLogStore, resumed
from services.gateway.mcp.server import GroundworkMcp
from services.gateway.serving.requests import refuse
from services.gateway.settings import GatewaySettings
from services.gateway.streams.shares import StreamShares
from services.gateway.streams.sse import EventStream

_SESSION_ID = re.compile(r"([0-9a-f]{8})-([0-9a-f]{32})")
_GUARDED_ALREADY = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""serving/guard.py checks the host and the origin of every request."""


class McpSessions:
    """The ASGI application behind `/mcp`, once it is wanted."""

    def __init__(self, app: ASGIApp, settings: GatewaySettings, shares: StreamShares, closing: asyncio.Event) -> None:
        """`app`: the whole gateway, which the tools call."""
        self._settings = settings
        self._shares = shares
        self._closing = closing
        self._gateway_id = secrets.token_hex(4)
        self._own = OwnApi(app)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Serves while the block runs."""
        self._server = GroundworkMcp(CallersApi(self._own, self._settings.public_url), self._closing)
        self._sessions = self._manager(stateless=False)
        self._alone = self._manager(stateless=True)
        async with self._sessions.run(), self._alone.run():
            try:
                yield
            finally:
                await self._server.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        admission = admission_of(scope)
        scope = {**scope, "user": _user(admission)}
        try:
            if scope["method"] == "GET":
                with self._shares.place(admission.principal.tenant_id):
                    await self._until_over(self._get(scope, receive, send), admission, self._closing)
            else:
                await self._until_over(self._serve(scope, receive, send), admission)
        except GroundworkError as error:
            await refuse(error, scope, receive, send)

    def _manager(self, *, stateless: bool) -> StreamableHTTPSessionManager:
        self._server.streamable_http_app(
            stateless_http=stateless,
            event_store=RunLogStore(),
            max_request_body_size=self._settings.max_json_bytes,
            session_idle_timeout=self._settings.mcp_session_idle_s,
            max_sessions=self._settings.mcp_sessions_max,
            transport_security=_GUARDED_ALREADY,
        )
        return self._server.session_manager

    async def _get(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A stream of a session, or the rest of a stream that broke."""
        place = Place.read(Headers(scope=scope).get("last-event-id", ""))
        if place is None:
            await self._serve(scope, receive, send)
            return
        events = resumed(place, Request(scope), self._own, self._server.runs)
        stream = EventStream(events, ping_interval_s=self._settings.ping_interval_s, closing=self._closing)
        await stream(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        shown = _SESSION_ID.fullmatch(Headers(scope=scope).get(MCP_SESSION_ID_HEADER, ""))
        if shown is not None and shown[1] != self._gateway_id:
            if scope["method"] != "POST":
                raise MethodNotAllowed(
                    "the session is of another gateway, or of one that was restarted: only its requests are answered here",
                    retryable=False,
                )
            await self._alone.handle_request(scope, receive, send)
            return
        if shown is not None:
            scope = _with_session(scope, shown[2])
        await self._sessions.handle_request(scope, receive, self._named(send))

    def _named(self, send: Send) -> Send:
        """`send` that adds the gateway to the session's id."""

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                if inner := headers.get(MCP_SESSION_ID_HEADER):
                    headers[MCP_SESSION_ID_HEADER] = f"{self._gateway_id}-{inner}"
            await send(message)

        return named

    @staticmethod
    async def _until_over(
        serve: Coroutine[Any, Any, None], admission: Admission, closing: asyncio.Event | None = None
    ) -> None:
        """Serves until the answer is out, the caller's key is not good any more, or the gateway closes."""
        serving = asyncio.create_task(serve)
        ends: list[asyncio.Task[Any]] = []
        if admission.ended is not None:
            ends.append(asyncio.ensure_future(admission.ended()))
        if closing is not None:
            ends.append(asyncio.create_task(closing.wait()))
        try:
            await asyncio.wait({serving, *ends}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (serving, *ends):
                task.cancel()
            done, *_ = await asyncio.gather(serving, *ends, return_exceptions=True)
        if isinstance(done, Exception):
            raise done


def _user(admission: Admission) -> AuthenticatedUser:
    """The caller as the package knows one: a session is open to the key that began it and to no other."""
    principal = admission.principal
    client_id = admission.credential or "local"
    subject = f"{principal.tenant_id}/{principal.subject}"
    return AuthenticatedUser(AccessToken(token="", client_id=client_id, scopes=[], subject=subject))


def _with_session(scope: Scope, session_id: str) -> Scope:
    name = MCP_SESSION_ID_HEADER.encode()
    kept = [(key, value) for key, value in scope["headers"] if key != name]
    return {**scope, "headers": [*kept, (name, session_id.encode())]}
