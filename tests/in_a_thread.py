"""Servers that outlive the event loop of any one test."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

T = TypeVar("T")

_TIMEOUT_S = 120.0


@contextmanager
def in_a_thread(opened: AbstractAsyncContextManager[T]) -> Iterator[tuple[T, asyncio.AbstractEventLoop]]:
    """What lives on an event loop, on one of its own for as long as it is needed."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="servers of the tests")
    thread.start()
    try:
        value = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(_TIMEOUT_S)
        try:
            yield value, loop
        finally:
            asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(_TIMEOUT_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
