"""What interrupted uploads and deletions leave over is removed; what may have been lost is not made worse."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from kit.errors import Unavailable
from services.ingest.documents.life import TOMBSTONE_LIFE
from services.ingest.documents.models import Document, NameClaim
from services.ingest.upkeep.collecting import FEW_FILES
from tests.unit.ingest.world import TENANT, World

PLACE = (TENANT, "default", "notes.txt")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    with capture_logs() as entries:
        yield entries


async def ready(world: World, text: str = "Some text.", name: str = "notes.txt") -> Document:
    return await world.ingest(await world.upload(text, name))


async def collect_later(world: World) -> None:
    world.clock.now += 2 * TOMBSTONE_LIFE
    await world.collector.collect()


def claimed(world: World) -> dict[str, str]:
    return {name: claim.document_id for (_, _, name), claim in world.store.names.items()}


async def test_name_that_leads_nowhere_is_freed(world: World) -> None:
    await world.store.claim_name(*PLACE, "ab" * 16)
    await collect_later(world)
    assert claimed(world) == {}


async def test_name_of_a_document_that_the_index_knows_as_deleted_is_freed(world: World) -> None:
    document = await ready(world)
    await world.index.delete(document.document_id)
    await world.store.purge(TENANT, document.document_id)
    await collect_later(world)
    assert claimed(world) == {}


async def test_name_that_was_just_claimed_is_left_to_its_upload(world: World) -> None:
    await world.store.claim_name(*PLACE, "ab" * 16)
    world.clock.now += TOMBSTONE_LIFE / 2
    await world.collector.collect()
    assert claimed(world) == {"notes.txt": "ab" * 16}


async def test_name_that_is_given_to_another_meanwhile_stays_with_it(world: World) -> None:
    await world.store.claim_name(*PLACE, "ab" * 16)
    real = world.store.drop_claim

    async def passed_before(claim: NameClaim) -> None:
        await world.store.pass_name(*PLACE, "ab" * 16, "cd" * 16)
        await real(claim)

    world.store.drop_claim = passed_before  # type: ignore[method-assign]
    await collect_later(world)
    assert claimed(world) == {"notes.txt": "cd" * 16}


async def test_torn_name_leads_to_a_fresh_document_and_is_freed(world: World) -> None:
    await world.store.claim_name(*PLACE, "a torn id, � and so on")
    document = await world.upload("Some text.")
    assert claimed(world) == {"notes.txt": document.document_id}
    await world.store.claim_name(TENANT, "default", "other.txt", "another torn id")
    await collect_later(world)
    assert claimed(world) == {"notes.txt": document.document_id}


async def test_name_that_was_lost_is_given_back_to_its_document(world: World) -> None:
    document = await ready(world)
    world.store.names.clear()
    await collect_later(world)
    assert claimed(world) == {"notes.txt": document.document_id}


async def test_file_that_no_document_uses_is_removed(world: World) -> None:
    document = await ready(world)
    unused = "ef" * 32
    world.files.files[TENANT, unused] = b"of an upload that was killed before its record was written"
    await collect_later(world)
    assert list(world.files.files) == [(TENANT, document.content.sha256)]


async def test_file_of_an_upload_under_way_is_left_to_it(world: World) -> None:
    world.files.files[TENANT, "ef" * 32] = b"just stored"
    world.files.stored_at[TENANT, "ef" * 32] = world.clock.now
    world.clock.now += TOMBSTONE_LIFE / 2
    await world.collector.collect()
    assert list(world.files.files) == [(TENANT, "ef" * 32)]


async def test_files_of_tombstones_that_wait_for_their_sweep_are_no_files_in_use(world: World) -> None:
    document = await world.upload("Some text.")
    stored = await world.store.get(TENANT, document.document_id)
    assert stored is not None
    await world.deletion.delete(TENANT, document.document_id)
    world.files.files[TENANT, document.content.sha256] = b"Some text."
    await collect_later(world)
    assert world.files.files == {}


async def test_remains_of_files_are_collected_once_they_are_old(world: World) -> None:
    await collect_later(world)
    assert world.files.collected_before == world.clock.now - TOMBSTONE_LIFE


async def test_searchable_document_without_a_record_is_told_of_and_nothing_is_removed(
    world: World, logs: list[Any]
) -> None:
    document = await ready(world)
    await world.store.purge(TENANT, document.document_id)
    await collect_later(world)
    assert claimed(world) == {"notes.txt": document.document_id}
    assert list(world.files.files) == [(TENANT, document.content.sha256)]
    assert world.files.collected_before is None
    (told,) = [entry for entry in logs if entry["event"] == "records_lost"]
    assert told["document_ids"] == [document.document_id]


async def test_nothing_is_removed_while_a_record_cannot_be_read(world: World) -> None:
    await world.store.claim_name(*PLACE, "ab" * 16)
    world.files.files[TENANT, "ef" * 32] = b"perhaps the file of the record that cannot be read"
    world.store.unreadable = 1
    await collect_later(world)
    assert claimed(world) == {"notes.txt": "ab" * 16}
    assert len(world.files.files) == 1


async def test_many_files_without_documents_look_like_lost_records(world: World, logs: list[Any]) -> None:
    await ready(world)
    for n in range(FEW_FILES + 1):
        world.files.files[TENANT, f"{n:064x}"] = b"text"
    await collect_later(world)
    assert len(world.files.files) == FEW_FILES + 2
    assert world.files.collected_before is None
    (told,) = [entry for entry in logs if entry["event"] == "files_not_collected"]
    assert (told["files"], told["unused"]) == (FEW_FILES + 2, FEW_FILES + 1)


async def test_missing_file_of_a_document_looks_like_damage(world: World) -> None:
    await ready(world)
    world.files.files = {(TENANT, "ef" * 32): b"unused"}
    await collect_later(world)
    assert list(world.files.files) == [(TENANT, "ef" * 32)]
    assert world.files.collected_before is None


async def test_nothing_is_guessed_while_the_index_is_away(world: World) -> None:
    await world.store.claim_name(*PLACE, "ab" * 16)

    async def away(_: object) -> None:
        raise Unavailable("the retriever is away")

    world.index.check = away  # type: ignore[method-assign, assignment]
    with pytest.raises(Unavailable):
        await collect_later(world)
    assert claimed(world) == {"notes.txt": "ab" * 16}
