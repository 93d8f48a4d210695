"""Many who follow: one consumer for all of them, each event once and in order, and nobody waits for who does not read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import pytest

from kit.jetstream import Nats
from kit.testing.nats import NatsServer
from services.orchestrator.adapters import tail
from services.orchestrator.adapters.event_log import STREAM, JetStreamEventLog
from services.orchestrator.log.events import Done, RunEvent, RunStatus, Token
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, now
from tests.service.orchestrator.test_ownership import LONG_S
from tests.service.orchestrator.test_runs import until

Start = Callable[..., Awaitable[Orchestrator]]
WATCHERS = 1000


class Speaker:
    """Says as much as it is let, in every run; `speaking` is set when a first piece is out."""

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces
        self.gate = asyncio.Event()
        self.speaking = 0

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        await journal.write(Token("0 ", 0))
        self.speaking += 1
        await self.gate.wait()
        for number in range(1, self.pieces):
            await journal.write(Token(f"{number} ", number))
        await journal.write(Done(RunStatus.COMPLETED))
        return RunStatus.COMPLETED


async def consumers(jetstream: Nats) -> int:
    """What the server counts on the log."""
    return (await jetstream.js.stream_info(STREAM)).state.consumer_count


async def followed(events: AsyncIterator[RunEvent], begun: asyncio.Event) -> list[int]:
    """The numbers of all events to the end."""
    seqs = []
    async for event in events:
        seqs.append(event.seq)
        begun.set()
    return seqs


async def follow_all(orchestrator: Orchestrator, keys: list[RunKey]) -> list["asyncio.Task[list[int]]"]:
    """A follower for each of the keys, which has its first event."""
    begun = [asyncio.Event() for _ in keys]
    tasks = [
        asyncio.create_task(followed(orchestrator.runs.attach(key, 0), event))
        for key, event in zip(keys, begun, strict=True)
    ]
    async with asyncio.timeout(LONG_S):
        await asyncio.gather(*(event.wait() for event in begun))
    return tasks


async def test_a_thousand_followers_of_one_run_cost_one_consumer(start_orchestrator: Start, jetstream: Nats) -> None:
    speaker = Speaker(pieces=30)
    worker, follower = [await start_orchestrator(worker=speaker, lease_s=LONG_S) for _ in range(2)]
    key, _ = await worker.runs.start(ANN, QUESTION)
    tasks = await follow_all(follower, [key] * WATCHERS)
    assert await consumers(jetstream) == 1
    speaker.gate.set()
    async with asyncio.timeout(LONG_S):
        seen = await asyncio.gather(*tasks)
    assert all(seqs == list(range(1, 32)) for seqs in seen)


async def test_followers_of_a_thousand_runs_cost_one_consumer(start_orchestrator: Start, jetstream: Nats) -> None:
    speaker = Speaker(pieces=3)
    limits = {"lease_s": LONG_S, "max_concurrent_runs": WATCHERS}
    worker, follower = [await start_orchestrator(worker=speaker, **limits) for _ in range(2)]
    keys = [(await worker.runs.start(ANN, QUESTION))[0] for _ in range(WATCHERS)]
    tasks = await follow_all(follower, keys)
    assert await consumers(jetstream) == 1
    speaker.gate.set()
    async with asyncio.timeout(LONG_S):
        seen = await asyncio.gather(*tasks)
    assert all(seqs == [1, 2, 3, 4] for seqs in seen)


async def test_run_that_has_ended_is_read_without_a_consumer(start_orchestrator: Start, jetstream: Nats) -> None:
    speaker = Speaker(pieces=600)  # several batches
    speaker.gate.set()
    worker, follower = await start_orchestrator(worker=speaker), await start_orchestrator()
    key, _ = await worker.runs.start(ANN, QUESTION)

    async def is_finished() -> bool:
        return (await worker.runs.get(key)).finished_at is not None

    await until(is_finished, seconds=LONG_S)
    for after_seq in (0, 300, 601):
        async with aclosing(follower.runs.attach(key, after_seq)) as events:
            seqs = []
            async for event in events:
                seqs.append(event.seq)
                assert await consumers(jetstream) == 0
        assert seqs == list(range(after_seq + 1, 602))


async def test_follower_that_does_not_read_holds_little_and_misses_nothing(
    start_orchestrator: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    watches: list[tail.Watch] = []
    init = tail.Watch.__init__

    def remembered(self: tail.Watch) -> None:
        init(self)
        watches.append(self)

    monkeypatch.setattr(tail.Watch, "__init__", remembered)
    speaker = Speaker(pieces=600)
    worker, follower = await start_orchestrator(worker=speaker), await start_orchestrator()
    key, live = await worker.runs.start(ANN, QUESTION)
    slow = follower.runs.attach(key, 0)
    assert (await anext(slow)).seq == 1
    quick = asyncio.create_task(followed(follower.runs.attach(key, 0), asyncio.Event()))
    speaker.gate.set()
    async with asyncio.timeout(LONG_S):
        assert await quick == list(range(1, 602))
        assert len([event async for event in live]) == 601
    assert len(watches[0]._entries) <= tail._MAX_WAITING
    async with asyncio.timeout(LONG_S):
        assert [event.seq async for event in slow] == list(range(2, 602))


async def test_followers_survive_a_restart_of_the_message_store(
    start_orchestrator: Start, nats: NatsServer, jetstream: Nats
) -> None:
    follower = await start_orchestrator()
    log = await JetStreamEventLog.open(jetstream, retention_days=1)
    key = RunKey("acme", "c" * 32)
    position = await log.append(key, RunEvent(key.run_id, 1, now(), Token("one", 0)), 0)
    begun = asyncio.Event()
    seen = asyncio.create_task(followed(follower.runs._log.follow(key, 0, live=True), begun))
    await begun.wait()
    await nats.stop()
    await nats.start()
    position = await _appended(log, key, RunEvent(key.run_id, 2, now(), Token("two", 3)), position)
    await _appended(log, key, RunEvent(key.run_id, 3, now(), Done(RunStatus.COMPLETED)), position)
    async with asyncio.timeout(LONG_S):
        assert await seen == [1, 2, 3]


async def _appended(log: JetStreamEventLog, key: RunKey, event: RunEvent, position: int) -> int:
    """Appended as soon as the store takes it."""
    async with asyncio.timeout(LONG_S):
        while True:
            try:
                return await log.append(key, event, position)
            except Exception:
                await asyncio.sleep(0.05)


async def test_follower_sees_only_its_own_tenants_run(start_orchestrator: Start, jetstream: Nats) -> None:
    follower = await start_orchestrator()
    log = await JetStreamEventLog.open(jetstream, retention_days=1)
    ours, theirs = RunKey("acme", "d" * 32), RunKey("other", "d" * 32)
    begun = asyncio.Event()
    position = await log.append(ours, RunEvent(ours.run_id, 1, now(), Token("ours", 0)), 0)
    seen = asyncio.create_task(followed(follower.runs._log.follow(ours, 0, live=True), begun))
    await begun.wait()
    await log.append(theirs, RunEvent(theirs.run_id, 2, now(), Token("theirs", 0)), 0)
    await log.append(ours, RunEvent(ours.run_id, 2, now(), Done(RunStatus.COMPLETED)), position)
    async with asyncio.timeout(LONG_S):
        assert await seen == [1, 2]


async def test_consumer_goes_when_nobody_follows(
    start_orchestrator: Start, jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "_IDLE_S", 0.05)
    worker, follower = await start_orchestrator(worker=Speaker(1)), await start_orchestrator()
    key, _ = await worker.runs.start(ANN, QUESTION)
    for _ in range(2):
        events = follower.runs.attach(key, 0)
        assert (await anext(events)).seq == 1
        assert await consumers(jetstream) == 1
        await events.aclose()

        async def is_gone() -> bool:
            return await consumers(jetstream) == 0

        await until(is_gone, seconds=LONG_S)
