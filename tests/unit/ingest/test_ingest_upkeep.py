"""What one worker does for all: documents that lost their job, their place in the index, or their record's last seconds."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from kit.errors import PermissionDenied, Unavailable
from kit.jetstream.leases import LeaseLost
from services.ingest.app import lead
from services.ingest.documents.models import DeadLetter, Document, Failure, Status, StoredDocument
from services.ingest.metrics import Metrics
from services.ingest.upkeep.backlog import Backlog
from services.ingest.work.attempts import WAIT_S
from tests.unit.ingest.world import TENANT, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def ready(world: World, text: str = "Some text.", name: str = "notes.txt") -> Document:
    document = await world.ingest(await world.upload(text, name))
    world.jobs.jobs.clear()
    world.clock.now += timedelta(hours=1)
    return document


async def repaired(world: World, document: Document) -> Document:
    assert (await world.record(document)).status is Status.QUEUED
    return await world.ingest(await world.record(document))


@pytest.mark.parametrize("later", [timedelta(minutes=1), timedelta(days=-1)], ids=["later", "clock set back"])
async def test_documents_of_a_purged_queue_get_their_jobs_back(world: World, later: timedelta) -> None:
    documents = [await world.upload(f"Text {n}.", f"{n}.txt") for n in range(3)]
    world.jobs.jobs.clear()
    world.clock.now += later
    await world.sweeper.sweep()
    assert len(world.jobs.jobs) == 3
    assert [(await world.ingest(each)).status for each in documents] == [Status.READY] * 3


async def test_sweep_goes_through_a_long_queue_in_turns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.ingest.upkeep.sweeping.LOOKS_MAX", 2)
    for n in range(5):
        await world.upload(f"Text {n}.", f"{n}.txt")
    world.jobs.jobs.clear()
    world.clock.now += timedelta(minutes=1)
    await world.sweeper.sweep()
    assert len(world.jobs.jobs) == 2
    await world.sweeper.sweep()
    await world.sweeper.sweep()
    assert len(world.jobs.jobs) == 5


async def test_sweep_reads_only_what_was_written_since_the_last(world: World) -> None:
    for n in range(3):
        await ready(world, f"Text {n}.", f"{n}.txt")
    read: list[str] = []
    real = world.store.changed_since

    async def noting(version: int) -> AsyncIterator[StoredDocument]:
        async for stored in real(version):
            read.append(stored.document.name)
            yield stored

    world.store.changed_since = noting  # type: ignore[method-assign]
    await world.sweeper.sweep()
    assert read == ["0.txt", "1.txt", "2.txt"]
    await world.upload("New text.", "new.txt")
    world.jobs.jobs.clear()
    await world.sweeper.sweep()
    assert read[3:] == ["new.txt"]
    world.clock.now += timedelta(minutes=1)
    await world.sweeper.sweep()
    assert read[4:] == []
    assert len(world.jobs.jobs) == 1


async def test_one_document_that_cannot_be_swept_keeps_nothing_from_the_others(world: World) -> None:
    stuck, other = [await world.upload(f"Text {n}.", f"{n}.txt") for n in range(2)]
    world.jobs.jobs.clear()
    real = world.jobs.has_job

    async def refused(job: Any) -> bool:
        if job.document_id == stuck.document_id:
            raise PermissionDenied("not for this document")
        return await real(job)

    world.jobs.has_job = refused  # type: ignore[method-assign]
    world.clock.now += timedelta(minutes=1)
    with capture_logs() as logs:
        await world.sweeper.sweep()
    assert [job.document_id for job in world.jobs.jobs.values()] == [other.document_id]
    assert [entry["document_id"] for entry in logs if entry["event"] == "sweep_of_one_failed"] == [stuck.document_id]


async def test_document_of_a_newer_version_gets_no_job_from_the_sweep(world: World) -> None:
    document = await world.upload("Some text.")
    stored = await world.store.get(TENANT, document.document_id)
    assert stored is not None
    await world.store.update(replace(document, status=Status.UNKNOWN), stored.version)
    world.jobs.jobs.clear()
    world.clock.now += timedelta(minutes=1)
    await world.sweeper.sweep()
    assert world.jobs.jobs == {}


async def test_job_of_a_newer_versions_document_waits_for_a_worker_of_that_version(world: World) -> None:
    document = await world.upload("Some text.")
    stored = await world.store.get(TENANT, document.document_id)
    assert stored is not None
    newer = await world.store.update(replace(document, status=Status.UNKNOWN), stored.version)
    with capture_logs():
        assert await world.attempts.run(world.job(document), 1) == WAIT_S
    assert await world.store.get(TENANT, document.document_id) == newer


async def test_document_that_a_newer_version_takes_over_is_let_go(world: World) -> None:
    document = await world.upload("Some text.")
    world.embedder.gate = asyncio.Event()
    attempt = asyncio.create_task(world.attempts.run(world.job(document), 1))
    await world.embedder.reached.wait()
    stored = await world.store.get(TENANT, document.document_id)
    assert stored is not None
    newer = await world.store.update(replace(stored.document, status=Status.UNKNOWN), stored.version)
    world.embedder.gate.set()
    with capture_logs():
        assert await attempt == WAIT_S
    assert await world.store.get(TENANT, document.document_id) == newer


@pytest.mark.parametrize("later", [timedelta(0), timedelta(days=-1)], ids=["later", "clock set back"])
async def test_ready_document_that_the_index_lost_is_made_again(world: World, later: timedelta) -> None:
    kept, lost, hidden = [await ready(world, f"Text {n}.", f"{n}.txt") for n in range(3)]
    world.clock.now += later
    assert lost.active is not None
    world.index.revisions.pop((lost.document_id, lost.active.revision_id))
    world.index.active.pop(hidden.document_id)
    assert await world.reconciler.reconcile() == 2
    assert {(await repaired(world, each)).status for each in (lost, hidden)} == {Status.READY}
    assert world.index.searchable(lost.document_id) == ["Text 1."]
    assert world.index.searchable(hidden.document_id) == ["Text 2."]
    world.clock.now += timedelta(hours=1)
    assert await world.reconciler.reconcile() == 0
    assert await world.record(kept) == kept


async def test_repair_numbers_its_revision_above_what_the_index_knows(world: World) -> None:
    document = await ready(world)
    world.index.active[document.document_id] = (7, "a-revision-that-the-record-lost")
    await world.reconciler.reconcile()
    done = await repaired(world, document)
    assert done.active is not None
    assert (done.active.number, world.index.active[document.document_id][0]) == (8, 8)


async def test_deletion_whose_record_was_lost_is_done_again(world: World) -> None:
    document = await ready(world)
    await world.index.delete(document.document_id)
    await world.reconciler.reconcile()
    assert (await world.record(document)).status is Status.DELETED


async def test_reconciler_guesses_nothing_while_the_index_is_away(world: World) -> None:
    document = await ready(world)

    async def away(_: object) -> None:
        raise Unavailable("the retriever is away")

    world.index.check = away  # type: ignore[method-assign, assignment]
    with pytest.raises(Unavailable):
        await world.reconciler.reconcile()
    assert await world.record(document) == document


async def test_documents_on_their_way_and_fresh_ones_are_not_repaired(world: World) -> None:
    fresh = await world.ingest(await world.upload("Fresh text.", "fresh.txt"))
    queued = await world.upload("Queued text.", "queued.txt")
    world.index.active.clear()
    assert await world.reconciler.reconcile() == 0
    assert (await world.record(fresh)).status is Status.READY
    assert await world.record(queued) == queued


async def test_job_that_an_index_ahead_of_its_record_refuses_is_numbered_anew(world: World) -> None:
    queued = await world.upload("Some text.")
    world.index.active[queued.document_id] = (5, "a-revision-that-the-record-lost")
    assert await world.attempts.run(world.job(queued), 1) is None
    again = await world.record(queued)
    assert again.pending is not None
    assert again.pending.number == 6
    assert (await world.ingest(again)).status is Status.READY


async def test_job_of_a_document_that_the_index_knows_as_deleted_ends_with_its_deletion(world: World) -> None:
    queued = await world.upload("Some text.")
    world.index.deleted.add(queued.document_id)
    assert await world.attempts.run(world.job(queued), 1) is None
    assert (await world.record(queued)).status is Status.DELETED


async def test_one_leads_and_the_next_takes_over(world: World) -> None:
    doing: list[str] = []
    begun = asyncio.Event()

    def duty(name: str) -> object:
        async def do() -> None:
            doing.append(name)
            begun.set()
            await asyncio.Event().wait()

        return do

    first = asyncio.create_task(lead(world.leases, duty("first")))  # type: ignore[arg-type]
    await begun.wait()
    begun.clear()
    second = asyncio.create_task(lead(world.leases, duty("second")))  # type: ignore[arg-type]
    await asyncio.sleep(0.01)
    assert doing == ["first"]
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await asyncio.wait_for(begun.wait(), 30)
    assert doing == ["first", "second"]
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)


async def test_duty_that_fails_is_begun_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.ingest.app._LEAD_RETRY_AFTER_S", 0.0)
    begun = 0
    twice = asyncio.Event()

    async def duty() -> None:
        nonlocal begun
        begun += 1
        if begun == 2:
            twice.set()
        raise LeaseLost("gone")

    leading = asyncio.create_task(lead(world.leases, duty))
    await asyncio.wait_for(twice.wait(), 30)
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)


async def test_backlog_is_told_as_gauges(world: World) -> None:
    queued = await world.upload("Some text.")
    assert queued.pending is not None
    now = world.clock()
    letter = DeadLetter(
        TENANT,
        queued.pending.revision_id,
        1,
        queued.document_id,
        "default",
        "notes.txt",
        Failure("INTERNAL", "broken"),
        "parse",
        5,
        0,
        now,
        now,
    )
    await world.letters.put(letter)
    registry = CollectorRegistry()
    await Backlog(world.jobs, world.dead_letters, Metrics(registry)).measure(letters=True)
    assert registry.get_sample_value("groundwork_ingest_queue_depth") == 1
    assert registry.get_sample_value("groundwork_ingest_dead_letters") == 1
