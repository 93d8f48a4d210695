"""The life of a connection: how long a client may take over a request's head and over reading an answer. uvicorn has a limit for
idle keep-alive connections only. How many connections there may be stands in connection_table.py.

    waiting ──head complete──► busy ──answer out──► waiting        (a keep-alive connection between two requests)

A connection that waits (it has sent no whole request head) may be closed at any time to make room. One that is busy is never cut
off for another: then the new connection gets a refusal, and asking for health still works.

A gateway that stops drops no request. Its answers say `Connection: close`, so that clients ask elsewhere next; a connection is
closed only after such an answer, or when it has been silent for a while. A request may come just when a silent connection is
closed, which its client cannot tell from a failure: so what has come is looked for once more before.
"""

import asyncio
import select
from collections.abc import Callable
from functools import partial
from typing import Any

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from kit.errors import GroundworkError
from services.gateway.errors import BadHttp, RequestHeadTimeout
from services.gateway.metrics import CONNECTIONS_CUT
from services.gateway.problems import problem_response
from services.gateway.serving.connection_table import ConnectionTable, origin_of, overcrowded
from services.gateway.serving.requests import WEBSOCKET_PATHS
from services.gateway.serving.websockets import WebSocketConnection

_HEALTH_PATHS = frozenset({"/livez", "/readyz"})
_CLOSE = (b"connection", b"close")
_LAST_REQUEST_S = 1.0
"""How long a connection may be silent once the gateway takes no new ones. A client that is at work asks again sooner."""
_RECHECK_S = 0.05
_DISCARD_S = 10.0
"""How long the rest of a body is read and thrown away after the answer, so that the client gets to read the answer."""


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1 with a deadline for a request's head and for each step of reading an answer."""

    def __init__(self, *args: Any, table: ConnectionTable, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table
        self._limits = table.limits
        self.origin: str | None = None
        """Whose it is, by address; None where many come from one."""
        self._expected = ""
        """What the client owes us: "first byte", "head", "next request", "rest of body", or nothing while a request is in hand."""
        self._timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._is_refused = False
        self._is_upgraded = False
        """The transport is a WebSocket's now."""
        made: Any = partial(
            WebSocketConnection, ended=partial(table.leave, self), send_timeout_s=table.limits.send_timeout_s
        )
        self.ws_protocol_class = made  # called as the class would be

    @property
    def _is_busy(self) -> bool:
        if self.cycle is None:
            return False
        return self.flow.write_paused or not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self.origin = origin_of(self.client[0] if self.client else "", self._limits.proxies)
        self.app = _LastAnswer(self.app, self._table)
        refusal = self._table.enter(self)
        if refusal is not None:
            self.app, self._is_refused = _Overcrowded(self.app, refusal), True
            if self._table.is_overrun:
                self._refuse(overcrowded(), "refused")
                return
        self._table.wait(self)
        self._expect("first byte", self._silent_for_s(self._limits.head_timeout_s), self._end_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect("")
        self._cancel_send_timer()
        self._table.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """Notes whether a request is in hand now, and what is expected of the client if not."""
        if self._is_upgraded:
            return
        self._unset_keepalive_if_required()  # our timers do its work
        if self.transport.is_closing():
            return
        if self._is_busy:
            self._expect("")
            self._table.busy(self)
            return
        self._table.wait(self)
        if self.conn.their_state is h11.SEND_BODY:
            self._expect("rest of body", _DISCARD_S, partial(self._cut, "body_unread"))
        elif self.conn.trailing_data[0]:
            self._expect("head", self._limits.head_timeout_s, self._on_head_timeout)
        else:
            self._expect("next request", self._silent_for_s(self._limits.idle_timeout_s), self._end_silent)

    def _silent_for_s(self, usual_s: float) -> float:
        return min(usual_s, _LAST_REQUEST_S) if self._table.is_closed else usual_s

    def _end_silent(self) -> None:
        """Closes a connection that has sent nothing for too long, unless something has come that was not read yet."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        if poll.poll(0):
            self._timer = self.loop.call_later(_RECHECK_S, self._end_silent)
        else:
            self.close("idle")

    def shutdown(self) -> None:
        """uvicorn calls this once it takes no new connections."""
        if self._expected in ("first byte", "next request"):
            what, self._expected = self._expected, ""
            self._expect(what, _LAST_REQUEST_S, self._end_silent)

    def _expect(self, what: str, timeout_s: float = 0.0, otherwise: Callable[[], None] | None = None) -> None:
        """Sets the deadline for `what`; one that runs for the same already is kept, so that a client cannot put it off."""
        if what == self._expected:
            return
        self._expected = what
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if otherwise is not None:
            self._timer = self.loop.call_later(timeout_s, otherwise)

    def _on_head_timeout(self) -> None:
        limit_s = self._limits.head_timeout_s
        self._refuse(
            RequestHeadTimeout(f"the request's head was not complete within {limit_s:g} s; send it in one go"), "head"
        )

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_progress()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel_send_timer()
        self._look()

    def _expect_progress(self) -> None:
        """Cuts the connection off when the client takes nothing of what is to be sent for too long."""
        unsent_bytes = self.transport.get_write_buffer_size()

        def check() -> None:
            if self.transport.get_write_buffer_size() < unsent_bytes:
                self._expect_progress()
            else:
                self._cut("not_reading")

        self._send_timer = self.loop.call_later(self._limits.send_timeout_s, check)

    def _cancel_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _should_upgrade(self) -> bool:
        """Whether a WebSocket is opened here. Elsewhere the guard refuses it: uvicorn would add two warnings to the log."""
        return self._get_upgrade() == b"websocket" and self.scope["path"] in WEBSOCKET_PATHS and not self._is_refused

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """The connection is busy until it ends: it is never closed to make room for another."""
        self._is_upgraded = True
        self._expect("")
        self._table.busy(self)
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        self._refuse(BadHttp(f"{msg} Send HTTP/1.1 with a head of at most 16 KB."), "bad_http")

    def _refuse(self, error: GroundworkError, why: str) -> None:
        """Answers instead of the application, if it has not begun to answer itself, and closes."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            if self.cycle is not None:
                self.cycle.disconnected = True
                self.cycle.message_event.set()
            answer = problem_response(error)
            head = h11.Response(status_code=answer.status_code, headers=[*answer.raw_headers, _CLOSE])
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.close(why)

    def close(self, why: str) -> None:
        """Ends the connection once what was written has been read, if it is read at all."""
        CONNECTIONS_CUT.labels(why).inc()
        self._expect("")
        self._unset_keepalive_if_required()
        if self._send_timer is None and self.transport.get_write_buffer_size():
            self._expect_progress()
        self.transport.close()

    def _cut(self, why: str) -> None:
        """Ends the connection at once."""
        CONNECTIONS_CUT.labels(why).inc()
        self.transport.abort()


class _LastAnswer:
    """The application, whose answers end their connections when the gateway is to stop."""

    def __init__(self, app: ASGIApp, table: ConnectionTable) -> None:
        self._app = app
        self._table = table

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_on(message: Message) -> None:
            await send(_closing(message) if self._table.is_draining else message)

        await self._app(scope, receive, send_on)


def _closing(message: Message) -> Message:
    """The answer's head says that the connection ends with it."""
    headers = list(message.get("headers", ()))
    if message["type"] != "http.response.start" or _CLOSE in headers:
        return message
    return {**message, "headers": [*headers, _CLOSE]}


class _Overcrowded:
    """The application for a connection beyond a limit: it answers health, refuses everything else, and the connection ends."""

    def __init__(self, app: ASGIApp, refusal: GroundworkError) -> None:
        self._app = app
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_and_close(message: Message) -> None:
            await send(_closing(message))

        if scope["path"] in _HEALTH_PATHS:
            await self._app(scope, receive, send_and_close)
            return
        CONNECTIONS_CUT.labels("refused").inc()
        await problem_response(self._refusal)(scope, receive, send_and_close)
