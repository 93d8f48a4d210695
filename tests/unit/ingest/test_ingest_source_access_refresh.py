"""Who may read a source's documents is refreshed by a clock of its own. A source that is silent too long has them withheld."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.access.principal import Principal
from services.ingest.errors import SourceAway, SourceBusy
from services.ingest.sources.access_refresh import AccessTimes
from services.ingest.sources.models import FileReaders, SourceRecord
from services.ingest.sources.opening import SourceOpener
from services.ingest.sources.ports import Surroundings
from services.ingest.sources.schedule import SourceSchedule
from tests.unit.ingest.source_steps import PlainSealer, Step
from tests.unit.ingest.world import TENANT

ANN, BOTH, NOBODY = (FileReaders(frozenset(names)) for names in (["ann"], ["ann", "bob"], []))
BOB = Principal(TENANT, "bob")
TIMES = AccessTimes(every_s=300.0, withhold_after_s=1800.0)


class TellingStep(Step):
    """A source that says who may read its files, of which BOTH may read one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.place.readers, self.access_times = {"a": BOTH}, TIMES
        kind = replace(self.opener.kind("place"), tells_readers=lambda _: True)
        self.opener = SourceOpener({"place": kind}, PlainSealer(), Surroundings(lambda _: {}, max_files=100))

    async def refresh(self) -> SourceRecord:
        await self.refreshing().refresh(await self.stored())
        return await self.stored()

    def wait(self, seconds: float) -> None:
        self.world.clock.now += timedelta(seconds=seconds)

    def lets_in(self, who: Principal) -> bool:
        (document,) = self.living()
        listed = self.world.lists.known(TENANT, document.document_id)
        return listed is None or listed.covers(who)


@pytest.fixture
async def step(tmp_path: Path) -> TellingStep:
    made = TellingStep(tmp_path)
    await made.begin({"a": "First."})
    return made


@pytest.mark.parametrize("paused", [False, True])
async def test_reader_who_is_taken_out_at_the_source_finds_nothing_without_a_sync(
    step: TellingStep, paused: bool
) -> None:
    await step.sources.change(*step.record.place, lambda now: replace(now, paused=paused))
    step.place.readers = {"a": ANN}
    step.wait(TIMES.every_s)
    anything: Any = None
    schedule = SourceSchedule(
        step.sources, anything, anything, SourceOpener({}, anything, anything), step.refreshing(), step.world.clock
    )
    assert (await step.stored()).sync.next_at > step.world.clock(), "no sync is due"  # type: ignore[operator]
    assert step.lets_in(BOB)
    running = asyncio.create_task(schedule.run())
    async with asyncio.timeout(30):
        while step.lets_in(BOB):
            await asyncio.sleep(0)
        while (found := await step.stored()).access.refreshed_at is None:
            await asyncio.sleep(0)
    running.cancel()
    assert not step.refreshing().is_due(found)
    step.wait(TIMES.every_s)
    assert step.refreshing().is_due(found)
    assert len(step.place.fetched) == 1, "no content is read for it"


async def test_reader_who_comes_in_reads_without_a_sync(step: TellingStep) -> None:
    step.place.readers = {"a": ANN}
    await step.refresh()
    assert not step.lets_in(BOB)
    step.place.readers = {"a": BOTH}
    await step.refresh()
    assert step.lets_in(BOB)


async def test_file_that_is_gone_at_a_paused_source_is_read_by_owners_alone(step: TellingStep) -> None:
    step.place.files = {}
    await step.refresh()
    assert not step.lets_in(BOB)
    assert len(step.living()) == 1, "a refresh removes nothing"


async def test_source_that_does_not_say_who_may_read_for_too_long_has_its_documents_withheld(step: TellingStep) -> None:
    step.place.away = SourceAway("the server is away")
    told_at = (await step.refresh()).access.refreshed_at
    step.wait(TIMES.withhold_after_s - 120.0)
    found = await step.refresh()
    assert found.access.error is not None
    assert (found.access.error.reason, found.access.is_withheld, found.access.refreshed_at) == (
        "SOURCE_AWAY",
        False,
        told_at,
    )
    assert step.lets_in(BOB)
    step.wait(120.0)
    assert (await step.refresh()).access.is_withheld
    assert not step.lets_in(BOB)
    step.place.away = None
    found = await step.refresh()
    assert (found.access.error, found.access.is_withheld) == (None, False)
    assert step.lets_in(BOB)


async def test_source_that_wants_a_long_rest_is_asked_again_before_its_documents_are_withheld(
    step: TellingStep,
) -> None:
    step.place.away = SourceBusy("later", retry_after_s=86_400.0)
    found = await step.refresh()
    assert found.access.next_at is not None
    assert found.access.refreshed_at is not None
    assert found.access.next_at - found.access.refreshed_at == timedelta(seconds=TIMES.withhold_after_s)
    step.wait(TIMES.withhold_after_s)
    found = await step.refresh()
    assert found.access.is_withheld
    assert found.access.next_at >= step.world.clock.now + timedelta(hours=23), "and is left alone then"


async def test_sync_under_way_does_not_let_in_again_who_was_taken_out_since_it_listed(step: TellingStep) -> None:
    step.place.files |= {"a": "First.", "b": "It comes."}
    step.place.readers |= {"b": BOTH}
    syncs = step.syncs()

    async def revoke() -> None:
        step.place.readers = {"a": ANN, "b": ANN}
        await step.refreshing(syncs).refresh(await step.stored())

    step.place.before_fetch = revoke
    step.place.files["a"] = "Second."
    await syncs.sync(await step.stored())
    await step.work()
    for document in step.living():
        listed = step.world.lists.known(TENANT, document.document_id)
        assert listed is not None
        assert not listed.covers(BOB), document.name


async def test_source_that_leaves_access_to_its_collection_is_not_asked(step: TellingStep) -> None:
    kind = replace(step.opener.kind("place"), tells_readers=lambda _: False)
    step.opener = SourceOpener({"place": kind}, PlainSealer(), Surroundings(lambda _: {}, max_files=100))
    step.wait(86_400.0)
    assert not step.refreshing().is_due(await step.stored())


async def test_other_secrets_have_the_source_asked_at_once(step: TellingStep) -> None:
    record = await step.refresh()
    assert not step.refreshing().is_due(record)
    assert step.refreshing().is_due(replace(record, access=replace(record.access, next_at=step.world.clock())))
