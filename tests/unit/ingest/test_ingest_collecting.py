"""What interrupted uploads and deletions leave over is removed; what may have been lost is not made worse."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from kit.errors import Unavailable
from kit.jetstream.condition import Finding
from services.ingest.documents.life import TOMBSTONE_LIFE
from services.ingest.documents.models import Document, NameClaim
from services.ingest.upkeep.agreement import EXAMPLES_MAX, SOURCE
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


async def collect_later(world: World, *, rounds: int = 2) -> None:
    """What is removed was left over in two rounds; each tells what it finds."""
    world.clock.now += 2 * TOMBSTONE_LIFE
    for _ in range(rounds):
        await world.collector.collect()


def told(world: World) -> dict[str, tuple[int, int, tuple[str, ...]]]:
    """What an operator sees."""
    findings = [finding for some in world.condition.kept.values() for finding in some]
    return {finding.kind: (finding.count, finding.repaired, finding.examples) for finding in findings}


def measured(world: World) -> dict[str, float]:
    """What differs, as the metric says."""
    (metric,) = [each for each in world.registry.collect() if each.name == "groundwork_ingest_disagreements"]
    return {sample.labels["kind"]: sample.value for sample in metric.samples if sample.value}


def claimed(world: World) -> dict[str, str]:
    return {name: claim.document_id for (_, _, name), claim in world.store.names.items()}


async def test_name_that_leads_nowhere_is_freed(world: World) -> None:
    await world.store.claim_name(*PLACE, "ab" * 16)
    await collect_later(world)
    assert claimed(world) == {}


async def test_name_of_an_upload_in_hand_is_left_to_it_when_the_clock_jumps(world: World) -> None:
    await world.store.claim_name(*PLACE, "ab" * 16)
    world.clock.now += 2 * TOMBSTONE_LIFE  # a laptop wakes up, or the clock is set
    await world.collector.collect()
    assert claimed(world) == {"notes.txt": "ab" * 16}
    await world.collector.collect()
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
    world.clock.now += 2 * TOMBSTONE_LIFE
    await world.collector.collect()
    assert claimed(world) == {"notes.txt": document.document_id}
    assert measured(world) == {"names_missing": 1}
    label = f"default/notes.txt ({document.document_id})"
    for _ in range(2):
        assert told(world) == {"names_missing": (1, 1, (label,))}, "until a person has seen it"
        await collect_later(world)


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
    said, _ = [entry for entry in logs if entry["event"] == "records_lost"]
    assert said["document_ids"] == [document.document_id]
    assert told(world) == {"records_missing": (1, 0, (document.document_id,))}
    assert measured(world) == {"records_missing": 1}


async def test_searchable_document_of_which_record_and_name_are_lost_keeps_its_file(world: World) -> None:
    document = await ready(world)
    await world.store.purge(TENANT, document.document_id)
    world.store.names.clear()
    await collect_later(world)
    assert list(world.files.files) == [(TENANT, document.content.sha256)]
    assert told(world) == {"records_missing": (1, 0, (document.document_id,))}
    await world.index.delete(document.document_id)
    await collect_later(world)
    assert told(world) == measured(world) == {}, "it is over"
    assert world.files.files == {}


async def test_document_that_was_made_while_the_stores_were_compared_is_not_taken_for_lost(world: World) -> None:
    real = world.index.visible

    async def after_an_upload() -> AsyncGenerator[str, None]:
        world.index.visible = real  # type: ignore[method-assign]
        await ready(world, "Just uploaded.", "new.txt")
        async for document_id in real():
            yield document_id

    await ready(world)
    world.index.visible = after_an_upload  # type: ignore[method-assign]
    await collect_later(world)
    assert told(world) == {}


async def test_nothing_is_removed_while_a_record_cannot_be_read(world: World) -> None:
    await world.store.claim_name(*PLACE, "ab" * 16)
    world.files.files[TENANT, "ef" * 32] = b"perhaps the file of the record that cannot be read"
    world.store.unreadable = 1
    await collect_later(world)
    assert claimed(world) == {"notes.txt": "ab" * 16}
    assert len(world.files.files) == 1
    assert told(world) == {"records_unreadable": (1, 0, ())}


async def test_many_files_without_documents_look_like_lost_records(world: World, logs: list[Any]) -> None:
    await ready(world)
    for n in range(FEW_FILES + 1):
        world.files.files[TENANT, f"{n:064x}"] = b"text"
    await collect_later(world)
    assert len(world.files.files) == FEW_FILES + 2
    assert world.files.collected_before is None
    said, _ = [entry for entry in logs if entry["event"] == "files_not_collected"]
    assert (said["files"], said["unused"]) == (FEW_FILES + 2, FEW_FILES + 1)
    count, repaired, examples = told(world)["files_unused"]
    assert (count, repaired, len(examples)) == (FEW_FILES + 1, 0, EXAMPLES_MAX)


async def test_missing_file_of_a_document_looks_like_damage(world: World) -> None:
    document = await ready(world)
    files = dict(world.files.files)
    world.files.files = {(TENANT, "ef" * 32): b"unused"}
    await collect_later(world)
    assert list(world.files.files) == [(TENANT, "ef" * 32)]
    assert world.files.collected_before is None
    assert told(world) == {"files_missing": (1, 0, (f"default/notes.txt ({document.document_id})",))}
    assert measured(world) == {"files_missing": 1}
    world.files.files |= files
    await collect_later(world)
    assert told(world) == measured(world) == {}


async def test_what_the_ledger_has_told_is_not_told_twice(world: World) -> None:
    await ready(world)
    world.files.files.clear()
    known = Finding("files_missing", "FILES", 1, 0, "The files of 1 documents are gone", "", (), "2026-01-01")
    await world.condition.set("files", [known])
    await collect_later(world)
    assert world.condition.kept[SOURCE] == []
    assert measured(world) == {"files_missing": 1}


async def test_who_leads_no_longer_tells_nothing(world: World) -> None:
    await ready(world)
    world.files.files.clear()
    world.index.revisions.clear()
    world.clock.now += TOMBSTONE_LIFE
    await world.reconciler.reconcile()
    await collect_later(world)
    assert measured(world) == {"files_missing": 1, "not_searchable": 1}
    world.agreement.leave()
    assert measured(world) == {}


async def test_nothing_is_guessed_while_the_index_is_away(world: World) -> None:
    await world.store.claim_name(*PLACE, "ab" * 16)

    def away() -> None:
        raise Unavailable("the retriever is away")

    world.index.visible = away  # type: ignore[method-assign, assignment]
    with pytest.raises(Unavailable):
        await collect_later(world)
    assert claimed(world) == {"notes.txt": "ab" * 16}
