"""How MCP servers are reached: by a program's standard input and output, or by HTTP through the guard of kit.network.egress. What
they send is bounded before it is read whole."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpcore2
import httpx2
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from kit.network.egress import EgressGuard, GuardedBackend

MESSAGE_BYTES_MAX = 1024 * 1024
"""Of one message. A result of more than a fifth of it is passed on to no model anyway."""
_HTTP_BYTES_MAX = 2 * MESSAGE_BYTES_MAX
"""Of one HTTP answer: progress comes before the result."""
_KILL_AFTER_S = 2.0
_STDERR_BYTES_KEPT = 4096
Streams = tuple[Any, Any]


@dataclass
class Trouble:
    """What may explain why a connection failed."""

    written: bytearray = field(default_factory=bytearray)
    """The end of what a program wrote to standard error."""
    status: int = 0
    """Of the last HTTP answer to a message."""
    is_ended: bool = False
    """Whether the program says nothing more."""

    async def note(self, response: httpx2.Response) -> None:
        """Takes in an HTTP answer."""
        if response.request.method == "POST":
            self.status = response.status_code

    @property
    def is_forgotten(self) -> bool:
        """Whether the server did not know the session any more, and so did nothing of what was last asked for in it."""
        return self.status == httpx2.codes.NOT_FOUND


@asynccontextmanager
async def program(
    command: Sequence[str], environment: Mapping[str, str], trouble: Trouble
) -> AsyncGenerator[Streams, None]:
    """The streams of messages to a program that is started for the block. It gets the PATH and the like, and `environment`."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**get_default_environment(), **environment},
        limit=MESSAGE_BYTES_MAX,
        start_new_session=True,
    )
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(_keep_tail(process, trouble.written))
        try:
            async with _pumped(process, trouble) as streams:
                yield streams
        finally:
            await _end(process, reading)


async def _keep_tail(process: asyncio.subprocess.Process, written: bytearray) -> None:
    assert process.stderr is not None
    while piece := await process.stderr.read(_STDERR_BYTES_KEPT):
        written += piece
        del written[:-_STDERR_BYTES_KEPT]


@asynccontextmanager
async def _pumped(process: asyncio.subprocess.Process, trouble: Trouble) -> AsyncGenerator[Streams, None]:
    to_us, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_us = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        assert process.stdout is not None
        async with to_us:
            with contextlib.suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                while line := await process.stdout.readline():  # ValueError: longer than the limit
                    await to_us.send(_message(line))
            trouble.is_ended = True

    async def write() -> None:
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            async for message in from_us:
                process.stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()

    async with anyio.create_task_group() as group, from_server, to_server, from_us:
        group.start_soon(read)
        group.start_soon(write)
        yield from_server, to_server
        group.cancel_scope.cancel()


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _end(process: asyncio.subprocess.Process, reading: asyncio.Task[None]) -> None:
    """Ends the program and all that it has started, and then `reading`, which a process that got away could keep waiting."""
    if process.stdin is not None:
        process.stdin.close()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    with anyio.CancelScope(shield=True), contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_KILL_AFTER_S):
            await asyncio.wait({reading})
            await process.wait()
    reading.cancel()


def guarded_client(
    guard: EgressGuard, headers: Mapping[str, str], timeout_s: float, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    """An HTTP client that reaches what the guard permits, follows no redirect to elsewhere, and reads no more than it should."""
    transport = httpx2.AsyncHTTPTransport(trust_env=False)
    # httpx2 has no option for the network of its pool, as httpcore2 has. A test connects to what must be refused.
    transport._pool = httpcore2.AsyncConnectionPool(
        ssl_context=httpx2.create_ssl_context(trust_env=False),
        network_backend=GuardedBackend(httpcore2.AnyIOBackend(), guard),  # type: ignore[arg-type] # the same methods
    )
    return httpx2.AsyncClient(
        transport=_Bounded(transport),
        # Not compressed: a small answer could unfold to gigabytes.
        headers={"User-Agent": "groundwork", "Accept-Encoding": "identity", **headers},
        timeout=timeout_s,
        trust_env=False,
        auth=auth,
    )


class _Bounded(httpx2.AsyncBaseTransport):
    """Breaks off answers that are too large, or compressed although that was not asked for."""

    def __init__(self, inside: httpx2.AsyncBaseTransport) -> None:
        self._inside = inside

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inside.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("the answer is compressed, which was not asked for", request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Counted(response.stream, request),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inside.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, inside: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._inside = inside
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size_bytes = 0
        async for piece in self._inside:
            size_bytes += len(piece)
            if size_bytes > _HTTP_BYTES_MAX:
                raise httpx2.ReadError(f"the answer has more than {_HTTP_BYTES_MAX} bytes", request=self._request)
            yield piece

    async def aclose(self) -> None:
        await self._inside.aclose()
