"""A real Elasticsearch node that is killed and comes back: what was committed is there, and callers are told to wait meanwhile.
TEST_ELASTICSEARCH_NODE is a program that starts one, as `.ci/run` sets it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.testing.harness import free_port
from services.retriever.adapters.elasticsearch.index import ElasticsearchIndex
from services.retriever.errors import IndexUnavailable
from services.retriever.models import RevisionKey
from services.retriever.options import ElasticsearchOptions
from tests.contract.retriever_index_contract import store
from tests.unit.retriever.fakes import make_batch, make_chunk, write_key

_START_TIMEOUT_S = 300
"""A bound for a node that never comes up; one that does takes 5 to 20 s."""


@asynccontextmanager
async def node(port: int, data: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A node that answers. It is killed at the end, as by a crash."""
    program = os.environ.get("TEST_ELASTICSEARCH_NODE")
    if not program:
        pytest.skip("set TEST_ELASTICSEARCH_NODE to a program that starts Elasticsearch")
    process = await asyncio.create_subprocess_exec(
        *(program, "--port", str(port), "--data", str(data)), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_START_TIMEOUT_S):
            assert await process.stdout.readline(), "the node ended before it answered"
        yield process
    finally:
        process.kill()
        await process.wait()


async def test_what_was_committed_outlives_a_kill_and_callers_wait_meanwhile(tmp_path: Path) -> None:
    port = free_port()
    committed = [RevisionKey("local", "d", f"r{number}") for number in range(20)]
    interrupted = RevisionKey("local", "d", "interrupted")
    async with node(port, tmp_path):
        index = await ElasticsearchIndex.open(ElasticsearchOptions((f"http://127.0.0.1:{port}",), replicas=0))
        for key in committed:
            await store(index, key, ["solar panel", "wind turbine"])
        await index.write(write_key(interrupted), make_batch([make_chunk("solar", key=interrupted)]))
    with pytest.raises(IndexUnavailable) as caught:
        await index.count(committed[0])
    assert caught.value.retryable
    waiting = asyncio.create_task(_committed_at_last(index, interrupted))
    async with node(port, tmp_path):
        assert await waiting == 1, "what was written and not yet committed is in the translog"
        assert [await index.count(key) for key in committed] == [2] * len(committed)
        await index.close()


async def _committed_at_last(index: ElasticsearchIndex, key: RevisionKey) -> int:
    """As a job does it: again and again, for as long as the engine is only away."""
    while True:
        try:
            return await index.commit(write_key(key))
        except IndexUnavailable as error:
            if not error.retryable:
                raise
