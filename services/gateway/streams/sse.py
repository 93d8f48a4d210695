"""Server-sent events (WHATWG HTML, section 9.2): a small encoder, and an answer that stays alive through silence, ends when
the client hangs up or the gateway drains, and always closes the stream behind it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kit.errors import GroundworkError
from kit.observability.telemetry import current_trace_id
from services.gateway.access.auth import admission_in
from services.gateway.metrics import EVENT_STREAMS
from services.gateway.models import RunEvent
from services.gateway.problems import problem, unknown_error

EVENT_STREAM = "text/event-stream"
PING = b": ping\n\n"
_RETRY = b"retry: 1000\n\n"
_QUEUE_EVENTS = 64
"""Events read ahead of a slow client. Beyond it the service's stream is held back by gRPC's flow control."""

_log = structlog.get_logger()


class Encoded(Protocol):
    """Anything that knows its bytes on the wire."""

    def encoded(self) -> bytes:
        """One or more whole events."""
        ...


@dataclass(frozen=True)
class ServerSentEvent:
    """One event. Without an id the client's Last-Event-ID stays as it was."""

    event: str
    data: Mapping[str, Any]
    id: str | None = None

    def encoded(self) -> bytes:
        """The event on the wire. JSON escapes line breaks, so data is one line."""
        data = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        head = f"id: {self.id}\n" if self.id is not None else ""
        return f"{head}event: {self.event}\ndata: {data}\n\n".encode("utf-8", "replace")


def of_run(event: RunEvent) -> ServerSentEvent:
    """A run's event, its seq as the id."""
    return ServerSentEvent(event.kind, event.data, str(event.seq))


@dataclass(frozen=True)
class Unresumable:
    """How a stream ends when its client cannot read on after a break. Clients of OpenAI's API cannot."""

    tell: Callable[[GroundworkError], Encoded]
    """Makes the last event of a stream that is broken off."""
    restarts: GroundworkError
    """Why the stream is broken off when the gateway closes."""
    hung_up: Callable[[], Awaitable[None]]
    """Called when the client has gone before the last event."""
    closes_after_s: float
    """Seconds that the stream may go on while the gateway closes."""


class EventStream(Response):
    """Sends events as they come. `events` must raise nothing but bugs; `closing` ends the stream so that clients reconnect
    elsewhere; hanging up closes `events`. When the caller's key is revoked or expires, the last event is an `error` saying so."""

    media_type = EVENT_STREAM

    def __init__(
        self,
        events: AsyncIterator[Encoded],
        *,
        ping_interval_s: float,
        closing: asyncio.Event,
        headers: Mapping[str, str] | None = None,
        unresumable: Unresumable | None = None,
    ) -> None:
        """With `unresumable` no reconnection time is sent: clients of other APIs take that for an event."""
        # A stream must never be stored or held back by a proxy.
        no_store = {"Cache-Control": "no-cache, no-store", "X-Accel-Buffering": "no"}
        super().__init__(None, headers={**no_store, **(headers or {})})
        del self.headers["content-length"]
        self._events = events
        self._ping_interval_s = ping_interval_s
        self._closing = closing
        self._unresumable = unresumable

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUE_EVENTS)
        with EVENT_STREAMS.track_inprogress():
            async with asyncio.TaskGroup() as group:
                pump = group.create_task(self._pump(queue))
                writer = group.create_task(self._write(queue, send))
                gone = group.create_task(until_gone(receive))
                closing = group.create_task(self._closed())
                shut_out = group.create_task(refused(scope))
                await asyncio.wait({writer, gone, closing, shut_out}, return_when=asyncio.FIRST_COMPLETED)
                is_broken = not pump.done()
                for task in (pump, writer, gone, closing, shut_out):
                    task.cancel()
            if not shut_out.cancelled():
                await self._tell(shut_out.result(), send)
            elif not closing.cancelled() and self._unresumable and is_broken:
                await self._tell(self._unresumable.restarts, send)
            if gone.cancelled():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            elif self._unresumable and is_broken:
                await self._unresumable.hung_up()

    async def _closed(self) -> None:
        await self._closing.wait()
        if self._unresumable:
            await asyncio.sleep(self._unresumable.closes_after_s)

    async def _tell(self, error: GroundworkError, send: Send) -> None:
        """The headers are out: only an event can tell. It has no id, so that another key may go on from the last event."""
        if self._unresumable:
            event = self._unresumable.tell(error)
        else:
            body = problem(error)
            event = ServerSentEvent("error", {**body, "message": body["detail"]})
        with suppress(OSError):
            await send({"type": "http.response.body", "body": event.encoded(), "more_body": True})

    async def _pump(self, queue: asyncio.Queue[bytes | None]) -> None:
        if not self._unresumable:
            await queue.put(_RETRY)
        try:
            async with aclosing(self._events) as events:  # type: ignore[type-var] # streams are async generators
                async for event in events:
                    await queue.put(event.encoded())
        except Exception as error:
            trace_id = current_trace_id()
            _log.error("event_stream_failed", trace_id=trace_id, exc_info=error)
            await queue.put(ServerSentEvent("error", problem(unknown_error(trace_id))).encoded())
        await queue.put(None)

    async def _write(self, queue: asyncio.Queue[bytes | None], send: Send) -> None:
        while True:
            try:
                async with asyncio.timeout(self._ping_interval_s):
                    piece: bytes | None = await queue.get()
            except TimeoutError:
                piece = PING
            # What has gathered goes out in one piece: a burst of events costs little more than one.
            pieces = [piece]
            while pieces[-1] is not None and not queue.empty():
                pieces.append(queue.get_nowait())
            try:
                if body := b"".join(each for each in pieces if each is not None):
                    await send({"type": "http.response.body", "body": body, "more_body": True})
            except OSError:
                return
            if pieces[-1] is None:
                return


async def refused(scope: Scope) -> GroundworkError:
    """Returns once the caller's key is not good any more; not at all where there is none."""
    admission = admission_in(scope)
    if admission is None or admission.ended is None:
        never: asyncio.Future[GroundworkError] = asyncio.get_running_loop().create_future()
        return await never
    return await admission.ended()


async def until_gone(receive: Receive) -> None:
    """Returns once the client has hung up. Its body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
