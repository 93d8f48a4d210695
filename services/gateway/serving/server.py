"""The HTTP server: uvicorn on the running loop, without its own ideas about signals and logging."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from kit.errors import FailedPrecondition
from services.gateway.serving.connection_table import ConnectionLimits, ConnectionTable
from services.gateway.serving.connections import Connection


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, table: ConnectionTable, *, shares_door: bool) -> None:
        super().__init__(config)
        self._table = table
        self._shares_door = shares_door

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are kit.process.service's."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Takes no new connections; those that are here end by themselves, or with the grace (connections.py)."""
        self._table.is_closed = True
        waiting = [] if self._shares_door else [each for door in sockets or () for each in _waiting_at(door)]
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for each in waiting:
            await loop.connect_accepted_socket(self._connection, each)
        await super().shutdown(sockets)

    def _connection(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(self.config, self.server_state, self.lifespan.state)
        return protocol


def _waiting_at(door: socket.socket) -> Iterator[socket.socket]:
    """Connections in the queue of a listening socket. The system resets them when the last who has it closes it."""
    with contextlib.suppress(OSError):
        while True:
            accepted, _ = door.accept()
            yield accepted


class HttpServer:
    """Serves an application on a socket that is bound already. One that others have too (`shares_door`) is left to them with all
    who wait in its queue."""

    def __init__(
        self,
        app: ASGIApp,
        door: socket.socket,
        limits: ConnectionLimits,
        *,
        grace_s: float,
        shares_door: bool = False,
        max_message_bytes: int = 1024 * 1024,
    ) -> None:
        """`max_message_bytes`: largest message of a WebSocket."""
        self._socket = door
        self._table = ConnectionTable(limits)
        connect: Any = partial(Connection, table=self._table)
        config = uvicorn.Config(
            app,
            http=cast("type[asyncio.Protocol]", connect),  # called as the class would be
            ws=WebSocketsSansIOProtocol,
            ws_max_size=max_message_bytes,
            ws_per_message_deflate=False,  # its window costs memory for each connection, and sound does not shrink
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=limits.idle_timeout_s,  # type: ignore[arg-type] # a number of seconds for call_later
            timeout_graceful_shutdown=max(1, round(grace_s)),
        )
        self._server = _Server(config, self._table, shares_door=shares_door)

    @property
    def host(self) -> str:
        """The address that it listens on."""
        host: str = self._socket.getsockname()[0]
        return host

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    async def serve(self, stopping: asyncio.Event, closing: asyncio.Event) -> None:
        """From `stopping` on each answer is the last one of its connection. Serves until `closing` is set, then until the last
        answer is out or the grace is over."""
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(self._server.serve([self._socket]))
            draining = group.create_task(self._drain(stopping, closing))
            await asyncio.wait({serving, draining}, return_when=asyncio.FIRST_COMPLETED)
            self._server.should_exit = True
            draining.cancel()

    async def _drain(self, stopping: asyncio.Event, closing: asyncio.Event) -> None:
        await stopping.wait()
        self._table.is_draining = True
        await closing.wait()


def bind(host: str, port: int) -> socket.socket:
    """Opens the HTTP port. Done first of all, so that one in use is known before anything is started."""
    door: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        door = socket.socket(family, kind, protocol)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
    except OSError as error:
        if door:
            door.close()
        raise FailedPrecondition(
            f"the HTTP API cannot listen on {host}:{port} ({error.strerror or error}); "
            "stop what is using it or set GROUNDWORK_PORT and GROUNDWORK_HOST",
            reason="ADDRESS_IN_USE",
        ) from error
    door.setblocking(False)
    return door


def inherited(descriptor: int) -> socket.socket:
    """The listening socket that the parent process has opened. Raises FailedPrecondition when it is none."""
    try:
        door = socket.socket(fileno=descriptor)
    except OSError as error:
        raise _not_listening(descriptor, error.strerror or str(error)) from error
    is_tcp = door.family in (socket.AF_INET, socket.AF_INET6) and door.type == socket.SOCK_STREAM
    if not is_tcp or not door.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        door.detach()  # it is somebody else's
        raise _not_listening(descriptor, "it is of another kind, or does not listen")
    door.setblocking(False)
    return door


def _not_listening(descriptor: int, why: str) -> FailedPrecondition:
    return FailedPrecondition(
        f"file descriptor {descriptor} is no listening TCP socket ({why}); unset GROUNDWORK_LISTEN_FD, or start the gateway from a "
        "supervisor that hands one over",
        reason="NO_LISTENING_SOCKET",
    )
