"""A running batcher over a fake encoder."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from services.reranker.batching.batching import Batcher
from services.reranker.models import BatchLimits
from services.reranker.ports import Encoder
from tests.unit.reranker.fakes import LIMITS

RunBatcher = Callable[..., AbstractAsyncContextManager[Batcher]]


@pytest.fixture
def run_batcher() -> RunBatcher:
    @asynccontextmanager
    async def run(encoder: Encoder, limits: BatchLimits = LIMITS) -> AsyncIterator[Batcher]:
        batcher = Batcher(encoder, limits)
        task = asyncio.create_task(batcher.run())
        try:
            yield batcher
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return run


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool
