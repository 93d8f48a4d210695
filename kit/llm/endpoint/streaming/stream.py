"""The chunks of a streamed completion, out of the bytes of its response."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import httpx

from kit.llm.endpoint.bounds import OutOfTime
from kit.llm.endpoint.failures import Failures
from kit.llm.endpoint.streaming.decoding import error_of, parsed
from kit.llm.endpoint.streaming.sse import Line, LineReader

_LONGEST_LINE_BYTES = 8 * 1024 * 1024
_LEFTOVER_S = 0.05
"""Longest wait for the end of a stream behind [DONE]: a connection that was read to its end is used again."""
_END = "[DONE]"

Wait = Callable[[Awaitable[bytes | None]], Awaitable[bytes | None]]
"""Awaits the next bytes (None: there are no more), for as long as they may take. Raises OutOfTime."""


async def chunks_of(response: httpx.Response, failures: Failures, wait: Wait) -> AsyncGenerator[Any, None]:
    """The JSON of each event, up to [DONE] or the end of the stream.

    Raises WrongEndpoint for what is no event stream, what an event says that is an error, and ModelUnavailable for what is no
    JSON.
    """
    async with aclosing(_lines_of(response, failures, wait)) as lines:
        async for line in lines:
            if not line.field:
                raise failures.of_other_content(response.headers.get("content-type", ""), line.value)
            if line.field not in {"data", "error"} or not line.value:
                continue
            if line.value.strip() == _END:
                await _read_leftover(lines)
                return
            try:
                chunk = parsed(line.value)
            except ValueError as error:
                raise failures.bad_answer("sent something that is not a completion") from error
            error_said = chunk if line.field == "error" else error_of(chunk)
            if error_said:
                raise failures.of_error_in_stream(error_said)
            yield chunk


async def _lines_of(response: httpx.Response, failures: Failures, wait: Wait) -> AsyncGenerator[Line, None]:
    reader = LineReader()
    async with aclosing(response.aiter_bytes()) as blocks:  # type: ignore[type-var] # a generator in fact
        while (block := await wait(anext(blocks, None))) is not None:
            for line in reader.feed(block):
                yield line
            if reader.held_bytes > _LONGEST_LINE_BYTES:
                raise failures.bad_answer("sent a line without end")
    for line in reader.finish():
        yield line


async def _read_leftover(lines: AsyncIterator[Line]) -> None:
    try:
        async with asyncio.timeout(_LEFTOVER_S):
            async for _ in lines:
                return  # more behind the end: not worth waiting for
    except (TimeoutError, OutOfTime, httpx.HTTPError):
        pass
