"""Several orchestrators over one message store: a client's calls on a run may go to any of them, and what one leaves is shared by
those that stay."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from kit.jetstream import Nats, connect
from kit.stores.forgetting import ForgetRequest
from services.orchestrator.errors import TooManyRuns
from services.orchestrator.log.events import Approval, Done, RunEvent, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord
from services.orchestrator.runs import sweeping
from services.orchestrator.runs.forgetting import CUT_OFF_AFTER, GRACE
from tests.service.orchestrator.conftest import ANN, QUESTION, collect
from tests.service.orchestrator.paying import LONG_S, Pays, Start, decide, listed, parked
from tests.service.orchestrator.test_following import Speaker
from tests.service.orchestrator.test_forgetting import TOWER, stored
from tests.service.orchestrator.test_runs import GatedModel, _has_status, seqs, status_of, until
from tests.unit.orchestrator.steps.test_cuts import Bank

ABANDONED = 40


class Waits:
    """Writes one event, and ends the run once `gate` is set. `given` are the runs that this orchestrator worked on."""

    def __init__(self, gate: asyncio.Event) -> None:
        self.gate = gate
        self.given: list[RunKey] = []

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        self.given.append(record.key)
        await self.gate.wait()
        await journal.write(Done(RunStatus.COMPLETED))
        return RunStatus.COMPLETED


@pytest.fixture
async def connections(nats_url: str) -> AsyncIterator[Sequence[Nats]]:
    """Each orchestrator's own."""
    async with connect(nats_url, name="a") as a, connect(nats_url, name="b") as b, connect(nats_url, name="c") as c:
        yield a, b, c


async def test_run_is_followed_through_every_orchestrator_from_anywhere(
    start_orchestrator: Start, connections: Sequence[Nats]
) -> None:
    speaker = Speaker(pieces=20)
    all_ = [await start_orchestrator(worker=speaker, nats=each) for each in connections]
    key, live = await all_[0].runs.start(ANN, QUESTION)
    followers = [asyncio.create_task(collect(each.runs.attach(key, after))) for each in all_ for after in (0, 1, 7)]
    speaker.gate.set()
    events = await collect(live)
    assert [seqs(await follower) for follower in followers] == 3 * [seqs(events)[after:] for after in (0, 1, 7)]


async def test_run_is_found_through_another_orchestrator_as_soon_as_its_first_event_was_seen(
    start_orchestrator: Start, connections: Sequence[Nats]
) -> None:
    speaker = Speaker(pieces=2)
    a, b, c = [await start_orchestrator(worker=speaker, nats=each) for each in connections]
    for _ in range(10):
        key, live = await a.runs.start(ANN, QUESTION)
        await anext(live)
        assert (await b.runs.visible(ANN, key)).status is RunStatus.RUNNING
        assert key in [run.key for run in (await c.runs.list_visible(ANN, 100, "")).runs]
        assert (await c.runs.cancel(key)).status is RunStatus.RUNNING
        assert status_of(await collect(b.runs.attach(key, 0))) is RunStatus.CANCELLED
        await until(lambda key=key: _has_status(b, key, RunStatus.CANCELLED), seconds=LONG_S)  # type: ignore[misc]


async def test_question_is_listed_and_decided_through_others_as_soon_as_its_run_waits(
    start_orchestrator: Start, connections: Sequence[Nats]
) -> None:
    bank = Bank()
    a, b, c = [await start_orchestrator(worker=Pays(bank), nats=each) for each in connections]
    for _ in range(5):
        key, asked = await parked(a)
        assert key.run_id in [question.run_id for question in await listed(b)]
        await decide(c, asked, allowed=True)
        assert key.run_id not in [question.run_id for question in await listed(b)]
        assert status_of(await collect(b.runs.attach(key, 0))) is RunStatus.COMPLETED
    assert all(times == 1 for times in bank.made.values())
    assert len(bank.made) == 5


async def test_question_is_decided_through_another_while_its_event_is_seen(
    start_orchestrator: Start, connections: Sequence[Nats]
) -> None:
    """The run may not be parked yet, or just be: the decision is neither refused nor missed."""
    bank = Bank()
    a, b, c = [await start_orchestrator(worker=Pays(bank), nats=each) for each in connections]
    for _ in range(5):
        key, _ = await a.runs.start(ANN, QUESTION)
        follower = b.runs.attach(key, 0)
        asked = await _asked(follower)
        await decide(c, asked, allowed=True)
        async with asyncio.timeout(LONG_S):
            last = [event async for event in follower][-1]
        assert last.payload == Done(RunStatus.COMPLETED)
    assert list(bank.made.values()) == [1] * 5


async def _asked(events: AsyncIterator[RunEvent]) -> Approval:
    async with asyncio.timeout(LONG_S):
        async for event in events:
            if isinstance(event.payload, Approval):
                return event.payload
    raise AssertionError("nothing was asked")


async def test_follower_of_an_orchestrator_that_stops_goes_on_elsewhere_and_sees_each_event_once(
    start_orchestrator: Start, connections: Sequence[Nats]
) -> None:
    model = GatedModel()
    a, b, c = [await start_orchestrator(model, nats=each) for each in connections]
    key, _ = await a.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    seen: list[RunEvent] = []
    followers = [(at, at.runs.attach(key, 0)) for at in (a, b)]
    for _, follower in followers:
        seen.append(await anext(follower))
    await followers[0][1].aclose()  # its server closes the streams when it stops
    stopping = asyncio.create_task(a.runs.close())
    rest = asyncio.create_task(collect(c.runs.attach(key, seen[0].seq)))
    model.gate.set()
    await stopping
    events = [seen[0], *await rest]
    assert seqs(events) == list(range(1, len(events) + 1))
    assert status_of(events) is RunStatus.COMPLETED
    assert seqs([event async for event in followers[1][1]]) == seqs(events)[1:]


async def test_runs_of_a_dead_orchestrator_are_shared_by_those_that_live(
    start_orchestrator: Start, connections: Sequence[Nats], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "_TURN_S", 10 * LONG_S)  # nobody takes what is another's turn
    gate = asyncio.Event()
    first, second, third = [Waits(gate) for _ in connections]
    dead = await start_orchestrator(worker=first, nats=connections[0])
    keys = {(await dead.runs.start(ANN, QUESTION))[0] for _ in range(ABANDONED)}
    heirs = [
        await start_orchestrator(worker=each, nats=own)
        for each, own in zip((second, third), connections[1:], strict=True)
    ]
    for heir in heirs:
        await heir.runs.ownership._renew()
    await dead.die()

    async def are_taken() -> bool:
        return len(second.given) + len(third.given) >= ABANDONED

    await until(are_taken, seconds=LONG_S)
    assert sorted([*second.given, *third.given], key=lambda key: key.run_id) == sorted(keys, key=lambda key: key.run_id)
    assert second.given
    assert third.given
    gate.set()
    for key in keys:
        assert status_of(await collect(heirs[0].runs.attach(key, 0))) is RunStatus.COMPLETED


async def test_full_orchestrator_leaves_runs_of_a_dead_one_to_others_and_refuses_new_ones(
    start_orchestrator: Start, connections: Sequence[Nats]
) -> None:
    gate = asyncio.Event()
    first, small, large = [Waits(gate) for _ in connections]
    dead = await start_orchestrator(worker=first, nats=connections[0])
    for _ in range(10):
        await dead.runs.start(ANN, QUESTION)
    full = await start_orchestrator(worker=small, nats=connections[1], max_concurrent_runs=1)
    await full.runs.start(ANN, QUESTION)
    other = await start_orchestrator(worker=large, nats=connections[2])
    await dead.die()

    async def are_taken() -> bool:
        return len(large.given) == 10

    await until(are_taken, seconds=LONG_S)
    assert len(small.given) == 1
    with pytest.raises(TooManyRuns):
        await full.runs.start(ANN, QUESTION)
    await other.runs.start(ANN, QUESTION)  # each counts its own
    gate.set()


async def test_document_is_forgotten_through_one_while_its_run_is_on_another(
    start_orchestrator: Start, connections: Sequence[Nats], jetstream: Nats
) -> None:
    model = GatedModel()
    a, b, c = [await start_orchestrator(model, nats=each) for each in connections]
    key, events = await a.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    follower = asyncio.create_task(collect(c.runs.attach(key, 0)))

    async def forget(asked: object) -> float | None:
        at = b.forgetting._now() - asked
        return await b.forgetting.forget("acme", ForgetRequest(TOWER, at))

    assert await forget(GRACE) is not None
    assert status_of(await collect(events)) is RunStatus.CANCELLED
    assert status_of(await follower) is RunStatus.CANCELLED
    await until(lambda: _has_status(c, key, RunStatus.CANCELLED), seconds=LONG_S)
    assert await forget(CUT_OFF_AFTER) is None
    assert "1889" not in await stored(jetstream)
