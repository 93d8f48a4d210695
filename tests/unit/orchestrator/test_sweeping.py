"""Which runs a sweep touches, and how often it asks."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kit.errors import Unavailable
from services.orchestrator.models import MarkerChange, RunKey, RunMarker, Wait
from services.orchestrator.runs.ownership import Ownership
from services.orchestrator.runs.sweeping import Sweeper

AT = datetime(2026, 1, 2, 12, tzinfo=UTC)


class MemoryMarkers:
    """Markers in memory. `asked` counts questions about owners and runs."""

    def __init__(self) -> None:
        self.markers: dict[RunKey, RunMarker] = {}
        self.alive: set[str] = set()
        self.asked: list[str | RunKey] = []
        self.down = False
        self.revision = 0
        self.replicated = 1_000_000
        """Up to this revision the replica is that is asked for changes."""
        self.read_after: list[int] = []
        """Behind which revisions changes were asked for."""
        self._bell = asyncio.Event()

    async def renew(self, owner: str) -> None:
        self.alive.add(owner)

    async def leave(self, owner: str) -> None:
        self.alive.discard(owner)

    async def is_alive(self, owner: str) -> bool:
        if self.down:
            raise Unavailable("the store is down")
        self.asked.append(owner)
        return owner in self.alive

    async def create(self, key: RunKey, marker: RunMarker) -> int | None:
        return None if key in self.markers else self._set(key, marker)

    async def read(self, key: RunKey) -> RunMarker | None:
        self.asked.append(key)
        return self.markers.get(key)

    async def update(self, key: RunKey, marker: RunMarker) -> int | None:
        known = self.markers.get(key)
        return None if known is None or known.revision != marker.revision else self._set(key, marker)

    def _set(self, key: RunKey, marker: RunMarker) -> int:
        self.revision += 1
        self.markers[key] = replace(marker, revision=self.revision)
        if not marker.owner and not marker.parked:
            self._bell.set()
        return self.revision

    async def changes(self, after: int) -> AsyncGenerator[MarkerChange, None]:
        self.read_after.append(after)
        for key, marker in sorted(self.markers.items(), key=lambda each: each[1].revision):
            if after < marker.revision <= self.replicated:
                yield MarkerChange(key, marker, marker.revision)

    async def last_revision(self) -> int:
        return self.revision

    async def released(self) -> AsyncGenerator[None, None]:
        while True:
            await self._bell.wait()
            self._bell.clear()
            yield

    async def living(self) -> Collection[str]:
        return self.alive


def key(number: int) -> RunKey:
    return RunKey("acme", f"{number:032x}")


class Rig:
    """A sweeper whose clock stands still. `broken` are the runs that cannot be taken over; `meanwhile` is what others do while it
    waits for its turn."""

    def __init__(self) -> None:
        self.store = MemoryMarkers()
        self.at = AT
        self.ownership = Ownership(self.store, 5.0, now=lambda: self.at)
        self.clock = 100.0
        self.adopted: list[RunKey] = []
        self.lost: list[RunKey] = []
        self.broken: set[RunKey] = set()
        self.sweeper = Sweeper(
            self.store,
            self.ownership,
            self._adopt,
            self.lost.append,
            2.5,
            monotonic=lambda: self.clock,
            now=lambda: self.at,
            pause=self._pause,
        )
        self.meanwhile: Callable[[], Awaitable[None]] = self._nothing

    async def _nothing(self) -> None:
        """Nobody else does anything."""

    async def _pause(self, _: float) -> None:
        await self.meanwhile()

    async def _adopt(self, run: RunKey) -> None:
        self.adopted.append(run)
        if run in self.broken:
            raise Unavailable("the run cannot be read")

    async def swept(self) -> list[RunKey]:
        """The runs that one round tries."""
        self.adopted.clear()
        await self.sweeper.sweep()
        return sorted(self.adopted, key=lambda each: each.run_id)


@pytest.fixture
async def rig() -> Rig:
    return Rig()


async def test_runs_of_owners_that_live_are_not_touched_and_each_owner_is_asked_about_once(rig: Rig) -> None:
    rig.store.alive = {"alive-1", "alive-2"}
    for number in range(100):
        await rig.store.create(key(number), RunMarker(f"alive-{1 + number % 2}"))
    await rig.store.create(key(500), RunMarker("gone"))
    assert await rig.swept() == [key(500)]
    assert sorted(map(str, rig.store.asked)) == ["alive-1", "alive-2", "gone"]


async def test_parked_runs_and_those_in_hand_are_left_alone(rig: Rig) -> None:
    await rig.store.create(key(1), RunMarker("", parked=True, wait=Wait(AT, AT + timedelta(hours=1))))
    assert await rig.ownership.claim(key(2))
    await rig.store.create(key(3), RunMarker(""))
    await rig.store.create(key(4), RunMarker(rig.ownership.owner))  # ours once, and no more worked on
    assert await rig.swept() == [key(3), key(4)]


async def test_parked_run_is_taken_when_its_wait_is_over_and_not_before(rig: Rig) -> None:
    await rig.store.create(key(1), RunMarker("", parked=True, wait=Wait(AT, AT + timedelta(hours=1))))
    await rig.store.create(key(2), RunMarker("", parked=True, wait=Wait(AT, AT + timedelta(hours=2))))
    await rig.store.create(key(3), RunMarker("", parked=True))  # by an earlier release, which noted no wait
    rig.at = AT + timedelta(minutes=59)
    assert await rig.swept() == [key(3)]
    rig.at = AT + timedelta(hours=1)
    assert await rig.ownership.adopt(key(2)) is None
    assert await rig.swept() == [key(1), key(3)]
    assert await rig.ownership.adopt(key(1)) is not None
    assert rig.store.markers[key(1)] == RunMarker(rig.ownership.owner, parked=False, revision=4)


@pytest.mark.parametrize("days", [-30, 30])
async def test_clock_that_jumps_lets_no_run_sleep_for_longer(rig: Rig, days: int) -> None:
    await rig.store.create(key(1), RunMarker("", parked=True, wait=Wait(AT, AT + timedelta(days=1))))
    rig.at = AT + timedelta(days=days)
    assert await rig.swept() == [key(1)]


async def test_waiting_runs_are_those_of_the_tenant_that_asks(rig: Rig) -> None:
    wait = Wait(AT, AT + timedelta(hours=1), ("ann",))
    await rig.store.create(key(1), RunMarker("", parked=True, wait=wait))
    await rig.store.create(key(2), RunMarker("alive"))
    assert await rig.sweeper.parked("acme") == {key(1): wait}
    assert await rig.sweeper.parked("other") == {}


async def test_run_that_another_has_just_parked_is_listed_though_the_replica_lags(rig: Rig) -> None:
    await rig.store.create(key(1), RunMarker("alive"))
    await rig.sweeper.refresh()
    wait = Wait(AT, AT + timedelta(hours=1), ("ann",))
    rig.store.replicated = rig.store.revision
    await rig.store.create(key(2), RunMarker("", parked=True, wait=wait))
    listing = asyncio.create_task(rig.sweeper.parked("acme"))
    while len(rig.store.read_after) < 2:
        await asyncio.sleep(0)
    assert not listing.done()
    rig.store.replicated = rig.store.revision
    assert await listing == {key(2): wait}


async def test_markers_are_read_once_and_not_at_all_when_nothing_has_changed(rig: Rig) -> None:
    for number in range(10):
        await rig.store.create(key(number), RunMarker(f"alive-{number}"))
    for _ in range(5):
        await rig.sweeper.refresh()
    await rig.store.create(key(11), RunMarker("alive"))
    await rig.sweeper.refresh()
    assert rig.store.read_after == [0, 10]


async def test_markers_of_a_store_that_begins_anew_are_read_from_its_beginning(rig: Rig) -> None:
    for number in range(10):
        await rig.store.create(key(number), RunMarker("", parked=True, wait=Wait(AT, AT + timedelta(hours=1))))
    await rig.sweeper.refresh()
    rig.store.markers.clear()
    rig.store.revision = 0
    await rig.store.create(key(1), RunMarker("gone"))
    assert await rig.swept() == [key(1)]
    assert await rig.sweeper.parked("acme") == {}


async def test_run_that_fails_waits_longer_each_time_and_keeps_no_other_waiting(rig: Rig) -> None:
    for number in range(20):
        await rig.store.create(key(number), RunMarker("gone"))
    rig.broken = {key(7)}
    assert len(await rig.swept()) == 20
    waits = []
    for _ in range(8):
        began = rig.clock
        while key(7) not in (tried := await rig.swept()):
            assert len(tried) == 19
            rig.clock += 0.5
        waits.append(rig.clock - began)
    assert waits == [2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0]


async def test_nothing_is_taken_while_the_store_cannot_be_asked(rig: Rig) -> None:
    await rig.store.create(key(1), RunMarker("gone"))
    rig.store.down = True
    assert await rig.swept() == []


async def test_run_of_ours_whose_marker_names_another_is_told_of_once(rig: Rig) -> None:
    assert await rig.ownership.claim(key(1))
    await rig.store.create(key(2), RunMarker("another"))
    await rig.sweeper.refresh()
    assert rig.lost == []
    marker = await rig.store.read(key(1))
    assert marker is not None
    await rig.store.update(key(1), replace(marker, owner="another"))
    for _ in range(2):
        await rig.sweeper.refresh()
    assert rig.lost == [key(1)]


async def test_run_that_was_just_taken_over_is_not_lost_to_what_a_replica_still_says(rig: Rig) -> None:
    await rig.store.create(key(1), RunMarker("gone"))
    late = MarkerChange(key(1), rig.store.markers[key(1)], rig.store.revision)
    assert await rig.ownership.adopt(key(1)) is not None
    rig.sweeper._note(late)
    assert rig.lost == []


async def test_runs_of_a_dead_owner_are_spread_over_those_that_live(rig: Rig) -> None:
    """Each of three takes the runs whose turn is its own, and leaves the others to those whose it is."""
    others = [Ownership(rig.store, 5.0) for _ in range(2)]
    rig.store.alive = {each.owner for each in (rig.ownership, *others)}
    for number in range(300):
        await rig.store.create(key(number), RunMarker("gone"))

    async def taken_by_others() -> None:
        if rig.adopted:
            for run in rig.store.markers.keys() - set(rig.adopted):
                await rig.store.update(run, replace(rig.store.markers[run], owner=others[0].owner))

    rig.meanwhile = taken_by_others
    assert 50 < len(await rig.swept()) < 150
    turns = [await each.turn() for each in (rig.ownership, *others)]
    assert all(sorted(turn(key(number)) for turn in turns) == [0, 1, 2] for number in range(300))


async def test_runs_that_those_before_it_leave_are_taken_in_the_same_round(rig: Rig) -> None:
    rig.store.alive = {"full", "stopping"}
    for number in range(30):
        await rig.store.create(key(number), RunMarker("gone"))
    assert len(await rig.swept()) == 30


async def test_run_that_is_let_go_is_taken_at_once(rig: Rig) -> None:
    sweeping = asyncio.gather(rig.sweeper.run(), rig.sweeper.listen())
    await rig.store.create(key(1), RunMarker(""))
    async with asyncio.timeout(60):
        while not rig.adopted:  # the interval of 2.5 s is not over
            await asyncio.sleep(0)
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)


async def test_run_that_is_being_parked_is_not_taken_back_by_a_task_of_its_own_process(rig: Rig) -> None:
    assert await rig.ownership.claim(key(1))
    update, taken = rig.store.update, []

    async def looked_at(run: RunKey, marker: RunMarker) -> int | None:
        taken.append(await rig.ownership.adopt(run))
        return await update(run, marker)

    rig.store.update = looked_at  # type: ignore[method-assign]
    await rig.ownership.park(key(1), Wait(AT, AT + timedelta(hours=1)))
    assert taken == [None]
    assert rig.store.markers[key(1)].parked
