"""Removed texts are erased from the files soon after a removal, several together, and again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from services.retriever import metrics
from services.retriever.errors import IndexUnavailable
from services.retriever.indexes.engine_answer import DENSE
from services.retriever.upkeep.erasing import Eraser, Pace


class Files:
    """An index's, as far as the eraser sees it."""

    def __init__(self, failures: int = 0, error: Exception | None = None) -> None:
        self.removed, self.suspected = asyncio.Event(), asyncio.Event()
        self.erased = asyncio.Event()
        self.calls = 0
        self._failures = failures
        self._error = error or IndexUnavailable("the disk is full")

    async def erase(self) -> None:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error
        self.erased.set()

    async def inspect(self) -> str | None:
        return None

    async def start_anew(self, problem: str) -> None:
        raise NotImplementedError


@asynccontextmanager
async def looked_after(files: Files) -> AsyncIterator[None]:
    task = asyncio.create_task(Eraser(DENSE, files, Pace(wait_s=0.01, rest=0.0, retry_s=0.0), "memories").run())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def unerased() -> float:
    value: float = metrics.UNERASED.labels("dense", "memories")._value.get()
    return value


async def test_nothing_is_rewritten_until_something_was_removed_and_removals_share_an_erasure() -> None:
    files = Files()
    async with looked_after(files):
        await asyncio.sleep(0)
        assert (files.calls, unerased()) == (0, 0)
        for _ in range(3):
            files.removed.set()
            await asyncio.sleep(0)
        assert unerased() == 1
        await files.erased.wait()
        assert files.calls == 1
        assert not files.removed.is_set()


async def test_erasure_that_failed_is_made_again() -> None:
    files = Files(failures=2)
    files.removed.set()
    async with looked_after(files):
        await files.erased.wait()
        assert files.calls == 3


async def test_error_that_nobody_thought_of_does_not_end_the_process() -> None:
    files = Files(failures=1, error=RuntimeError("the engine panicked"))
    files.removed.set()
    async with looked_after(files):
        await files.erased.wait()
        assert files.calls == 2
