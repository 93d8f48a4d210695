"""One lease a process: who may take a run over, and what becomes of a process that does not know that it has lost one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from groundwork.orchestrator.v1 import record_pb2 as pb

from kit.errors import Unavailable
from kit.jetstream import KeyValue, Nats, connect
from kit.testing.nats import NatsServer
from services.orchestrator.adapters.jetstream.markers import KeyValueMarkers
from services.orchestrator.log.events import Answer, Done, RunEvent, RunStatus, Thinking
from services.orchestrator.models import RunKey, Wait
from services.orchestrator.runs.ownership import Ownership
from tests.service.orchestrator.conftest import ANN, LEASE_S, QUESTION, Orchestrator, now
from tests.service.orchestrator.proxy import Proxy
from tests.service.orchestrator.test_runs import GatedModel, _has_status, _open_model, until

Start = Callable[..., Awaitable[Orchestrator]]
KEY = RunKey("acme", "e" * 32)
LONG_S = 60.0
"""Longer than any of these waits takes on a slow machine."""


@pytest.fixture
async def proxy(nats: NatsServer) -> AsyncIterator[Proxy]:
    proxy = Proxy(nats.port)
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
async def behind_proxy(proxy: Proxy) -> AsyncIterator[Nats]:
    """The connection of a process that may be frozen or cut off."""
    async with connect(proxy.url, name="behind-proxy") as connection:
        yield connection


async def logged(orchestrator: Orchestrator, key: RunKey) -> list[RunEvent]:
    events, _ = await orchestrator.runs._log.read(key)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return list(events)


def count(events: list[RunEvent], kind: type) -> int:
    return sum(isinstance(event.payload, kind) for event in events)


async def test_process_has_one_lease_however_many_runs_it_works_on(start_orchestrator: Start, jetstream: Nats) -> None:
    orchestrator = await start_orchestrator(GatedModel())
    for _ in range(20):
        await orchestrator.runs.start(ANN, QUESTION)
    owners = await KeyValue.open(jetstream, "RUN_OWNERS", ttl_s=LEASE_S)
    active = await KeyValue.open(jetstream, "RUN_ACTIVE")
    assert await owners.keys(">") == [orchestrator.runs.ownership.owner]
    markers = [pb.RunMarker.FromString(entry.value or b"") async for entry in active.entries(">")]
    assert [marker.owner for marker in markers] == [orchestrator.runs.ownership.owner] * 20


async def test_frozen_process_is_fenced_off_when_it_wakes(
    start_orchestrator: Start, proxy: Proxy, behind_proxy: Nats
) -> None:
    model = GatedModel()
    frozen = await start_orchestrator(model, nats=behind_proxy)
    other = await start_orchestrator(_open_model())
    key, events = await frozen.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    proxy.hold()
    await until(lambda: _has_status(other, key, RunStatus.COMPLETED), seconds=LONG_S)
    before = await logged(other, key)
    model.gate.set()  # the frozen process goes on where it was: it writes the next piece of its answer
    proxy.let_go()
    async with asyncio.timeout(LONG_S):
        seen = [event async for event in events]
    assert seen == before[: len(seen)]
    assert count(seen, Done) == 0
    after = await logged(other, key)
    assert after == before
    assert (count(after, Answer), count(after, Done)) == (1, 1)


async def test_process_that_is_cut_off_answers_who_listens_and_leaves_the_log_to_another(
    start_orchestrator: Start, proxy: Proxy, behind_proxy: Nats
) -> None:
    model = GatedModel()
    cut_off = await start_orchestrator(model, nats=behind_proxy)
    other = await start_orchestrator(_open_model())
    key, events = await cut_off.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await proxy.cut()
    await until(lambda: _has_status(other, key, RunStatus.COMPLETED), seconds=LONG_S)
    before = await logged(other, key)
    model.gate.set()
    async with asyncio.timeout(LONG_S):
        seen = [event async for event in events]
    degraded = [e.payload.degraded.reason for e in seen if isinstance(e.payload, Thinking) and e.payload.degraded]
    assert "LOG_UNAVAILABLE" in degraded
    await proxy.start()
    await until(lambda: _renews(cut_off), seconds=LONG_S)
    assert await logged(other, key) == before
    assert (count(before, Answer), count(before, Done)) == (1, 1)
    assert await _has_status(other, key, RunStatus.COMPLETED)


async def _renews(orchestrator: Orchestrator) -> bool:
    ownership = orchestrator.runs.ownership
    return await ownership.is_alive(ownership.owner)


async def test_run_is_taken_by_one_of_many_who_try(jetstream: Nats) -> None:
    markers = await KeyValueMarkers.open(jetstream, lease_s=LEASE_S)
    dead = Ownership(markers, LEASE_S)
    assert await dead.claim(KEY)
    await dead.leave()
    others = [Ownership(markers, LONG_S) for _ in range(8)]
    taken = await asyncio.gather(*(other.adopt(KEY) for other in others for _ in range(2)))
    assert sum(marker is not None for marker in taken) == 1
    assert [other.holds(KEY) for other in others].count(True) == 1


async def test_run_of_a_process_that_lives_is_not_taken(jetstream: Nats) -> None:
    markers = await KeyValueMarkers.open(jetstream, lease_s=LONG_S)
    owner, other = Ownership(markers, LONG_S), Ownership(markers, LONG_S)
    assert await owner.claim(KEY)
    assert await other.adopt(KEY) is None
    assert not await other.claim(KEY)
    await owner.release(KEY)
    marker = await other.adopt(KEY)
    assert marker is not None
    assert marker.owner == other.owner


async def test_what_a_newer_version_put_into_a_marker_survives_every_change(jetstream: Nats) -> None:
    markers = await KeyValueMarkers.open(jetstream, lease_s=LONG_S)
    active = await KeyValue.open(jetstream, "RUN_ACTIVE")
    newer = b"\xfa\x3f\x02hi"
    await active.put(KEY.name, pb.RunMarker(owner="gone").SerializeToString() + newer)
    ownership = Ownership(markers, LONG_S)
    assert await ownership.adopt(KEY)
    await ownership.note_begun(KEY)
    wait = Wait(now(), now() + timedelta(hours=1), ("ann",))
    await ownership.park(KEY, wait)
    entry = await active.get(KEY.name)
    assert entry is not None
    parked = pb.RunMarker(begun=True, parked=True, subjects=["ann"])
    parked.waiting_since.FromDatetime(wait.since)
    parked.wakes_at.FromDatetime(wait.until)
    assert entry.value == parked.SerializeToString() + newer
    assert await ownership.adopt(KEY, resume=True)
    await ownership.release(KEY)
    entry = await active.get(KEY.name)
    assert entry is not None
    assert entry.value == pb.RunMarker(begun=True).SerializeToString() + newer


async def test_nobody_is_taken_for_dead_because_the_store_was_away(
    jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    markers = await KeyValueMarkers.open(jetstream, lease_s=LONG_S)
    clock, tries, is_away = [0.0], asyncio.Queue[None](), True
    ownership = Ownership(markers, 0.3, monotonic=lambda: clock[0])
    assert not await ownership.is_alive("owner"), "whose lease is gone while the store answers"
    renew = markers.renew

    async def renewing(owner: str) -> None:
        tries.put_nowait(None)
        if is_away:
            raise Unavailable("the store has no leader")
        await renew(owner)

    monkeypatch.setattr(markers, "renew", renewing)
    keeping = asyncio.create_task(ownership.keep_lease())
    for _ in range(2):
        await tries.get()
    assert await ownership.is_alive("owner")
    is_away = False
    while not tries.empty():
        tries.get_nowait()
    for _ in range(2):  # when the second begins the first has ended
        await tries.get()
    keeping.cancel()
    assert await ownership.is_alive("owner"), "before it can have renewed its lease"
    clock[0] += 0.3
    assert not await ownership.is_alive("owner")


async def test_nothing_is_claimed_with_a_lease_that_is_spent(jetstream: Nats) -> None:
    markers = await KeyValueMarkers.open(jetstream, lease_s=LONG_S)
    clock = [0.0]
    ownership = Ownership(markers, 6.0, monotonic=lambda: clock[0])
    for key in (KEY, RunKey("acme", "f" * 32)):
        assert await ownership.claim(key)
        assert await markers.is_alive(ownership.owner)
        await markers.leave(ownership.owner)
        clock[0] += 6.0


async def test_entry_that_slips_in_before_the_new_owners_first_one_costs_a_round(start_orchestrator: Start) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model), await start_orchestrator(_open_model())
    key, _ = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await first.die()
    read = second.runs._log.read
    reads = 0

    async def read_and_be_overtaken(key: RunKey) -> Any:
        nonlocal reads
        reads += 1
        events, position = await read(key)
        if reads == 1:
            late = RunEvent(key.run_id, len(events) + 1, now(), Thinking("answer", "the old owner's last words"))
            await first.runs._log.append(key, late, position)
        return events, position

    second.runs._log.read = read_and_be_overtaken  # type: ignore[method-assign]
    await until(lambda: _has_status(second, key, RunStatus.COMPLETED), seconds=LONG_S)
    events = await logged(first, key)
    assert (count(events, Answer), count(events, Done), reads) == (1, 1, 2)
