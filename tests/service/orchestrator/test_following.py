"""Many who follow: a process hears of the runs that are followed in it, each event once and in order, and of no others; nobody
waits for who does not read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import pytest

from kit.jetstream import Nats, connect
from kit.testing.nats import NatsServer
from services.orchestrator.adapters.jetstream import tail
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.errors import FencedOff
from services.orchestrator.log.events import Done, Payload, RunEvent, RunStatus, Token
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord
from services.orchestrator.state import RUNS
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, now
from tests.service.orchestrator.test_ownership import LONG_S
from tests.service.orchestrator.test_runs import until

Start = Callable[..., Awaitable[Orchestrator]]
WATCHERS = 1000
THOUSAND_S = 800.0
"""For that many, which take 5 s on a quiet machine, on one that is busy with other tests."""


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


OURS = RunKey("acme", "e" * 32)


class Following:
    """A log that is written over one connection and followed over another."""

    def __init__(self, writer: JetStreamEventLog, follower: JetStreamEventLog) -> None:
        self.writer = writer
        self._seq = 0
        self.begun = asyncio.Event()
        self.seen = asyncio.create_task(self._follow(follower))

    async def _follow(self, follower: JetStreamEventLog) -> list[RunEvent]:
        events = []
        async for event in follower.follow(OURS, 0, live=True):
            events.append(event)
            self.begun.set()
        return events

    async def say(self, text: str, position: int = 0) -> int:
        """Appends a piece; of the first waits until it was seen. Returns its position."""
        position = await self._append(Token(text, 0), position)
        await self.begun.wait()
        return position

    async def end(self, position: int) -> None:
        await self._append(Done(RunStatus.COMPLETED), position)

    async def _append(self, payload: Payload, position: int) -> int:
        self._seq += 1
        return await self.writer.append(OURS, RunEvent(OURS.run_id, self._seq, now(), payload), position)


@pytest.fixture
async def following(jetstream: Nats, nats_url: str) -> AsyncIterator[Following]:
    async with connect(nats_url, name="follower") as own:
        writer, follower = [await JetStreamEventLog.open(each, retention_days=1) for each in (jetstream, own)]
        work = asyncio.create_task(follower.work())
        rig = Following(writer, follower)
        yield rig
        for task in (rig.seen, work):
            task.cancel()
        await asyncio.gather(rig.seen, work, return_exceptions=True)


async def consumers(jetstream: Nats) -> int:
    """What the server counts on the log."""
    return (await jetstream.js.stream_info(RUNS.stream)).state.consumer_count


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
    async with asyncio.timeout(THOUSAND_S):
        await asyncio.gather(*(event.wait() for event in begun))
    return tasks


def heard_of(nats: Nats) -> list[str]:
    """The runs of which the server sends news over a connection."""
    return [each.subject for each in nats.nc._subs.values() if each.subject.startswith("logged.")]


@pytest.mark.timeout(1800)
async def test_a_thousand_followers_of_one_run_cost_one_subscription_and_no_consumer(
    start_orchestrator: Start, jetstream: Nats, nats_url: str
) -> None:
    speaker = Speaker(pieces=30)
    async with connect(nats_url, name="follower") as own:
        worker = await start_orchestrator(worker=speaker, lease_s=THOUSAND_S)
        follower = await start_orchestrator(nats=own, lease_s=THOUSAND_S)
        key, _ = await worker.runs.start(ANN, QUESTION)
        tasks = await follow_all(follower, [key] * WATCHERS)
        assert heard_of(own) == [f"logged.{key.name}"]
        assert await consumers(jetstream) == 0
        speaker.gate.set()
        async with asyncio.timeout(THOUSAND_S):
            seen = await asyncio.gather(*tasks)
        assert all(seqs == list(range(1, 32)) for seqs in seen)
        assert heard_of(own) == []
        await follower.stop()


@pytest.mark.timeout(1800)
async def test_followers_of_a_thousand_runs_cost_no_consumer(start_orchestrator: Start, jetstream: Nats) -> None:
    speaker = Speaker(pieces=3)
    limits = {"lease_s": THOUSAND_S, "max_concurrent_runs": WATCHERS}
    worker, follower = [await start_orchestrator(worker=speaker, **limits) for _ in range(2)]
    keys = [(await worker.runs.start(ANN, QUESTION))[0] for _ in range(WATCHERS)]
    tasks = await follow_all(follower, keys)
    assert await consumers(jetstream) == 0
    speaker.gate.set()
    async with asyncio.timeout(THOUSAND_S):
        seen = await asyncio.gather(*tasks)
    assert all(seqs == [1, 2, 3, 4] for seqs in seen)


async def test_process_hears_of_no_run_that_nobody_follows_there(jetstream: Nats, nats_url: str) -> None:
    async with connect(nats_url, name="idle") as own:
        idle, writer = [await JetStreamEventLog.open(each, retention_days=1) for each in (own, jetstream)]
        tail_ = asyncio.create_task(idle.work())
        await own.nc.flush()
        before = own.nc.stats["in_msgs"]
        position = 0
        for seq in range(1, 101):
            position = await writer.append(OURS, RunEvent(OURS.run_id, seq, now(), Token("word ", 0)), position)
        await own.nc.flush()
        assert own.nc.stats["in_msgs"] == before
        tail_.cancel()


async def test_follower_of_a_run_that_is_worked_on_in_its_process_needs_no_news(
    start_orchestrator: Start, jetstream: Nats
) -> None:
    speaker = Speaker(pieces=30)
    orchestrator = await start_orchestrator(worker=speaker, lease_s=LONG_S)
    key, _ = await orchestrator.runs.start(ANN, QUESTION)
    (task,) = await follow_all(orchestrator, [key])
    assert heard_of(jetstream) == []
    speaker.gate.set()
    async with asyncio.timeout(LONG_S):
        assert await task == list(range(1, 32))


async def test_follower_stays_when_its_process_lets_the_run_go(start_orchestrator: Start) -> None:
    speaker = Speaker(pieces=3)
    first, second = await start_orchestrator(worker=speaker), await start_orchestrator(worker=speaker)
    key, _ = await first.runs.start(ANN, QUESTION)
    (task,) = await follow_all(first, [key])
    await first.runs.close()  # as a process that is told to stop, whose streams are still open
    await until(lambda: _works_on(second, key), seconds=LONG_S)
    speaker.gate.set()
    async with asyncio.timeout(LONG_S):
        seqs = await task
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) == len((await second.runs._log.read(key))[0])


async def _works_on(orchestrator: Orchestrator, key: RunKey) -> bool:
    return key in orchestrator.runs._executions


async def test_entry_that_the_log_refused_is_shown_to_nobody(following: Following) -> None:
    position = await following.say("one")
    with pytest.raises(FencedOff):
        await following.writer.append(OURS, RunEvent(OURS.run_id, 2, now(), Token("refused", 0)), 0)
    await following.end(position)
    async with asyncio.timeout(LONG_S):
        assert [event.payload for event in await following.seen] == [Token("one", 0), Done(RunStatus.COMPLETED)]


@pytest.mark.parametrize("leaves", ["before", "meanwhile"])
async def test_run_that_is_left_while_its_log_is_to_be_read_is_not_heard_of_again(
    jetstream: Nats, leaves: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await JetStreamEventLog.open(jetstream, retention_days=1)
    tail_ = tail.RunTail(jetstream, RUNS.stream)
    subject = f"runs.{OURS.name}"
    subscribe, subscribed, may_go_on = jetstream.nc.subscribe, asyncio.Event(), asyncio.Event()

    async def slowly(subject: str, **options: object) -> object:
        subscription = await subscribe(subject, **options)
        subscribed.set()
        await may_go_on.wait()
        return subscription

    tail_.hold(subject)  # so that following takes no subscription yet
    async with tail_.watch(subject):
        tail_.let_go(subject)
        run = tail_._runs[subject]
        if leaves == "meanwhile":
            monkeypatch.setattr(jetstream.nc, "subscribe", slowly)
            repair = asyncio.create_task(tail_._repair(run))
            await subscribed.wait()
    may_go_on.set()
    await (repair if leaves == "meanwhile" else tail_._repair(run))
    assert heard_of(jetstream) == []


@pytest.mark.parametrize("lost", [2, 3])
async def test_news_that_are_lost_are_read_from_the_log(
    following: Following, lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "_LOOK_INTERVAL_S", 0.05)
    monkeypatch.setattr(tail, "_SILENT_S", 0.1)
    put = tail._Followed.put

    def deaf_once(self: tail._Followed, entry: tail.LogEntry, previous: int) -> bool:
        return True if entry.event.seq == lost else put(self, entry, previous)

    monkeypatch.setattr(tail._Followed, "put", deaf_once)
    position = await following.say("one")
    position = await following.say("two", position)
    await following.end(position)
    async with asyncio.timeout(LONG_S):
        assert [event.seq for event in await following.seen] == [1, 2, 3]


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

    def remembered(self: tail.Watch, after: int) -> None:
        init(self, after)
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
