"""A WebSocket of a verified caller, from its handshake to its end: the checks of every other route, a place among the tenant's
streams, and the reasons to close that no route decides: the gateway drains, the caller's key is not good any more, nobody says
anything."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from kit.access.principal import QUERY
from kit.errors import GroundworkError
from services.gateway.access.audit import AuditLog
from services.gateway.access.auth import KEY_PROTOCOL, admission_of, note_refusal
from services.gateway.backends import Backends
from services.gateway.metrics import WEBSOCKETS
from services.gateway.serving.requests import refuse
from services.gateway.streams.shares import StreamShares
from services.gateway.streams.sse import refused

NORMAL, POLICY_VIOLATION, SERVICE_RESTART = 1000, 1008, 1012
"""RFC 6455, section 7.4.1, and its registry."""


class ClientSocket:
    """What a conversation over a WebSocket needs of it."""

    def __init__(self, socket: WebSocket, audit: AuditLog) -> None:
        self._socket = socket
        self._audit = audit

    async def tell(self, message: Mapping[str, Any]) -> None:
        """Sends an object as JSON. Raises WebSocketDisconnect."""
        try:
            await self._socket.send_text(json.dumps(message, ensure_ascii=False, separators=(",", ":")))
        except RuntimeError as error:  # closed from here meanwhile
            raise WebSocketDisconnect(NORMAL) from error

    async def send(self, sound: bytes) -> None:
        """Sends sound as it is. Raises WebSocketDisconnect."""
        try:
            await self._socket.send_bytes(sound)
        except RuntimeError as error:  # closed from here meanwhile
            raise WebSocketDisconnect(NORMAL) from error

    async def receive(self) -> str | bytes:
        """The next message. Raises WebSocketDisconnect."""
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", NORMAL))
        data: str | bytes | None = message.get("text")
        return message["bytes"] if data is None else data

    def note_turn(self) -> None:
        """Has the audit log know that the caller has asked for something."""
        self._audit.request(self._socket.scope, 200)


async def next_message(socket: ClientSocket, silent_for_s: float, is_busy: Callable[[], bool]) -> str | bytes | None:
    """The next message; None when the client was silent for so long while nothing went on. Raises WebSocketDisconnect."""
    while True:
        try:
            async with asyncio.timeout(silent_for_s):
                return await socket.receive()
        except TimeoutError:
            if not is_busy():
                return None


Converse = Callable[[ClientSocket], Awaitable[None]]
"""Serves one client until it goes, or has said nothing for too long. Raises WebSocketDisconnect."""


ClosingEvent = Callable[[GroundworkError], Mapping[str, Any]]
"""Makes the last message that a client gets before its connection is closed."""


async def serve(
    socket: WebSocket, services: Backends, protocol: str, converse: Converse, closing_event: ClosingEvent
) -> None:
    """Opens the WebSocket, if the caller may have one, and serves it to its end. `protocol`: the one that is chosen where a client
    offers several."""
    scope, state = socket.scope, socket.app.state
    shares: StreamShares = state.stream_shares
    try:
        principal = admission_of(scope).principal
        principal.require(QUERY)
        with shares.place(principal.tenant_id), WEBSOCKETS.track_inprogress():
            await socket.accept(protocol if protocol in scope["subprotocols"] else _plain(scope["subprotocols"]))
            await _until_over(socket, services, converse(ClientSocket(socket, state.audit)), closing_event)
    except GroundworkError as error:
        note_refusal(scope, error)
        await refuse(error, scope, socket.receive, socket.send)


def _plain(offered: list[str]) -> str | None:
    """A subprotocol that holds no key."""
    return next((each for each in offered if not each.startswith(KEY_PROTOCOL)), None)


async def _until_over(
    socket: WebSocket, services: Backends, conversation: Awaitable[None], closing_event: ClosingEvent
) -> None:
    serving = asyncio.ensure_future(conversation)
    closing = asyncio.ensure_future(services.closing.wait())
    ended = asyncio.ensure_future(refused(socket.scope))
    tasks = (serving, closing, ended)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if ended.done() and not ended.cancelled():
        error = ended.result()
        await _close(socket, POLICY_VIOLATION, error.reason, closing_event(error))
    elif closing.done() and not closing.cancelled():
        await _close(socket, SERVICE_RESTART, "the gateway restarts: connect again")
    elif not serving.cancelled() and (failure := serving.exception()) and not isinstance(failure, WebSocketDisconnect):
        raise failure
    else:
        await _close(socket, NORMAL, "")


async def _close(socket: WebSocket, code: int, reason: str, last: Mapping[str, Any] | None = None) -> None:
    if WebSocketState.DISCONNECTED in (socket.client_state, socket.application_state):
        return
    try:
        if last is not None:
            await ClientSocket(socket, socket.app.state.audit).tell(last)
        await socket.close(code, reason)
    except (RuntimeError, WebSocketDisconnect):
        return
