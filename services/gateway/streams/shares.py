"""What one tenant may take of the event streams: they last, so a client that opens many would leave no connection to the others."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any

from fastapi import Depends, Request

from kit.access.principal import Principal
from services.gateway.access.auth import authenticated
from services.gateway.errors import TooManyEventStreams
from services.gateway.streams.sse import EVENT_STREAM


class StreamShares:
    """Event streams that are open here, by tenant."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def place(self, tenant_id: str) -> Iterator[None]:
        """Holds a place while the block runs. Raises TooManyEventStreams."""
        if self._open[tenant_id] >= self._most:
            raise TooManyEventStreams(
                f"{self._most} event streams are open on this gateway, as many as one tenant may have; close some, or ask without "
                "a stream. The operator may raise GROUNDWORK_MAX_EVENT_STREAMS"
            )
        self._open[tenant_id] += 1
        try:
            yield
        finally:
            self._open[tenant_id] -= 1
            if not self._open[tenant_id]:
                del self._open[tenant_id]


async def _place(request: Request, principal: Annotated[Principal, Depends(authenticated)]) -> AsyncIterator[None]:
    with _shares(request).place(principal.tenant_id):
        yield


async def _place_if_streamed(
    request: Request, principal: Annotated[Principal, Depends(authenticated)]
) -> AsyncIterator[None]:
    place = _shares(request).place(principal.tenant_id) if wants_stream(request.headers) else nullcontext()
    with place:
        yield


async def _place_unless_json(
    request: Request, principal: Annotated[Principal, Depends(authenticated)]
) -> AsyncIterator[None]:
    place = nullcontext() if wants_json(request.headers) else _shares(request).place(principal.tenant_id)
    with place:
        yield


async def _place_if_asked(
    request: Request, principal: Annotated[Principal, Depends(authenticated)]
) -> AsyncIterator[None]:
    body = await request.json()
    is_streamed = isinstance(body, dict) and body.get("stream") is True
    with _shares(request).place(principal.tenant_id) if is_streamed else nullcontext():
        yield


def wants_stream(headers: Mapping[str, str]) -> bool:
    """Whether the client names event streams among what it accepts."""
    return EVENT_STREAM in headers.get("accept", "").lower()


def wants_json(headers: Mapping[str, str]) -> bool:
    """Whether the client names JSON among what it accepts, and event streams not."""
    return "application/json" in headers.get("accept", "").lower() and not wants_stream(headers)


def _shares(request: Request) -> StreamShares:
    shares: StreamShares = request.app.state.stream_shares
    return shares


STREAM_PLACE: Any = Depends(_place)
"""For a route that answers with an event stream: a place is held from before the route begins until the answer is out."""

STREAM_PLACE_IF_STREAMED: Any = Depends(_place_if_streamed)
"""The same for a route that streams only to who accepts it."""

STREAM_PLACE_UNLESS_JSON: Any = Depends(_place_unless_json)
"""The same for a route that streams to all but those who ask for JSON."""

STREAM_PLACE_IF_ASKED: Any = Depends(_place_if_asked)
"""The same for a route that streams where its body says `"stream": true`."""
