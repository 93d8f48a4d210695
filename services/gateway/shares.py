"""What one tenant may take of the event streams: they last, so a client that opens many would leave no connection to the others."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Depends, Request

from kit.principal import Principal
from services.gateway.auth import authenticated
from services.gateway.errors import TooManyEventStreams
from services.gateway.sse import EVENT_STREAM


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
    if EVENT_STREAM not in request.headers.get("accept", "").lower():
        yield
        return
    with _shares(request).place(principal.tenant_id):
        yield


def _shares(request: Request) -> StreamShares:
    shares: StreamShares = request.app.state.stream_shares
    return shares


STREAM_PLACE: Any = Depends(_place)
"""For a route that answers with an event stream: a place is held from before the route begins until the answer is out."""

STREAM_PLACE_IF_STREAMED: Any = Depends(_place_if_streamed)
"""The same for a route that streams only to who accepts it."""
