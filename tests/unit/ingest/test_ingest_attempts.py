"""What counts against a document, what does not, and what becomes of one that is given up."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from kit.access.principal import Principal
from kit.errors import (
    Cancelled,
    DeadlineExceeded,
    FailedPrecondition,
    GroundworkError,
    Internal,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
)
from services.ingest.documents.models import Document, Status
from services.ingest.errors import DeadLetterNotFound, NotYours
from services.ingest.work.attempts import BACKOFF_S, FAILURES_MAX, NEIGHBOUR_FAILURES_MAX
from services.ingest.work.ledger import DEATHS_MAX, REST_S, SUSPECT_DEATHS, Ledger
from services.ingest.work.models import RequeueOutcome
from services.ingest.work.patience import Patience
from tests.unit.ingest.world import ADMINISTRATOR, ANN, BOB, TENANT, Crash, World


@pytest.fixture(autouse=True)
def _logs_are_data() -> Iterator[None]:
    """Drawing tracebacks for people takes seconds."""
    with capture_logs():
        yield


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def breaking(world: World, error: BaseException) -> Callable[[], None]:
    """Every try ends with `error` until the returned function is called."""

    def fail() -> None:
        raise error

    world.preparer.on_prepare = fail

    def repair() -> None:
        world.preparer.on_prepare = None

    return repair


async def run_until_done(world: World, document: Document, tries_max: int = 50) -> list[float]:
    """Delivers the job as the queue would; the waits that were asked for."""
    waits: list[float] = []
    for delivery in range(1, tries_max + 1):
        wait_s = await world.attempts.run(world.job(document), delivery)
        if wait_s is None:
            return waits
        waits.append(wait_s)
    return waits


async def given_up(world: World, error: BaseException, name: str = "notes.txt") -> Document:
    document = await world.upload(f"Text of {name}.", name)
    repair = breaking(world, error)
    await run_until_done(world, document)
    repair()
    return document


async def die(world: World, document: Document, worker_id: str) -> None:
    """One try by another worker, which is killed in the middle of it."""
    ledger = world.pipeline._ledger
    world.pipeline._ledger = Ledger(world.store, world.clock, worker_id)
    breaking(world, Crash("prepare"))
    with contextlib.suppress(Crash):
        while (rest_s := await world.attempts.run(world.job(document), 1)) is not None:
            world.clock.now += timedelta(seconds=rest_s)
    world.preparer.on_prepare = None
    world.pipeline._ledger = ledger
    assert (await world.record(document)).tries.worker_id == worker_id


async def test_unknown_errors_are_tried_again_with_backoff_and_end_as_a_dead_letter(world: World) -> None:
    document = await world.upload("Some text.")
    breaking(world, ZeroDivisionError())
    assert await run_until_done(world, document) == list(BACKOFF_S[: FAILURES_MAX - 1])
    failed = await world.record(document)
    assert failed.status is Status.FAILED
    assert failed.error is not None
    assert failed.error.reason == "INTERNAL"
    (letter,) = world.letters.letters.values()
    assert (letter.document_id, letter.failures, letter.deaths) == (document.document_id, FAILURES_MAX, 0)
    assert letter.stage == "parse"
    assert letter.first_failed_at < letter.last_failed_at


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("the retriever is away"),
        ResourceExhausted("the queue of the model server is full"),
        Cancelled("the retriever is stopping"),
        Unavailable("no answer", reason="NATS_UNAVAILABLE", retry_after_s=2.0),
    ],
    ids=["away", "full", "stopping", "store away"],
)
async def test_neighbour_that_is_away_for_hours_gives_nothing_up(world: World, error: GroundworkError) -> None:
    document = await world.upload("Some text.")
    repair = breaking(world, error)
    assert len(await run_until_done(world, document, tries_max=1000)) == 1000
    waiting = await world.record(document)
    assert (waiting.status, waiting.tries.failures, waiting.tries.deaths) == (Status.QUEUED, 0, 0)
    repair()
    assert await run_until_done(world, document) == []
    assert (await world.record(document)).status is Status.READY


async def test_hanging_neighbour_is_waited_for_an_hour_before_it_counts(world: World) -> None:
    now_s = 0.0
    calls = 0

    async def hang() -> None:
        nonlocal now_s, calls
        now_s += 10.0
        calls += 1
        raise DeadlineExceeded("no answer within 10 s")

    async def no_sleep(_: float) -> None:
        return

    with pytest.raises(DeadlineExceeded):
        await Patience(sleep=no_sleep, clock=lambda: now_s).call("embed", hang)
    assert now_s > 3600


async def test_stopped_worker_hands_back_what_it_has_and_nothing_counts(world: World) -> None:
    document = await world.upload("Some text.")
    world.embedder.gate = asyncio.Event()
    for _ in range(DEATHS_MAX + 1):
        world.embedder.reached.clear()
        task = asyncio.create_task(world.attempts.run(world.job(document), 1))
        await world.embedder.reached.wait()
        assert (await world.record(document)).tries.worker_id == "worker-0"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        handed_back = await world.record(document)
        assert (handed_back.status, handed_back.tries.worker_id) == (Status.QUEUED, "")
    world.embedder.gate.set()
    assert await run_until_done(world, document) == []
    assert (await world.record(document)).status is Status.READY


async def test_document_that_ends_worker_after_worker_is_given_up(world: World) -> None:
    document = await world.upload("Some text.")
    began = world.clock.now
    for number in range(DEATHS_MAX):
        assert (await world.record(document)).tries.deaths == max(0, number - 1)
        await die(world, document, f"killed-{number}")
    assert (world.clock.now - began).total_seconds() > sum(REST_S), "a storm of kills passes over what is in hand"
    assert await run_until_done(world, document) == []
    failed = await world.record(document)
    assert failed.error is not None
    assert failed.error.reason == "WORKER_DIED"
    assert "ended the worker 5 times" in failed.error.message
    (letter,) = world.letters.letters.values()
    assert (letter.failure.reason, letter.deaths, letter.failures) == ("WORKER_DIED", DEATHS_MAX, 0)


async def test_clock_that_is_set_back_lets_no_document_rest_for_longer(world: World) -> None:
    document = await world.upload("Some text.")
    for number in range(SUSPECT_DEATHS):
        await die(world, document, f"killed-{number}")
    assert await world.attempts.run(world.job(document), 1) is not None
    world.clock.now -= timedelta(days=1)
    assert await world.attempts.run(world.job(document), 1) is None, "not until the clock has caught up"
    assert (await world.record(document)).status is Status.READY


async def test_own_mark_that_could_not_be_taken_off_is_no_death(world: World) -> None:
    document = await world.upload("Some text.")
    for _ in range(3):
        await die(world, document, "worker-0")
    assert await run_until_done(world, document) == []
    assert (await world.record(document)).status is Status.READY


async def test_suspects_are_read_one_at_a_time(world: World) -> None:
    suspects = [await world.upload(f"Text {n}.", f"{n}.txt") for n in range(2)]
    for document in suspects:
        for number in range(SUSPECT_DEATHS):
            await die(world, document, f"killed-{number}")
    world.clock.now += timedelta(hours=1)
    for document in suspects:  # their third death is found out, and they are left alone
        assert await world.attempts.run(world.job(document), 9) is not None
    world.clock.now += timedelta(hours=1)
    world.embedder.gate = asyncio.Event()
    tasks = [asyncio.create_task(world.attempts.run(world.job(each), 9)) for each in suspects]
    await world.embedder.reached.wait()
    innocent = await world.upload("Another text.", "innocent.txt")
    tasks.append(asyncio.create_task(world.attempts.run(world.job(innocent), 1)))
    while len(world.embedder.calls) < 2:
        await asyncio.sleep(0)
    in_hand = [(await world.record(each)).tries.worker_id == "worker-0" for each in (*suspects, innocent)]
    assert in_hand == [True, False, True]
    world.embedder.gate.set()
    await asyncio.gather(*tasks)
    assert [(await world.record(each)).status for each in suspects] == [Status.READY] * 2


async def test_answer_that_stays_the_same_is_not_asked_for_again(world: World) -> None:
    unsupported = FailedPrecondition("an engine that is too old", reason="ENGINE_UNSUPPORTED")
    document = await given_up(world, unsupported)
    (letter,) = world.letters.letters.values()
    assert (letter.failure.reason, letter.failures) == ("ENGINE_UNSUPPORTED", 1)
    assert (await world.record(document)).status is Status.FAILED


@pytest.mark.parametrize(
    "error",
    [PermissionDenied("the token is signed with another secret"), Internal("something went wrong on our side")],
    ids=["refused", "broken"],
)
async def test_neighbour_that_is_broken_for_an_hour_gives_nothing_up(world: World, error: GroundworkError) -> None:
    document = await world.upload("Some text.")
    breaking(world, error)
    waits = await run_until_done(world, document)
    assert len(waits) == NEIGHBOUR_FAILURES_MAX - 1
    assert sum(waits) > 3600
    assert len(world.letters.letters) == 1


def refusing_another_model(world: World, refusals: int) -> None:
    """The index refuses so many times, as a retriever of the release before does when the model server is a newer one."""
    real = world.index.index
    left = [refusals]

    async def index(*args: Any, **kwargs: Any) -> bool:
        if left[0]:
            left[0] -= 1
            raise FailedPrecondition("the dense index holds vectors of A", reason="EMBEDDING_SPACE_MISMATCH")
        return await real(*args, **kwargs)

    world.index.index = index  # type: ignore[method-assign]


async def test_index_that_does_not_know_the_new_model_yet_is_tried_again_until_it_does(world: World) -> None:
    document = await world.upload("Some text.")
    refusing_another_model(world, 3)
    assert await run_until_done(world, document) == list(BACKOFF_S[:3])
    assert (await world.record(document)).status is Status.READY
    assert world.letters.letters == {}


async def test_index_that_keeps_refusing_the_model_for_an_hour_gives_the_job_up_and_says_why(world: World) -> None:
    document = await world.upload("Some text.")
    refusing_another_model(world, 100)
    assert sum(await run_until_done(world, document)) > 3600
    (letter,) = world.letters.letters.values()
    assert (letter.failure.reason, letter.failures) == ("EMBEDDING_SPACE_MISMATCH", NEIGHBOUR_FAILURES_MAX)
    failed = await world.record(document)
    assert failed.status is Status.FAILED
    assert failed.error is not None
    assert "given up after 12 tries: the dense index holds vectors of A" in failed.error.message


async def test_file_that_cannot_be_read_fails_and_leaves_no_letter(world: World) -> None:
    document = await world.upload("", "empty.txt")
    assert await run_until_done(world, document) == []
    assert (await world.record(document)).status is Status.FAILED
    assert world.letters.letters == {}


async def test_failed_reindex_is_given_up_and_leaves_the_old_revision_searchable(world: World) -> None:
    first = await world.ingest(await world.upload("Some text."))
    again = await world.reviser.reindex(TENANT, first.document_id)
    breaking(world, ZeroDivisionError())
    await run_until_done(world, again)
    after = await world.record(first)
    assert (after.status, after.active) == (Status.READY, first.active)
    assert after.error is not None
    assert world.index.searchable(first.document_id) == ["Some text."]
    assert len(world.letters.letters) == 1


async def test_letter_is_queued_again_once_however_often_it_is_asked_for(world: World) -> None:
    document = await given_up(world, ZeroDivisionError())
    (letter,) = world.letters.letters.values()
    outcome, queued = await world.dead_letters.requeue(ANN, letter.revision_id)
    assert outcome is RequeueOutcome.REQUEUED
    assert queued is not None
    assert queued.pending is not None
    assert queued.pending.number == 2
    for _ in range(3):
        outcome, _document = await world.dead_letters.requeue(ANN, letter.revision_id)
        assert outcome is RequeueOutcome.ALREADY_REQUEUED
    assert len(world.jobs.jobs) == 2
    assert await world.dead_letters.page(ANN, "", "", 0, "") == ([], "")
    done = await world.ingest(queued)
    assert (done.status, done.document_id) == (Status.READY, document.document_id)


async def test_letter_of_a_deleted_or_replaced_document_says_so_and_goes(world: World) -> None:
    deleted = await given_up(world, ZeroDivisionError(), "deleted.txt")
    replaced = await given_up(world, ZeroDivisionError(), "replaced.txt")
    letters = {letter.document_id: letter for letter in world.letters.letters.values()}
    await world.deletion.delete(TENANT, deleted.document_id)
    await world.upload("Newer text.", "replaced.txt")
    outcome, document = await world.dead_letters.requeue(ANN, letters[deleted.document_id].revision_id)
    assert (outcome, document) == (RequeueOutcome.DOCUMENT_DELETED, None)
    outcome, document = await world.dead_letters.requeue(ANN, letters[replaced.document_id].revision_id)
    assert outcome is RequeueOutcome.SUPERSEDED
    assert document is not None
    assert world.letters.letters == {}


async def test_letters_are_paged_newest_first_and_filtered(world: World) -> None:
    await world.catalog.create(ANN, "papers", "Papers")
    documents = [await given_up(world, ZeroDivisionError(), f"{n}.txt") for n in range(5)]
    other = await given_up(world, FailedPrecondition("engine", reason="ENGINE_UNSUPPORTED"), "other.txt")
    found: list[str] = []
    token = ""
    while True:
        letters, token = await world.dead_letters.page(ANN, "default", "INTERNAL", 2, token)
        found += [letter.document_id for letter in letters]
        if not token:
            break
    assert found == [document.document_id for document in reversed(documents)]
    (letter,), _ = await world.dead_letters.page(ANN, "", "ENGINE_UNSUPPORTED", 0, "")
    assert letter.document_id == other.document_id
    assert await world.dead_letters.page(ANN, "papers", "", 0, "") == ([], "")
    assert await world.dead_letters.page(Principal("rival", "ann"), "", "", 0, "") == ([], "")


async def test_bulk_requeue_takes_a_collection_and_reason_and_counts(world: World) -> None:
    for n in range(3):
        await given_up(world, ZeroDivisionError(), f"{n}.txt")
    await given_up(world, FailedPrecondition("engine", reason="ENGINE_UNSUPPORTED"), "other.txt")
    deleted = (await world.dead_letters.page(ANN, "", "INTERNAL", 1, ""))[0][0]
    await world.deletion.delete(TENANT, deleted.document_id)
    counts = await world.dead_letters.counts(ANN, "")
    assert (counts.queued, counts.dead_letters) == (0, 4)
    done = await world.dead_letters.requeue_all(ANN, "default", "INTERNAL")
    assert (done.requeued, done.dropped, done.remaining) == (2, 1, 0)
    counts = await world.dead_letters.counts(ANN, "default")
    assert (counts.queued, counts.dead_letters) == (2, 1)
    assert counts.oldest_queued_at is not None


async def test_letter_follows_its_collection(world: World) -> None:
    """Ann's document was given up; Bob learns of it when she shares its collection, and does not change it."""
    await given_up(world, ZeroDivisionError())
    (letter,) = world.letters.letters.values()
    letters = [letter]
    refusals = []
    for letter_id in (letter.revision_id, "0" * 32):
        with pytest.raises(DeadLetterNotFound) as told:
            await world.dead_letters.requeue(BOB, letter_id)
        refusals.append(told.value.message.replace(letter_id, "it"))
    assert refusals[0] == refusals[1]
    assert (await world.dead_letters.page(BOB, "", "", 0, ""))[0] == []
    assert (await world.dead_letters.requeue_all(BOB, "", "")).requeued == 0
    shared = await world.catalog.get(ANN, letter.collection_id)
    await world.collections.put(replace(shared, visibility="tenant"))
    assert (await world.dead_letters.page(BOB, "", "", 0, ""))[0] == letters
    with pytest.raises(NotYours):
        await world.dead_letters.requeue(BOB, letter.revision_id)
    assert (await world.dead_letters.requeue_all(BOB, "", "")).requeued == 0
    assert (await world.dead_letters.requeue_all(ADMINISTRATOR, "", "")).requeued == 1


async def test_letter_of_another_tenant_is_unknown(world: World) -> None:
    await given_up(world, ZeroDivisionError())
    (letter,) = world.letters.letters.values()
    for tenant_id, letter_id in (("rival", letter.revision_id), (TENANT, "*"), (TENANT, ">"), (TENANT, "")):
        with pytest.raises(DeadLetterNotFound):
            await world.dead_letters.requeue(Principal(tenant_id, "ann"), letter_id)


async def test_letters_that_nobody_needs_are_dropped(world: World) -> None:
    requeued = await given_up(world, ZeroDivisionError(), "a.txt")
    await given_up(world, ZeroDivisionError(), "b.txt")
    deleted = await given_up(world, ZeroDivisionError(), "c.txt")
    by_document = {letter.document_id: letter for letter in world.letters.letters.values()}
    await world.dead_letters.requeue(ANN, by_document[requeued.document_id].revision_id)
    await world.deletion.delete(TENANT, deleted.document_id)
    assert await world.dead_letters.sweep() == 1
    assert len(world.letters.letters) == 2
    world.clock.now += timedelta(days=2)
    assert await world.dead_letters.sweep() == 1
    assert len(world.letters.letters) == 1


async def test_job_that_is_given_up_twice_leaves_one_letter(world: World) -> None:
    document = await world.upload("Some text.")
    breaking(world, FailedPrecondition("engine", reason="ENGINE_UNSUPPORTED"))
    real = world.pipeline.fail

    async def crash(*_: object) -> None:
        raise Crash("fail")

    world.pipeline.fail = crash  # type: ignore[method-assign, assignment]
    with pytest.raises(Crash):
        await world.attempts.run(world.job(document), 1)
    world.pipeline.fail = real  # type: ignore[method-assign]
    assert await run_until_done(world, document) == []
    assert len(world.letters.letters) == 1
    assert (await world.record(document)).status is Status.FAILED


async def test_five_deliveries_of_one_job_change_nothing_more(world: World) -> None:
    document = await world.upload("Some text.")
    results = await asyncio.gather(*(world.attempts.run(world.job(document), n) for n in range(1, 6)))
    assert results == [None] * 5
    assert world.index.log == ["index", "activate"]
    assert (await world.record(document)).status is Status.READY
