"""Exactly once, whatever happens in between."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kit.errors import ResourceExhausted, Unavailable
from kit.network.local_models import LocalModelsOnly, is_bound_to_local_models
from services.ingest.documents.deletion import document_lease
from services.ingest.documents.models import Document, Status
from services.ingest.errors import DocumentRejected
from services.ingest.fairness import FairShares
from services.ingest.ports import Vectors
from services.ingest.work import pipeline
from services.ingest.work.ledger import FailedTry
from tests.unit.ingest.world import ANN, TENANT, Crash, World

TEXT = "\n\n".join(
    f"Paragraph {n} says that item {n} costs {n * 7} euros. It was bought in {1990 + n}." for n in range(40)
)


@pytest.fixture(params=[0, 1000], ids=["large", "small"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """TEXT counts as a large document, and as a small one."""
    monkeypatch.setattr(pipeline, "CHUNKS_SOON_MADE", request.param)
    return World(tmp_path)


async def test_document_becomes_ready_with_report_and_active_revision(world: World) -> None:
    queued = await world.upload(TEXT)
    done = await world.ingest(queued)
    assert done.status is Status.READY
    assert done.active == queued.pending
    assert done.pending is None
    assert done.report is not None
    assert done.report.chunk_count == len(world.index.searchable(done.document_id)) > 3
    calls = ["index"] if done.report.chunk_count <= pipeline.CHUNKS_SOON_MADE else ["index", "activate"]
    assert list(done.report.stage_seconds) == ["parse", "clean", "chunk", "embed", *calls]
    assert done.report.chunker == "recursive"
    assert done.report.token_count > 0
    assert done.report.embed_batch_count == len(world.embedder.calls)


@pytest.mark.parametrize("waits_for", ["memory", "the index"])
async def test_worker_that_lost_its_lease_while_it_waited_makes_nothing_visible(world: World, waits_for: str) -> None:
    queued = await world.upload(TEXT)
    tries = 0

    def lose() -> None:
        world.leases.held[document_lease(TENANT, queued.document_id)].is_lost = True

    class Slow(FairShares):
        @contextlib.asynccontextmanager
        async def hold(self, tenant_id: str, document_id: str, size: int) -> AsyncIterator[None]:
            lose()
            yield

    async def index(*_: Any, **__: Any) -> bool:
        nonlocal tries
        tries += 1
        lose()
        raise Unavailable("away")

    if waits_for == "memory":
        world.pipeline._memory = Slow(1, 1)
    else:
        world.index.index = index  # type: ignore[method-assign]
    with pytest.raises(FailedTry):
        await world.ingest(queued)
    assert world.index.searchable(queued.document_id) == []
    assert tries <= 1
    assert (await world.record(queued)).status is Status.QUEUED


# Each step by what it is in the world: a crash comes either right before the step is done or right after.
STEPS: list[tuple[str, str]] = [
    ("files", "get_to_file"),
    ("preparer", "prepare"),
    ("embedder", "embed"),
    ("index", "index"),
    ("index", "activate"),
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS, ids=".".join)
async def test_crash_at_any_step_leads_to_the_same_state(world: World, step: tuple[str, str], when: str) -> None:
    queued = await world.upload(TEXT)
    _crash_once(world, step, when)
    with pytest.raises(Crash):
        await world.ingest(queued)
    await _assert_same_end(world, queued)


@pytest.mark.parametrize("write", range(4))
@pytest.mark.parametrize("when", ["before", "after"])
async def test_crash_at_any_write_of_the_record_leads_to_the_same_state(world: World, write: int, when: str) -> None:
    queued = await world.upload(TEXT)
    _crash_once(world, ("store", "update"), when, skip=write)
    with contextlib.suppress(Crash):  # a fast run has fewer writes of progress
        await world.ingest(queued)
    await _assert_same_end(world, queued)


async def _assert_same_end(world: World, queued: Document) -> None:
    done = await world.ingest(queued, attempt=2)
    assert queued.pending is not None
    assert done.status is Status.READY
    assert world.index.active[done.document_id] == (1, queued.pending.revision_id)
    assert list(world.index.revisions) == [(done.document_id, queued.pending.revision_id)]
    undisturbed = World(Path(_folder(world)))
    other = await undisturbed.upload(TEXT)
    await undisturbed.ingest(other)
    assert world.index.searchable(done.document_id) == undisturbed.index.searchable(other.document_id)


def _folder(world: World) -> str:
    return str(world.listing._spool._folder)


def _crash_once(world: World, step: tuple[str, str], when: str, skip: int = 0) -> None:
    part = getattr(world, step[0])
    real: Callable[..., Awaitable[Any]] = getattr(part, step[1])
    calls = 0

    async def crashing(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != skip + 1:
            return await real(*args, **kwargs)
        if when == "after":
            await real(*args, **kwargs)
        raise Crash(".".join(step))

    setattr(part, step[1], crashing)


@pytest.mark.parametrize("world", [0], indirect=True, ids=["large"])
async def test_death_after_activation_does_not_index_a_large_document_again(world: World) -> None:
    queued = await world.upload(TEXT)
    _crash_once(world, ("index", "activate"), "after")
    with pytest.raises(Crash):
        await world.ingest(queued)
    await world.ingest(queued, attempt=2)
    assert world.index.log.count("index") == 1


async def test_second_delivery_of_a_done_job_changes_nothing(world: World) -> None:
    queued = await world.upload(TEXT)
    done = await world.ingest(queued)
    before = (world.store.versions, list(world.index.log))
    await world.pipeline.handle(world.job(queued), 2)
    assert (world.store.versions, world.index.log) == before
    assert await world.record(done) == done


async def test_two_deliveries_at_once_do_the_work_once(world: World) -> None:
    queued = await world.upload(TEXT)
    job = world.job(queued)
    await asyncio.gather(world.pipeline.handle(job, 1), world.pipeline.handle(job, 2))
    assert world.index.log == ["index", "activate"]


async def test_index_is_told_how_many_documents_are_still_to_come(world: World) -> None:
    queued = [await world.upload(f"{TEXT} {n}", f"{n}.txt") for n in range(3)]
    await asyncio.gather(*(world.ingest(each) for each in queued))
    await world.ingest(await world.upload("Alone.", "alone.txt"))
    assert sorted(world.index.to_come) == [0, 0, 1, 2]


async def test_document_deleted_during_ingestion_stays_deleted(world: World) -> None:
    queued = await world.upload(TEXT)
    world.embedder.gate = asyncio.Event()
    ingestion = asyncio.create_task(world.pipeline.handle(world.job(queued), 1))
    await world.embedder.reached.wait()
    await world.deletion.delete(TENANT, queued.document_id)
    world.embedder.gate.set()
    await ingestion
    assert (await world.record(queued)).status is Status.DELETED
    assert world.index.searchable(queued.document_id) == []
    assert world.index.revisions == {}
    assert world.files.files == {}


async def test_reindex_keeps_the_old_revision_searchable_until_the_new_one_is_active(world: World) -> None:
    first = await world.ingest(await world.upload(TEXT))
    again = await world.reviser.reindex(TENANT, first.document_id)
    assert again.status is Status.QUEUED
    assert world.index.searchable(first.document_id)
    world.embedder.name = "another-embedder"  # so that there is something to embed
    world.embedder.gate = asyncio.Event()
    world.embedder.reached.clear()
    ingestion = asyncio.create_task(world.ingest(again))
    await world.embedder.reached.wait()
    assert first.active is not None
    assert world.index.active[first.document_id] == (1, first.active.revision_id)
    world.embedder.gate.set()
    second = await ingestion
    assert second.active is not None
    assert world.index.active[first.document_id] == (2, second.active.revision_id)
    assert len(world.index.revisions) == 1


async def test_failed_reindex_stays_ready_on_the_old_revision_and_says_why(world: World) -> None:
    first = await world.ingest(await world.upload(TEXT))
    replaced = await world.upload(b"", name="notes.txt")
    failed = await world.ingest(replaced)
    assert failed.status is Status.READY
    assert failed.error is not None
    assert failed.error.reason == "EMPTY_FILE"
    assert failed.active == first.active
    assert failed.content == first.content
    assert list(world.files.files) == [(TENANT, first.content.sha256)]


async def test_older_job_ends_quietly_when_a_newer_upload_replaced_it(world: World) -> None:
    old = await world.upload(TEXT)
    new = await world.upload(TEXT + " More.")
    assert new.document_id == old.document_id
    await world.pipeline.handle(world.job(old), 1)
    assert world.index.log == []
    done = await world.ingest(new)
    assert done.content == new.content
    assert list(world.files.files) == [(TENANT, new.content.sha256)]


async def test_busy_model_server_is_waited_for_and_costs_no_delivery(world: World) -> None:
    queued = await world.upload(TEXT)
    world.embedder.errors = [ResourceExhausted("full", retry_after_s=1.0), Unavailable("away"), Unavailable("away")]
    done = await world.ingest(queued)
    assert done.status is Status.READY
    assert done.report is not None
    assert done.report.attempts == 1


async def test_model_swapped_while_embedding_fails_the_try_not_the_document(world: World) -> None:
    queued = await world.upload(TEXT)
    real = world.embedder.embed

    async def other(texts: list[str]) -> Any:
        vectors, _ = await real(texts)
        return vectors, "another-model"

    world.embedder.embed = other  # type: ignore[method-assign]
    with pytest.raises(FailedTry) as raised:
        await world.ingest(queued)
    assert "changed from fake-embedder to another-model" in str(raised.value.error)
    waiting = await world.record(queued)
    assert (waiting.status, waiting.tries.failures) == (Status.QUEUED, 1)


async def test_damaged_stored_file_fails_the_document(world: World) -> None:
    queued = await world.upload(TEXT)
    world.files.files[TENANT, queued.content.sha256] = b"something else"
    failed = await world.ingest(queued)
    assert failed.error is not None
    assert failed.error.reason == "FILE_LOST"
    again = await world.upload(TEXT)
    assert again.document_id == queued.document_id
    assert (await world.ingest(again)).status is Status.READY


async def test_job_that_comes_again_when_the_record_was_lost_leaves_the_document_searchable(world: World) -> None:
    document = await world.upload("Some text.")
    job = world.job(document)
    await world.ingest(document)
    await world.store.purge(TENANT, document.document_id)
    await world.pipeline.handle(job, 2)
    assert world.index.searchable(document.document_id) == ["Some text."]


async def test_document_of_a_collection_with_local_models_only_fails_where_no_local_model_embeds(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = world.embedder.embed

    async def embed_outside(texts: Sequence[str]) -> tuple[Vectors, str]:
        if is_bound_to_local_models():
            raise DocumentRejected(LocalModelsOnly.reason, "the collection allows local models only")
        return await embed(texts)

    monkeypatch.setattr(world.embedder, "embed", embed_outside)
    collection = await world.catalog.create(ANN, "secret", "", local_models_only=True)
    failed = await world.ingest(await world.upload(TEXT, collection_id=collection.collection_id))
    assert failed.error is not None
    assert (failed.status, failed.error.reason) == (Status.FAILED, "LOCAL_MODELS_ONLY")
    assert world.embedder.calls == []
    assert (await world.ingest(await world.upload(TEXT))).status is Status.READY
