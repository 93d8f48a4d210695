"""Which lane a job waits in."""

from datetime import timedelta
from pathlib import Path

import pytest

from services.ingest.documents import records
from services.ingest.documents.models import IngestJob, Lane
from tests.unit.ingest.world import ANN, BULK_AFTER, TENANT, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def _lanes(world: World, count: int, **fields: Lane) -> list[Lane]:
    made = [await world.upload("hello", name=f"{len(world.store.records)}.txt", **fields) for _ in range(count)]
    return [world.job(document).lane for document in made]


async def test_few_uploads_are_interactive_and_those_beyond_are_a_bulk_import(world: World) -> None:
    assert await _lanes(world, BULK_AFTER + 3) == [Lane.INTERACTIVE] * BULK_AFTER + [Lane.BULK] * 3


async def test_upload_after_a_pause_is_interactive_again(world: World) -> None:
    await _lanes(world, BULK_AFTER + 1)
    world.clock.now += timedelta(minutes=2)
    assert await _lanes(world, 1) == [Lane.INTERACTIVE]


async def test_upload_to_another_collection_is_no_part_of_the_import(world: World) -> None:
    await world.catalog.create(ANN, "other", "")
    await _lanes(world, BULK_AFTER + 1)
    assert world.job(await world.upload("hello", collection_id="other")).lane is Lane.INTERACTIVE


async def test_sender_who_names_the_lane_has_it_and_is_not_counted(world: World) -> None:
    assert set(await _lanes(world, BULK_AFTER + 2, lane=Lane.BULK)) == {Lane.BULK}
    assert set(await _lanes(world, 2 * BULK_AFTER, lane=Lane.INTERACTIVE)) == {Lane.INTERACTIVE}
    assert await _lanes(world, 1) == [Lane.INTERACTIVE]


async def test_document_that_is_repaired_waits_among_bulk_jobs_and_one_read_again_by_hand_does_not(
    world: World,
) -> None:
    document = await world.ingest(await world.upload("hello"))
    assert document.active is not None
    repaired = await world.reviser.repair(TENANT, document.document_id, document.active.revision_id, above=1)
    assert repaired.lane is Lane.BULK
    again = await world.reviser.reindex(TENANT, (await world.ingest(repaired)).document_id)
    assert again.lane is Lane.INTERACTIVE


async def test_lost_job_is_queued_again_in_its_lane(world: World) -> None:
    document = await world.upload("hello", lane=Lane.BULK)
    world.jobs.jobs.clear()
    world.clock.now += timedelta(minutes=1)
    await world.sweeper.sweep()
    assert world.job(document).lane is Lane.BULK


def test_lane_of_a_newer_version_is_read_as_the_ordinary_one() -> None:
    job = records.encode_job(IngestJob("acme", "d", "r", Lane.BULK))
    assert records.decode_job(job).lane is Lane.BULK
    assert records.decode_job(job.replace(b"bulk", b"nightly")).lane is Lane.INTERACTIVE
