"""The thread of an engine and the commits that share a file sync."""

from __future__ import annotations

import asyncio
import threading

import pytest

from services.retriever.adapters import group_commit
from services.retriever.adapters.engine_thread import EngineThread
from services.retriever.adapters.group_commit import GroupCommit
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

    group = GroupCommit(commit)
    callers = [asyncio.create_task(group()) for _ in range(5)]
    await asyncio.sleep(0)
    late = [asyncio.create_task(group()) for _ in range(5)]
    await asyncio.sleep(0)
    release.set()
    await asyncio.gather(*callers, *late)
    assert commits == 2


@pytest.mark.parametrize(
    ("callers", "last", "waits"), [(2, False, True), (2, True, False), (group_commit.ENOUGH, False, False)]
)
async def test_a_commit_rests_for_others_unless_nobody_is_to_come_or_enough_wait(
    callers: int, last: bool, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "REST_PER_COMMIT", 10_000)
    monkeypatch.setattr(group_commit, "LONGEST_REST_S", 60.0)
    group = GroupCommit(lambda: asyncio.sleep(0.01))
    await group()
    waiting = [asyncio.create_task(group(is_last=last and n == callers - 1)) for n in range(callers)]
    _, pending = await asyncio.wait(waiting, timeout=0.5)
    assert len(pending) == (callers if waits else 0)
    for each in pending:
        each.cancel()


async def test_a_failed_commit_fails_its_caller_and_the_next_tries_again() -> None:
    outcomes = iter([OSError("disk"), None])

    async def commit() -> None:
        await asyncio.sleep(0)
        if error := next(outcomes):
            raise error

    group = GroupCommit(commit)
    first, second = await asyncio.gather(group(), group(), return_exceptions=True)
    assert isinstance(first, OSError)
    assert second is None


async def test_an_engine_that_does_not_answer_is_unavailable() -> None:
    with pytest.raises(IndexUnavailable):
        await both(asyncio.sleep(0), asyncio.Event().wait(), timeout_s=0.01)
