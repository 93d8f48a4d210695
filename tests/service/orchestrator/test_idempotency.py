"""A start that is asked for again after a lost answer starts no second run."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from kit.access.principal import Principal, use_principal
from kit.errors import Unavailable
from kit.jetstream import KeyValue, Nats
from kit.stores.forgetting import ForgetRequest, Source
from kit.stores.idempotency import IdempotencyConflict, IdempotencyInFlight
from services.orchestrator.errors import (
    InvalidRequest,
    RunNotFound,
    ThreadForgotten,
    TooManyRuns,
)
from services.orchestrator.log.events import RunMode, RunStatus
from services.orchestrator.models import Dependent, RunKey, RunRecord
from services.orchestrator.runs.forgetting import SETTLE
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, collect, now
from tests.service.orchestrator.test_ownership import LONG_S
from tests.service.orchestrator.test_runs import GatedModel, _has_status, status_of, until

Start = Callable[..., Awaitable[Orchestrator]]


async def test_same_key_and_question_lead_to_the_same_run_on_any_orchestrator(start_orchestrator: Start) -> None:
    first, second = await start_orchestrator(), await start_orchestrator()
    key, events = await first.runs.start(ANN, QUESTION, "k1")
    live = await collect(events)
    await until(lambda: _has_status(first, key, RunStatus.COMPLETED))
    again, replayed = await second.runs.start(ANN, QUESTION, "k1")
    assert again == key
    assert await collect(replayed) == live
    assert [run.key for run in (await first.runs.list("acme", 10, "")).runs] == [key]


async def test_run_that_goes_on_is_named_so_that_it_can_be_followed(start_orchestrator: Start) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model), await start_orchestrator()
    key, events = await first.runs.start(ANN, QUESTION, "k1")
    await model.speaking.wait()
    with pytest.raises(IdempotencyInFlight) as told:
        await second.runs.start(ANN, QUESTION, "k1")
    assert told.value.metadata["run_id"] == key.run_id
    followed = second.runs.attach(key, 0)
    model.gate.set()
    assert await collect(followed) == await collect(events)


@pytest.mark.parametrize(
    "changed",
    [
        replace(QUESTION, question="Another?"),
        replace(QUESTION, collection_ids=("other",)),
        replace(QUESTION, mode=RunMode.GROUNDED),
        replace(QUESTION, top_k=3),
    ],
)
async def test_same_key_with_another_question_is_refused(start_orchestrator: Start, changed: object) -> None:
    orchestrator = await start_orchestrator()
    await orchestrator.runs.start(ANN, QUESTION, "k1")
    with pytest.raises(IdempotencyConflict, match="another question"):
        await orchestrator.runs.start(ANN, changed, "k1")  # type: ignore[arg-type]


async def test_keys_of_others_are_their_own(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator()
    askers = [ANN, Principal("acme", "bert"), Principal("other", "ann")]
    keys = [(await orchestrator.runs.start(asker, QUESTION, "k1"))[0] for asker in askers]
    keys.append((await orchestrator.runs.start(ANN, QUESTION, "k2"))[0])
    keys.append((await orchestrator.runs.start(ANN, QUESTION))[0])
    assert len(set(keys)) == 5


@pytest.mark.parametrize("key", [" ", "a b", "ü", "x" * 256, "a\n"])
async def test_key_that_is_none_is_refused(start_orchestrator: Start, key: str) -> None:
    with pytest.raises(InvalidRequest, match="idempotency key"):
        await (await start_orchestrator()).runs.start(ANN, QUESTION, key)


async def test_crash_between_key_and_run_is_made_good_by_the_next_try(
    start_orchestrator: Start, jetstream: Nats
) -> None:
    first, second = await start_orchestrator(), await start_orchestrator()
    claimed: list[str] = []
    claim = first.runs._store.claim_key

    async def dies(*args: object) -> str:
        claimed.append(await claim(*args))  # type: ignore[arg-type]
        raise Unavailable("the process is gone")

    first.runs._store.claim_key = dies  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await first.runs.start(ANN, QUESTION, "k1")
    key, events = await second.runs.start(ANN, QUESTION, "k1")
    assert key == RunKey("acme", claimed[0])
    assert status_of(await collect(events)) is RunStatus.COMPLETED


async def test_start_whose_record_was_not_written_begins_the_same_run(start_orchestrator: Start) -> None:
    first, second = await start_orchestrator(), await start_orchestrator()
    tried: list[RunKey] = []

    async def fails(record: RunRecord) -> None:
        tried.append(record.key)
        raise Unavailable("the store went away")

    first.runs._store.create = fails  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await first.runs.start(ANN, QUESTION, "k1")
    key, events = await _started(second)
    assert key == tried[0]
    await collect(events)


async def _started(orchestrator: Orchestrator) -> tuple[RunKey, object]:
    """Starts as soon as the sweepers have let go of the marker that the first try left."""
    async with asyncio.timeout(LONG_S):
        while True:
            try:
                return await orchestrator.runs.start(ANN, QUESTION, "k1")
            except IdempotencyInFlight:
                await asyncio.sleep(0.02)


async def test_thread_that_is_deleted_while_an_old_key_begins_its_run_leaves_nothing(start_orchestrator: Start) -> None:
    first, second = await start_orchestrator(), await start_orchestrator()
    request = replace(QUESTION, mode=RunMode.GROUNDED, thread_id="t1")
    await first.runs._store.claim_key(ANN, "k1", request, "0" * 12 + "a" * 20)  # died behind it, long ago
    note = second.runs._note_thread

    async def overtaken(run: Dependent) -> None:
        await note(run)
        erased = await second.forgetting.forget("acme", ForgetRequest(Source.thread(ANN.subject, "t1"), now()))
        assert erased is None, "of a run that old no record is under way any more"

    second.runs._note_thread = overtaken  # type: ignore[method-assign]
    with pytest.raises(RunNotFound):
        await second.runs.start(ANN, request, "k1")
    assert (await second.runs.list("acme", 10, "")).runs == []


async def test_many_at_once_start_one_run(start_orchestrator: Start) -> None:
    orchestrators = [await start_orchestrator() for _ in range(3)]

    async def one(orchestrator: Orchestrator) -> RunKey:
        key, events = await _started(orchestrator)
        assert status_of(await collect(events)) is RunStatus.COMPLETED  # type: ignore[arg-type]
        return key

    keys = await asyncio.gather(*(one(each) for each in orchestrators for _ in range(4)))
    assert len(set(keys)) == 1
    assert len((await orchestrators[0].runs.list("acme", 10, "")).runs) == 1


async def test_start_that_is_just_beginning_is_said_to_be(start_orchestrator: Start) -> None:
    first, second = await start_orchestrator(), await start_orchestrator()
    reached, gate, create = asyncio.Event(), asyncio.Event(), first.runs._store.create

    async def slowly(record: RunRecord) -> None:
        reached.set()
        await gate.wait()
        await create(record)

    first.runs._store.create = slowly  # type: ignore[method-assign]
    starting = asyncio.create_task(first.runs.start(ANN, QUESTION, "k1"))
    await reached.wait()
    with pytest.raises(IdempotencyInFlight) as told:
        await second.runs.start(ANN, QUESTION, "k1")
    assert told.value.retry_after_s
    gate.set()
    key, events = await starting
    await collect(events)
    await until(lambda: _has_status(first, key, RunStatus.COMPLETED))
    again, _ = await second.runs.start(ANN, QUESTION, "k1")
    assert again == key


async def test_key_of_a_deleted_run_starts_nothing(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator()
    key, events = await orchestrator.runs.start(ANN, QUESTION, "k1")
    await collect(events)
    await until(lambda: _has_status(orchestrator, key, RunStatus.COMPLETED))
    orchestrator.forgetting._now = lambda: now() + SETTLE
    with use_principal(ANN):
        await orchestrator.deletion.delete(key)
    with pytest.raises(RunNotFound):
        await orchestrator.runs.start(ANN, QUESTION, "k1")
    assert (await orchestrator.runs.list("acme", 10, "")).runs == []


async def test_refusal_is_the_same_when_it_is_asked_for_again(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator()
    request = replace(QUESTION, mode=RunMode.GROUNDED, thread_id="t1")

    async def refuses(*_: object) -> None:
        raise ThreadForgotten("gone")

    orchestrator.runs._note_thread = refuses  # type: ignore[method-assign,assignment]
    for _ in range(2):
        with pytest.raises((ThreadForgotten, IdempotencyInFlight)):
            await orchestrator.runs.start(ANN, request, "k1")
    assert (await orchestrator.runs.list("acme", 10, "")).runs == []


async def test_key_of_a_refused_request_is_free_for_one_that_was_put_right(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator()
    gone = Source.thread(ANN.subject, "t1")
    await orchestrator.runs._sources.mark_forgotten("acme", gone)
    with pytest.raises(ThreadForgotten):
        await orchestrator.runs.start(ANN, replace(QUESTION, mode=RunMode.GROUNDED, thread_id="t1"), "k1")
    other = replace(QUESTION, mode=RunMode.GROUNDED, thread_id="t2")
    _, events = await orchestrator.runs.start(ANN, other, "k1")
    assert status_of(await collect(events)) is RunStatus.COMPLETED


async def test_key_of_a_request_that_was_too_much_is_kept_for_it(start_orchestrator: Start) -> None:
    full, free = await start_orchestrator(max_concurrent_runs=0), await start_orchestrator()
    with pytest.raises(TooManyRuns):
        await full.runs.start(ANN, QUESTION, "k1")
    with pytest.raises(IdempotencyConflict):
        await free.runs.start(ANN, replace(QUESTION, question="Another?"), "k1")
    _, events = await free.runs.start(ANN, QUESTION, "k1")
    assert status_of(await collect(events)) is RunStatus.COMPLETED


async def test_torn_claim_is_set_aside(start_orchestrator: Start, jetstream: Nats) -> None:
    orchestrator = await start_orchestrator()
    await orchestrator.runs.start(ANN, QUESTION, "k1")
    keys = await KeyValue.open(jetstream, "RUN_KEYS", ttl_s=86_400.0)
    (name,) = await keys.keys(">")
    await keys.put(name, b"\xff\xff")
    await orchestrator.runs.start(ANN, QUESTION, "k1")
    assert len((await orchestrator.runs.list("acme", 10, "")).runs) == 2
