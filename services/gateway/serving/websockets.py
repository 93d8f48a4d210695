"""A connection that has become a WebSocket: uvicorn's protocol, with a deadline for a client that reads nothing."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from services.gateway.metrics import CONNECTIONS_CUT


class WebSocketConnection(WebSocketsSansIOProtocol):
    """One WebSocket. A client that takes nothing of what is to be sent for `send_timeout_s` is cut off, as over HTTP."""

    def __init__(self, *args: Any, ended: Callable[[], None], send_timeout_s: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = logging.getLogger("groundwork.websocket")  # the handshake is in the gateway's own log
        self.logger.setLevel(
            logging.CRITICAL
        )  # it takes a refused handshake for an error; real ones are logged by the edge
        self._ended = ended
        self._send_timeout_s = send_timeout_s
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_send_timer()
        self._ended()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._send_timer = self.loop.call_later(self._send_timeout_s, self._cut)

    def resume_writing(self) -> None:
        self._cancel_send_timer()
        super().resume_writing()

    def _cut(self) -> None:
        CONNECTIONS_CUT.labels("not_reading").inc()
        self.transport.abort()

    def _cancel_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None
