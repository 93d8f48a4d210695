"""The thread of an engine and the commits that share a file sync."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass

import pytest

from services.retriever.adapters.elasticsearch import index as elasticsearch
from services.retriever.adapters.engine_thread import EngineThread
from services.retriever.adapters.group_commit import IN_PROCESS, GroupCommit, Rest
from services.retriever.concurrency import both
from services.retriever.errors import IndexUnavailable


async def test_calls_beyond_the_bound_are_refused_and_later_ones_served() -> None:
    thread, release = EngineThread("test", max_waiting=2), threading.Event()
    held = [asyncio.create_task(thread.run(release.wait)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(IndexUnavailable) as caught:
        await thread.run(int)
    assert caught.value.retry_after_s
    release.set()
    await asyncio.gather(*held)
    assert await thread.run(int) == 0
    await thread.close()


async def test_a_cancelled_call_that_waits_is_never_made() -> None:
    thread, release, calls = EngineThread("test", max_waiting=5), threading.Event(), []
    held = asyncio.create_task(thread.run(release.wait))
    waiting = asyncio.create_task(thread.run(calls.append, "made"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    release.set()
    await held
    await thread.close()
    assert calls == []


async def test_commits_asked_for_during_a_commit_share_the_next() -> None:
    commits, release = 0, asyncio.Event()

    async def commit() -> None:
        nonlocal commits
        commits += 1
        await release.wait()

    group = GroupCommit(commit, IN_PROCESS)
    callers = [asyncio.create_task(group()) for _ in range(5)]
    await asyncio.sleep(0)
    late = [asyncio.create_task(group()) for _ in range(5)]
    await asyncio.sleep(0)
    release.set()
    await asyncio.gather(*callers, *late)
    assert commits == 2


@dataclass(frozen=True)
class Waiting:
    """Callers after a commit, and whether they wait for others."""

    callers: int
    last_says_so: bool
    wait: bool


LONG_REST = Rest(per_commit=1e9, short_per_commit=0, longest_s=600.0, enough=16)


@pytest.mark.parametrize("case", [Waiting(2, False, True), Waiting(2, True, False), Waiting(16, False, False)])
async def test_a_commit_rests_for_others_unless_nobody_is_to_come_or_enough_wait(case: Waiting) -> None:
    group = GroupCommit(lambda: asyncio.sleep(0.001), LONG_REST)
    await group()
    last = case.callers - 1
    waiting = [asyncio.create_task(group(is_last=case.last_says_so and n == last)) for n in range(case.callers)]
    _, pending = await asyncio.wait(waiting, timeout=0.1 if case.wait else 20.0)
    assert len(pending) == (case.callers if case.wait else 0)
    for each in pending:
        each.cancel()


def test_elasticsearch_rests_no_longer_than_its_refresh_took() -> None:
    for took_s in (0.002, 0.035, 0.4):
        assert max(elasticsearch.REST.after(took_s)) <= took_s
        assert max(IN_PROCESS.after(took_s)) == min(32 * took_s, 1.5)


async def test_a_failed_commit_fails_its_caller_and_the_next_tries_again() -> None:
    outcomes = iter([OSError("disk"), None])

    async def commit() -> None:
        await asyncio.sleep(0)
        if error := next(outcomes):
            raise error

    group = GroupCommit(commit, IN_PROCESS)
    first, second = await asyncio.gather(group(), group(), return_exceptions=True)
    assert isinstance(first, OSError)
    assert second is None


async def test_an_engine_that_does_not_answer_is_unavailable() -> None:
    with pytest.raises(IndexUnavailable):
        await both(asyncio.sleep(0), asyncio.Event().wait(), timeout_s=0.01)
