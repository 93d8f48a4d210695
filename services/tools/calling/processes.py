"""Plain functions run in processes of their own. One that takes too long is killed with its process: a thread that hangs could not
be. A process is used again, and ends when it was idle for minutes; starting one, and importing the tool there, may take longer than
the tool's own limit, and is not counted against it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio.to_process

from kit.deadline import bounded_timeout_s
from services.tools.calling.folders import load, place_of
from services.tools.errors import ToolsBusy

_START_S = 15.0
"""Longest wait for a process and for its start, which takes a tenth of a second where nothing else runs."""


class Processes:
    """At most `count` processes."""

    def __init__(self, count: int) -> None:
        self._slots = asyncio.Semaphore(count)
        self._count = count
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, function: Callable[..., Any], arguments: Mapping[str, Any], timeout_s: float) -> Any:
        """What the function returns or raises. Raises TimeoutError when it took longer than `timeout_s`, ToolsBusy when there was
        no process for it."""
        place = place_of(function.__module__)
        async with self._ready(place), asyncio.timeout(timeout_s):
            return await self._in_process(_call, place, function.__qualname__, dict(arguments))

    @asynccontextmanager
    async def _ready(self, place: tuple[str, str]) -> AsyncIterator[None]:
        """A process that has imported the tool is there for the block."""
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(bounded_timeout_s(_START_S)):
                    await stack.enter_async_context(self._slots)
                    await self._in_process(_prepare, place)
            except TimeoutError as error:
                raise ToolsBusy("there was no process for the tool in time; try again in a moment") from error
            yield

    async def _in_process(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self._limiter = self._limiter or anyio.CapacityLimiter(self._count)
        return await anyio.to_process.run_sync(function, *arguments, cancellable=True, limiter=self._limiter)


def _prepare(place: tuple[str, str]) -> None:
    load(place)


def _call(place: tuple[str, str], function: str, arguments: dict[str, Any]) -> Any:
    return getattr(load(place), function)(**arguments)
