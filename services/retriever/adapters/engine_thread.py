"""A thread of its own for an engine that lives in this process: its calls block, so they run off the event loop, in order,
and no more than a bounded number of them wait."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from services.retriever.errors import IndexUnavailable

P = ParamSpec("P")
T = TypeVar("T")


class EngineThread:
    """Runs blocking calls one after the other on one thread.

    A caller that is cancelled takes its call out of the queue; one that runs already runs to its end.
    """

    def __init__(self, name: str, max_waiting: int) -> None:
        self._name = name
        self._max_waiting = max_waiting
        self._waiting = 0
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The call's result. Raises IndexUnavailable when too many calls are waiting already, RuntimeError when the engine
        panicked."""
        if self._waiting >= self._max_waiting:
            raise IndexUnavailable(
                f"{self._waiting} calls are waiting for {self._name} already; ask again shortly", retry_after_s=0.5
            )
        return await self.run_anyway(call, *args, **kwargs)

    async def run_anyway(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `run`, however many calls are waiting: for what has to be tidied up."""
        self._waiting += 1
        try:
            return await asyncio.wrap_future(self._executor.submit(_without_panics, partial(call, *args, **kwargs)))
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """Waits for the calls in hand and ends the thread."""
        await asyncio.to_thread(self._executor.shutdown)


def _without_panics(call: Callable[[], T]) -> T:
    """A panic of Rust arrives as a BaseException, which would end this process instead of one call."""
    try:
        return call()
    except Exception:
        raise
    except BaseException as panic:
        raise RuntimeError(f"the engine panicked: {panic}") from panic
