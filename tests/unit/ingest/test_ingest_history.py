"""What stays known of a document's revisions."""

from dataclasses import replace
from pathlib import Path

import pytest

from services.ingest.documents import records
from services.ingest.documents.history import MAX_PAST, list_revisions
from services.ingest.documents.models import Document, RevisionPhase
from tests.unit.ingest.world import ANN, BOB, TENANT, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def states(document: Document) -> list[tuple[int, str, str]]:
    """Number, state and who asked for it, newest first."""
    return [(each.revision.number, each.state, each.revision.by) for each in list_revisions(document)]


async def test_each_version_stays_known_with_who_uploaded_it_and_what_became_of_it(world: World) -> None:
    first = await world.ingest(await world.upload("hello"))
    assert states(first) == [(1, RevisionPhase.ACTIVE, "ann")]
    waiting = await world.upload("goodbye")
    assert states(waiting) == [(2, RevisionPhase.PENDING, "ann"), (1, RevisionPhase.ACTIVE, "ann")]
    second = await world.ingest(waiting)
    assert states(second) == [(2, RevisionPhase.ACTIVE, "ann"), (1, RevisionPhase.REPLACED, "ann")]
    newest, oldest = list_revisions(second)
    assert (newest.revision.content, oldest.revision.content) == (second.content, first.content)
    assert newest.revision.queued_at is not None
    assert newest.ended_at is not None
    assert newest.revision.queued_at < newest.ended_at
    assert (newest.chunk_count, oldest.chunk_count) == (1, 1)


async def test_version_that_cannot_be_read_says_why_and_the_one_before_stays_active(world: World) -> None:
    await world.ingest(await world.upload("hello"))
    failed = await world.ingest(await world.upload(""))
    assert states(failed) == [(2, RevisionPhase.FAILED, "ann"), (1, RevisionPhase.ACTIVE, "ann")]
    error = list_revisions(failed)[0].error
    assert error is not None
    assert error == failed.error


async def test_version_that_was_never_made_is_superseded(world: World) -> None:
    await world.upload("hello")
    second = await world.ingest(await world.upload("goodbye"))
    assert states(second) == [(2, RevisionPhase.ACTIVE, "ann"), (1, RevisionPhase.SUPERSEDED, "ann")]


async def test_file_that_is_read_again_is_a_version_of_who_asked_for_it(world: World) -> None:
    made = await world.ingest(await world.upload("hello"))
    await world.reviser.reindex(TENANT, made.document_id, by=BOB.subject)
    again = await world.ingest(await world.record(made))
    assert states(again) == [(2, RevisionPhase.ACTIVE, "bob"), (1, RevisionPhase.REPLACED, ANN.subject)]


async def test_only_the_last_versions_stay_known_and_all_records_stay_readable(world: World) -> None:
    document = await world.ingest(await world.upload("text 0"))
    for number in range(1, MAX_PAST + 3):
        document = await world.ingest(await world.upload(f"text {number}"))
    numbers = [number for number, _, _ in states(document)]
    assert numbers == list(range(MAX_PAST + 3, 3, -1))
    assert records.decode_document(records.encode_document(document)) == document


async def test_versions_of_a_record_that_an_earlier_release_wrote_are_those_that_it_tells_of(world: World) -> None:
    made = await world.ingest(await world.upload("hello"))
    assert made.active is not None
    old = replace(made, history=(), active=replace(made.active, by="", queued_at=None))
    (only,) = list_revisions(old)
    assert (only.state, only.chunk_count, only.ended_at) == (RevisionPhase.ACTIVE, 1, None)


async def test_history_goes_with_its_document(world: World) -> None:
    made = await world.ingest(await world.upload("hello"))
    await world.deletion.delete(TENANT, made.document_id)
    assert (await world.record(made)).history == ()
