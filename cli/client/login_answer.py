"""Waits on this machine for the browser at the end of a login (RFC 8252, 7.3): one request to an address of the loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

_PAGE = b"<!doctype html><meta charset=utf-8><title>Groundwork</title><p>Done. Go back to the terminal; you can close this page."
_HEAD_LINES_MAX = 100
Given = dict[str, str]


@asynccontextmanager
async def listening(port: int) -> AsyncIterator[tuple[str, Callable[[], Awaitable[Given]]]]:
    """The address that the browser is to come to, and what it brings. `port` 0 takes any. Raises OSError."""
    brought: asyncio.Future[Given] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target = (await reader.readline()).decode("latin-1").split(" ")[1]
            for _ in range(_HEAD_LINES_MAX):
                if not (await reader.readline()).strip():
                    break
            asked = urlsplit(target)
            is_it = asked.path == "/callback"
            status, body = ("200 OK", _PAGE) if is_it else ("404 Not Found", b"")
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
            writer.write(f"{head}Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
            if is_it and not brought.done():
                brought.set_result({name: values[0] for name, values in parse_qs(asked.query).items()})
        except (OSError, ValueError, IndexError):
            pass  # no browser
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port) as door:
        yield f"http://127.0.0.1:{door.sockets[0].getsockname()[1]}/callback", lambda: brought
