"""Kills and turns: every call of a fake is a point at which its caller may die, and at which another may go first."""

import asyncio
import inspect
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from tests.unit.ingest.world import Crash, World


class Process:
    """Stands for a process. After so many calls of fakes it is dead: none of its tasks can write anything any more. The higher its
    pace, the longer others may go first at each call."""

    def __init__(self, calls_left: int | None, pace: int) -> None:
        self._calls_left = calls_left
        self.pace = pace

    @property
    def is_dead(self) -> bool:
        return self._calls_left == 0

    def call(self, what: str) -> None:
        """Raises Crash if the process is dead or dies here."""
        if self._calls_left:
            self._calls_left -= 1
        if self.is_dead:
            raise Crash(what)


_current: ContextVar[Process | None] = ContextVar("process", default=None)
_PARTS = ("store", "collections", "files", "jobs", "index", "letters", "embedder")


def make_killable(world: World, turns: random.Random) -> None:
    """Wraps the fakes of a world. `turns` decides who goes first where several run at once."""

    async def point(what: str) -> None:
        process = _current.get()
        if process is None:
            return
        for _ in range(turns.randrange(process.pace)):
            await asyncio.sleep(0)
        process.call(what)

    for part_name in _PARTS:
        part = getattr(world, part_name)
        for name, method in inspect.getmembers(part, inspect.iscoroutinefunction):
            setattr(part, name, _wrapped(method, point, f"{part_name}.{name}"))
        for name, method in inspect.getmembers(part, inspect.isasyncgenfunction):
            setattr(part, name, _wrapped_generator(method, point, f"{part_name}.{name}"))


def _wrapped(method: Any, point: Callable[[str], Awaitable[None]], what: str) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        await point(f"before {what}")
        result = await method(*args, **kwargs)
        await point(f"after {what}")
        return result

    return call


def _wrapped_generator(method: Any, point: Callable[[str], Awaitable[None]], what: str) -> Any:
    async def call(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        await point(f"before {what}")
        async for each in method(*args, **kwargs):
            yield each
            await point(f"within {what}")

    return call


async def in_process(work: Awaitable[Any], process: Process) -> bool:
    """Does the work in a process that may be killed. False if it was."""
    _current.set(process)
    try:
        await work
    except BaseException:
        if not process.is_dead:
            raise
        return False
    return True
