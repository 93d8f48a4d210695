"""The way in to `/mcp`. To import the package `mcp` takes 0.8 s of a processor and 18 MB, so the first client has it loaded."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from services.gateway.settings import GatewaySettings
from services.gateway.streams.shares import StreamShares

if TYPE_CHECKING:
    from services.gateway.mcp.sessions import McpSessions


class McpDoor:
    """The ASGI application at `/mcp`."""

    def __init__(self, app: ASGIApp, settings: GatewaySettings, shares: StreamShares, closing: asyncio.Event) -> None:
        """`app`: the whole gateway, which the tools call."""
        self._app = app
        self._settings = settings
        self._shares = shares
        self._closing = closing
        self._wanted = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Serves while the block runs."""
        self._sessions: asyncio.Future[McpSessions] = asyncio.get_running_loop().create_future()
        over = asyncio.Event()
        serving = asyncio.create_task(self._serve(over))
        try:
            yield
        finally:
            over.set()
            if not self._wanted.is_set():
                serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._wanted.set()
        sessions = await asyncio.shield(self._sessions)
        await sessions(scope, receive, send)

    async def _serve(self, over: asyncio.Event) -> None:
        """Loads the sessions when they are wanted, and ends them in the task that began them, as their task groups need."""
        await self._wanted.wait()
        try:
            kind = await asyncio.to_thread(_load)
            sessions = kind(self._app, self._settings, self._shares, self._closing)
            async with sessions.running():
                self._sessions.set_result(sessions)
                await over.wait()
        except Exception as error:
            if self._sessions.done():
                raise
            self._sessions.set_exception(error)


def _load() -> "type[McpSessions]":
    from services.gateway.mcp.sessions import McpSessions  # noqa: PLC0415 - see above

    return McpSessions
