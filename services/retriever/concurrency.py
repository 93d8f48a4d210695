"""Two small shapes of concurrency that the core uses: ask both engines, and one at a time per key."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Hashable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from services.retriever.errors import IndexUnavailable

A = TypeVar("A")
B = TypeVar("B")


@asynccontextmanager
async def engine_deadline(timeout_s: float) -> AsyncIterator[None]:
    """Raises IndexUnavailable when the block takes longer than an engine may."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise IndexUnavailable(
            f"an index did not answer within {timeout_s:g} s; try again", retry_after_s=1.0
        ) from error


async def both(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B], *, timeout_s: float) -> tuple[A, B]:
    """Asks both engines at once and returns both results.

    When one fails the other is cancelled and that failure is raised, itself and not in a group: callers translate it.
    Raises IndexUnavailable when either takes longer than `timeout_s`.
    """
    try:
        async with engine_deadline(timeout_s), asyncio.TaskGroup() as group:
            first_task, second_task = group.create_task(first), group.create_task(second)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return first_task.result(), second_task.result()


class KeyedLock:
    """A lock per key, which exists only while somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def __call__(self, key: Hashable) -> AsyncIterator[None]:
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = (lock, users - 1)
