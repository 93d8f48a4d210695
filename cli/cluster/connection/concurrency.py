"""Several questions at once, with a bound: a cluster has hundreds of pods, and its API server other users."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from cli.errors import CliError

T = TypeVar("T")

_AT_ONCE = 12


async def gathered(parts: Iterable[Awaitable[T]]) -> list[T]:
    """What the parts return, in their order. The first CliError that one raises ends the others and is raised."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(part: Awaitable[T]) -> T:
        async with slots:
            return await part

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(part)) for part in parts]
    except* CliError as errors:
        raise _first(errors) from None
    return [task.result() for task in tasks]


def _first(errors: BaseExceptionGroup[CliError]) -> CliError:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
