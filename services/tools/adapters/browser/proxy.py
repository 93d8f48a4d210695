"""The only way from the browser to the network: a proxy that looks each name up itself, judges every address, and connects to the
address that was judged. It listens on a socket in a folder of the task, which a process without a network can reach, too."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import h11

from kit.errors import GroundworkError
from kit.network.egress import EgressGuard, Place, UrlRefused, place_of
from services.tools.outside.hosts import web_host_is_listed

BYTES_MAX = 96 * 1024 * 1024
"""Of a task, both ways: many times what a heavy page takes."""
CONNECTIONS_MAX = 64
_SILENT = 410
_CONNECT_TIMEOUT_S = 8.0
_IDLE_TIMEOUT_S = 30.0
_PIECE_BYTES = 64 * 1024
_READING = (b"GET", b"HEAD", b"OPTIONS")
_OF_CHROMIUM = frozenset(
    f"{name}.{domain}"
    for domain, names in {
        "googleapis.com": ("update", "safebrowsing", "optimizationguide-pa", "content-autofill"),
        "google.com": ("clients2", "accounts"),
    }.items()
    for name in names
)
"""What Chromium asks for itself: no page of a task does."""
_OF_ONE_CONNECTION = {b"connection", b"proxy-connection", b"keep-alive", b"upgrade", b"te", b"trailer"}


class _Refused(Exception):
    """The request is not let out."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class BrowserProxy:
    """Carries the requests of one task. `refused` names what was not let out."""

    def __init__(self, guard: EgressGuard, hosts: tuple[str, ...], *, may_submit: bool) -> None:
        """`hosts` as in the setting tools_web_hosts."""
        self._guard, self._hosts, self._may_submit = guard, hosts, may_submit
        self._bytes_left = BYTES_MAX
        self._turns = asyncio.Semaphore(CONNECTIONS_MAX)
        self.refused: dict[str, str] = {}

    @asynccontextmanager
    async def listening(self, path: Path) -> AsyncIterator[None]:
        """Listens at the path for the block, and cuts every connection at its end."""
        open_connections: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            open_connections.add(task)
            try:
                async with self._turns:
                    await self._serve(reader, writer)
            except (OSError, TimeoutError, EOFError, h11.ProtocolError):
                pass  # one side went away
            finally:
                open_connections.discard(task)
                writer.transport.abort()

        server = await asyncio.start_unix_server(serve, path)
        try:
            yield
        finally:
            server.close()
            ending = list(open_connections)
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request: the browser makes a connection for each."""
        side = h11.Connection(h11.SERVER)
        request = await _next_event(side, reader)
        if not isinstance(request, h11.Request):
            return
        target = request.target.decode("ascii", "replace")
        try:
            if request.method == b"CONNECT":
                there, back = await self._connect(_tunnel_place(target))
            else:
                place = self._judged(request, target)
                there, back = await self._connect(place)
        except _Refused as refused:
            if refused.status != _SILENT:
                self.refused.setdefault(target[:200], str(refused))
            await _answer(side, writer, refused.status, str(refused))
            return
        try:
            if request.method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                early = side.trailing_data[0]
                await self._relay(early, reader, writer, there, back)
            else:
                await self._forward(side, request, reader, writer, there, back)
        finally:
            back.transport.abort()

    def _judged(self, request: h11.Request, target: str) -> Place:
        if request.method not in _READING and not self._may_submit:
            raise _Refused(403, "it would submit something")
        try:
            place = place_of(target)
        except UrlRefused as error:
            raise _Refused(403, error.message) from error
        if place.scheme != "http":
            raise _Refused(403, "only plain requests and tunnels are carried")
        return place

    async def _connect(self, place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To the first judged address that answers. Raises _Refused."""
        if place.host in _OF_CHROMIUM:
            raise _Refused(_SILENT, "the browser asks for itself")
        if not web_host_is_listed(place, self._hosts):
            raise _Refused(403, f"{place.host}, port {place.port}, is not a web site that this installation reads")
        try:
            addresses = await self._guard.addresses(place.host, place.port)
        except GroundworkError as error:
            raise _Refused(403, error.message) from error
        for address in addresses:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    return await asyncio.open_connection(address, place.port)
        raise _Refused(502, f"{place.host} does not answer")

    async def _forward(
        self,
        side: h11.Connection,
        request: h11.Request,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        there: asyncio.StreamReader,
        back: asyncio.StreamWriter,
    ) -> None:
        """A request in the clear: each goes over a connection of its own, so that the next one is judged anew."""
        outside = h11.Connection(h11.CLIENT)
        headers = [(name, value) for name, value in request.headers if name not in _OF_ONE_CONNECTION]
        path = b"/" + request.target.split(b"://", 1)[1].partition(b"/")[2]
        asked = h11.Request(method=request.method, target=path, headers=[*headers, (b"Connection", b"close")])
        back.write(outside.send(asked) or b"")
        while not isinstance(event := await _next_event(side, reader), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                return
            self._count(len(event.data))
            back.write(outside.send(event) or b"")
            await back.drain()
        back.write(outside.send(event) or b"")
        await back.drain()
        while True:
            answer = await _next_event(outside, there)
            if isinstance(answer, h11.InformationalResponse):
                continue
            if not isinstance(answer, h11.Response | h11.Data | h11.EndOfMessage):
                return
            if isinstance(answer, h11.Response):
                kept = [(name, value) for name, value in answer.headers if name not in _OF_ONE_CONNECTION]
                answer = h11.Response(
                    status_code=answer.status_code, headers=[*kept, (b"Connection", b"close")], reason=answer.reason
                )
            if isinstance(answer, h11.Data):
                self._count(len(answer.data))
            writer.write(side.send(answer) or b"")
            await writer.drain()
            if isinstance(answer, h11.EndOfMessage):
                return

    async def _relay(
        self,
        early: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        there: asyncio.StreamReader,
        back: asyncio.StreamWriter,
    ) -> None:
        back.write(early)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._copy(reader, back))
            group.create_task(self._copy(there, writer))

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while piece := await source.read(_PIECE_BYTES):
            self._count(len(piece))
            sink.write(piece)
            await sink.drain()
        with contextlib.suppress(OSError):  # the other side has gone already
            sink.write_eof()

    def _count(self, size_bytes: int) -> None:
        self._bytes_left -= size_bytes
        if self._bytes_left < 0:
            self.refused.setdefault("more data", f"a task carries {BYTES_MAX // 1024**2} MiB")
            raise EOFError


def _tunnel_place(target: str) -> Place:
    try:
        return place_of(f"https://{target}")
    except UrlRefused as error:
        raise _Refused(403, error.message) from error


async def _next_event(side: h11.Connection, reader: asyncio.StreamReader) -> object:
    while (event := side.next_event()) is h11.NEED_DATA:
        async with asyncio.timeout(_IDLE_TIMEOUT_S):
            side.receive_data(await reader.read(_PIECE_BYTES))
    return event


async def _answer(side: h11.Connection, writer: asyncio.StreamWriter, status: int, why: str) -> None:
    body = why.encode()
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
        writer.write(side.send(event) or b"")
    await writer.drain()
