"""A small HTTP server that answers as a test says, byte for byte, and remembers what it was asked."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Asked:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class HttpServer:
    """`answer` gives the bytes of the whole answer; None: it hangs up without one."""

    answer: Callable[[Asked], bytes | None]
    ends: asyncio.Event | None = None
    """If set, what the answer begins is not ended before this."""
    asked: list[Asked] = field(default_factory=list)
    port: int = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


def said(text: str, status: str = "200 OK", content_type: str = "text/plain", **headers: str) -> bytes:
    """A whole answer."""
    body = text.encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


@asynccontextmanager
async def http_server(server: HttpServer) -> AsyncIterator[HttpServer]:
    """Listens on a free port of 127.0.0.1."""
    open_connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_connections.add(task)
        task.add_done_callback(open_connections.discard)
        try:
            await _serve(server, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server
        await asyncio.gather(*open_connections)


async def _serve(server: HttpServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, target, _ = first.split()
    server.asked.append(Asked(method, target, headers, body))
    answer = server.answer(server.asked[-1])
    if answer is None:
        return
    writer.write(answer)
    await writer.drain()
    if server.ends is not None:
        await server.ends.wait()
    writer.close()
    await writer.wait_closed()
