"""Text of what was deleted is erased from runs, on a real NATS server: whatever the run is doing, and wherever the erasure is
killed."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from kit.access.principal import use_principal
from kit.errors import GroundworkError, Unavailable, Unimplemented
from kit.jetstream import KeyValue, Nats
from kit.stores.forgetting import ForgetRequest, Source
from services.orchestrator.errors import FencedOff, RunForgotten, RunNotFound, ThreadForgotten
from services.orchestrator.log.events import Done, Retrieval, RunMode, RunStatus, Token
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord, RunRequest, Turn
from services.orchestrator.runs.forgetting import CUT_OFF_AFTER, GRACE, RECHECK_S, SETTLE, note_stored_runs
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, collect, now, without_ids
from tests.service.orchestrator.test_runs import GatedModel, until
from tests.unit.orchestrator.fakes import EVIDENCE, FakeModel, FakeSearcher

Start = Callable[..., Awaitable[Orchestrator]]
TOWER = Source.document("d1")
IN_THREAD = replace(QUESTION, mode=RunMode.GROUNDED, thread_id="0123456789ab")
THREAD = Source.thread(ANN.subject, IN_THREAD.thread_id)


@dataclass
class Crash(BaseException):
    """Stands for the death of the process at one step."""

    step: str


@pytest.fixture
async def orchestrator(start_orchestrator: Start) -> Orchestrator:
    return await start_orchestrator()


async def ended(orchestrator: Orchestrator, request: RunRequest = QUESTION) -> RunKey:
    """A run that has ended, and is past the time in which its calls may still be under way."""
    key, events = await orchestrator.runs.start(ANN, request)
    await collect(events)
    await is_over(orchestrator, key)
    orchestrator.forgetting._now = lambda: now() + SETTLE
    return key


async def is_over(orchestrator: Orchestrator, key: RunKey) -> None:
    async def is_finished() -> bool:
        return (await orchestrator.runs.get(key)).finished_at is not None

    await until(is_finished)


async def forget(orchestrator: Orchestrator, source: Source, *, asked: timedelta = timedelta(0)) -> float | None:
    """One try, `asked` after the request."""
    return await orchestrator.forgetting.forget("acme", ForgetRequest(source, orchestrator.forgetting._now() - asked))


async def stored(jetstream: Nats) -> str:
    """All that the message store holds of runs, in one text."""
    found: list[str] = []
    for stream in ("RUNS", "KV_RUN_RECORDS", "KV_RUN_SOURCES"):
        state = (await jetstream.js.stream_info(stream)).state
        for seq in range(state.first_seq, state.last_seq + 1):
            try:
                message = await jetstream.js.get_msg(stream, seq=seq)
            except Exception:  # deleted
                continue
            found.append(without_ids(message.data))
    return "\n".join(found)


async def test_deleted_document_is_erased_from_the_runs_that_quote_it(
    orchestrator: Orchestrator, jetstream: Nats
) -> None:
    key = await ended(orchestrator)
    assert "1889" in await stored(jetstream)
    assert await forget(orchestrator, TOWER) is None
    assert "1889" not in await stored(jetstream)
    record = await orchestrator.runs.get(key)
    assert (record.status, record.request.question) == (RunStatus.COMPLETED, QUESTION.question)
    assert record.forgotten_at is not None
    with pytest.raises(RunForgotten, match="ask the question again"):
        await collect(orchestrator.runs.attach(key, 0))
    assert [run.key for run in (await orchestrator.runs.list("acme", 10, "")).runs] == [key]


async def test_other_documents_and_tenants_lose_nothing(orchestrator: Orchestrator) -> None:
    key = await ended(orchestrator)
    assert await forget(orchestrator, Source.document("d9")) is None
    request = ForgetRequest(TOWER, now())
    assert await orchestrator.forgetting.forget("other", request) is None
    assert len(await collect(orchestrator.runs.attach(key, 0))) > 1


async def test_answer_in_a_thread_is_forgotten_for_its_owner(orchestrator: Orchestrator) -> None:
    key = await ended(orchestrator, IN_THREAD)
    assert await forget(orchestrator, TOWER) is None
    assert orchestrator.memory.forgotten == [(ANN.subject, IN_THREAD.thread_id, key.run_id)]


async def test_run_that_looked_a_deleted_thread_up_loses_its_answer_and_keeps_its_question(
    orchestrator: Orchestrator, jetstream: Nats
) -> None:
    own = await ended(orchestrator, IN_THREAD)
    other = await ended(orchestrator, replace(IN_THREAD, thread_id="ba9876543210"))
    alone = await ended(orchestrator)
    for key in (other, alone):
        await orchestrator.forgetting._sources.depend((await orchestrator.runs.get(key)).dependent, [THREAD])
    assert await forget(orchestrator, THREAD) is None
    assert "1889" not in await stored(jetstream)
    with pytest.raises(RunNotFound):
        await orchestrator.runs.get(own)
    for key in (other, alone):
        record = await orchestrator.runs.get(key)
        assert (record.request.question, record.forgotten_at is not None) == (QUESTION.question, True)
    assert orchestrator.memory.forgotten == [(ANN.subject, "ba9876543210", other.run_id)]


async def test_answer_in_a_thread_is_forgotten_when_its_run_was_deleted_before(orchestrator: Orchestrator) -> None:
    key = await ended(orchestrator, IN_THREAD)
    with use_principal(ANN):
        await orchestrator.deletion.delete(key)
    assert await forget(orchestrator, TOWER) is None
    assert orchestrator.memory.forgotten == [(ANN.subject, IN_THREAD.thread_id, key.run_id)]


async def test_run_that_has_just_ended_is_left_to_its_last_call_to_memory(orchestrator: Orchestrator) -> None:
    key = await ended(orchestrator, IN_THREAD)
    finished_at = (await orchestrator.runs.get(key)).finished_at
    assert finished_at is not None
    orchestrator.forgetting._now = lambda: finished_at + SETTLE - timedelta(seconds=1)
    assert await forget(orchestrator, TOWER) == pytest.approx(1.0)
    assert orchestrator.memory.forgotten == []


async def test_clock_that_was_set_back_delays_no_erasure(orchestrator: Orchestrator) -> None:
    key = await ended(orchestrator, IN_THREAD)
    finished_at = (await orchestrator.runs.get(key)).finished_at
    assert finished_at is not None
    orchestrator.forgetting._now = lambda: finished_at - timedelta(days=1)
    assert await forget(orchestrator, TOWER) is None
    assert orchestrator.memory.forgotten == [(ANN.subject, IN_THREAD.thread_id, key.run_id)]


async def test_memory_that_is_away_is_asked_again_and_the_log_is_erased_meanwhile(
    orchestrator: Orchestrator, jetstream: Nats
) -> None:
    await ended(orchestrator, IN_THREAD)
    orchestrator.memory.down = True
    assert await forget(orchestrator, TOWER) is not None
    assert "1889" not in await stored(jetstream)
    orchestrator.memory.down = False
    assert await forget(orchestrator, TOWER) is None
    assert len(orchestrator.memory.forgotten) == 1


@pytest.mark.parametrize("kind", ["document", "thread", "run"])
@pytest.mark.parametrize("failure", [Unavailable("away"), Unimplemented("older")], ids=["away", "older"])
async def test_tools_service_that_is_away_is_asked_again_and_all_else_is_erased_meanwhile(
    orchestrator: Orchestrator, jetstream: Nats, kind: str, failure: GroundworkError
) -> None:
    key = await ended(orchestrator, IN_THREAD)
    source = {"document": TOWER, "thread": THREAD, "run": Source.run(key.run_id)}[kind]
    orchestrator.tools.failure = failure
    assert await forget(orchestrator, source) is not None
    assert "1889" not in await stored(jetstream)
    assert ((await orchestrator.runs.list("acme", 10, "")).runs == []) == (kind != "document")
    orchestrator.tools.failure = None
    assert await forget(orchestrator, source) is None
    assert orchestrator.tools.forgotten == [("acme", key.run_id)]


async def test_run_is_deleted_for_its_user_while_the_tools_service_is_away(orchestrator: Orchestrator) -> None:
    key = await ended(orchestrator)
    orchestrator.tools.failure = Unavailable("away")
    with use_principal(ANN):
        await orchestrator.deletion.delete(key)
    with pytest.raises(RunNotFound):
        await orchestrator.runs.get(key)
    orchestrator.tools.failure = None
    orchestrator.consume()

    async def are_forgotten() -> bool:
        return ("acme", key.run_id) in orchestrator.tools.forgotten

    await until(are_forgotten)


async def test_run_that_was_shown_an_answer_is_erased_with_it(start_orchestrator: Start) -> None:
    first = await start_orchestrator()
    quoting = await ended(first, IN_THREAD)
    searcher = FakeSearcher()
    second = await start_orchestrator(FakeModel(["The bridge was opened in 1932. [1]"]), searcher=searcher)
    searcher.retrieval = Retrieval((replace(EVIDENCE[1], number=1),))
    second.memory.turns = [Turn("assistant", "The tower was built in 1889.", quoting.run_id)]
    shown = await ended(second, IN_THREAD)
    second.memory.turns = [Turn("assistant", "The bridge was opened in 1932.", shown.run_id)]
    shown_that = await ended(second, IN_THREAD)
    unrelated = await ended(second)
    assert await forget(second, TOWER) is None
    for key in (quoting, shown, shown_that):
        assert (await second.runs.get(key)).forgotten_at is not None
    assert (await second.runs.get(unrelated)).forgotten_at is None


async def test_run_that_reads_the_document_may_end_and_is_erased_then(
    start_orchestrator: Start, jetstream: Nats
) -> None:
    model = GatedModel()
    orchestrator = await start_orchestrator(model)
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    assert await forget(orchestrator, TOWER) == RECHECK_S
    model.gate.set()
    assert (await collect(events))[-1].payload == Done(RunStatus.COMPLETED)
    await is_over(orchestrator, key)
    assert await forget(orchestrator, TOWER) is None
    assert "1889" not in await stored(jetstream)


async def test_runs_that_are_erased_are_not_erased_again_while_another_is_waited_for(
    start_orchestrator: Start,
) -> None:
    model = GatedModel()
    orchestrator = await start_orchestrator(model)
    model.gate.set()
    await ended(orchestrator)
    model.gate.clear()
    model.speaking.clear()
    await orchestrator.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    erased: list[RunKey] = []
    erase = orchestrator.forgetting._log.erase

    async def counted(key: RunKey, *, deleted: bool) -> None:
        erased.append(key)
        await erase(key, deleted=deleted)

    orchestrator.forgetting._log.erase = counted  # type: ignore[method-assign]
    for _ in range(3):
        assert await forget(orchestrator, TOWER) == RECHECK_S
    assert len(erased) == 1


async def test_run_that_takes_longer_is_cancelled_and_erased(start_orchestrator: Start, jetstream: Nats) -> None:
    model = GatedModel()
    orchestrator = await start_orchestrator(model)
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    assert await forget(orchestrator, TOWER, asked=GRACE) == RECHECK_S
    assert (await collect(events))[-1].payload == Done(RunStatus.CANCELLED)
    await is_over(orchestrator, key)
    assert await forget(orchestrator, TOWER, asked=GRACE) is None
    assert "1889" not in await stored(jetstream)


async def test_run_that_hangs_is_cut_off_and_writes_nothing_any_more(
    start_orchestrator: Start, jetstream: Nats
) -> None:
    model = GatedModel()
    orchestrator = await start_orchestrator(model)
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    assert await forget(orchestrator, TOWER, asked=CUT_OFF_AFTER) is None
    model.gate.set()
    await collect(events)
    assert "1889" not in await stored(jetstream)
    record = await orchestrator.runs.get(key)
    assert (record.status, record.forgotten_at is None) == (RunStatus.CANCELLED, False)


async def test_follower_of_a_run_that_is_cut_off_is_told(start_orchestrator: Start) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model), await start_orchestrator()
    key, _ = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    follower = second.runs.attach(key, 0)
    await anext(follower)
    assert await forget(second, TOWER, asked=CUT_OFF_AFTER) is None
    with pytest.raises(RunForgotten):
        await collect(follower)


async def test_erased_log_refuses_its_writer_and_a_new_one(orchestrator: Orchestrator) -> None:
    log = orchestrator.runs._log
    key, fresh = RunKey("acme", "a" * 32), RunKey("acme", "b" * 32)
    writer, first_writer = await Journal.open(key, log, now), await Journal.open(fresh, log, now)
    await writer.write(Token("one", 0))
    for each in (key, fresh, fresh):
        await log.erase(each, deleted=False)
    for journal in (writer, first_writer):
        with pytest.raises(FencedOff):
            await journal.write(Token("late", 0))
    with pytest.raises(RunForgotten):
        await log.read(key)


async def test_run_that_ends_after_its_record_was_erased_does_not_bring_it_back(orchestrator: Orchestrator) -> None:
    store = orchestrator.runs._store
    for change in (store.delete, lambda key: store.forget(key, now())):
        record = RunRecord(RunKey("acme", f"{id(change):032x}"), "ann", QUESTION, RunStatus.RUNNING, now())
        await store.create(record)
        await change(record.key)
        await store.finish(record.finished(RunStatus.COMPLETED, now()))
        found = await store.get(record.key)
        assert found is None or found.forgotten_at is not None


async def test_deleted_thread_takes_its_runs_with_it(orchestrator: Orchestrator, jetstream: Nats) -> None:
    key = await ended(orchestrator, IN_THREAD)
    other = await ended(orchestrator)
    assert await forget(orchestrator, Source.thread("bert", IN_THREAD.thread_id)) is None
    await orchestrator.runs.get(key)
    assert await forget(orchestrator, THREAD) is None
    with pytest.raises(RunNotFound):
        await orchestrator.runs.get(key)
    assert [run.key for run in (await orchestrator.runs.list("acme", 10, "")).runs] == [other]
    left = (await stored(jetstream)).splitlines()
    assert [line for line in left if key.run_id in line and "Groundwork" not in line and line.split()[1:]] == []
    assert await forget(orchestrator, THREAD) is None


async def test_run_in_a_thread_that_is_being_deleted_is_refused(orchestrator: Orchestrator) -> None:
    assert await forget(orchestrator, THREAD) is None
    with pytest.raises(ThreadForgotten):
        await orchestrator.runs.start(ANN, IN_THREAD)
    assert (await orchestrator.runs.list("acme", 10, "")).runs == []


async def test_run_whose_record_is_yet_to_come_is_waited_for(orchestrator: Orchestrator) -> None:
    store = orchestrator.runs._store
    reached, gate, create = asyncio.Event(), asyncio.Event(), store.create

    async def create_slowly(record: RunRecord) -> None:
        reached.set()
        await gate.wait()
        await create(record)

    store.create = create_slowly  # type: ignore[method-assign]
    starting = asyncio.create_task(orchestrator.runs.start(ANN, IN_THREAD))
    await reached.wait()
    assert await forget(orchestrator, THREAD) == SETTLE.total_seconds()
    gate.set()
    key, events = await starting
    await collect(events)
    await is_over(orchestrator, key)
    orchestrator.forgetting._now = lambda: now() + SETTLE
    assert await forget(orchestrator, THREAD) is None
    with pytest.raises(RunNotFound):
        await orchestrator.runs.get(key)


STEPS = [
    "_sources.mark_forgotten",
    "_sources.dependents",
    "_store.get",
    "_log.erase",
    "_tools.forget_calls",
    "_store.drop_outcome",
    "_memory.forget_answer",
    "_store.forget",
    "_store.delete",
    "_store.forget_active",
    "_sources.drop_run",
    "_sources.drop_source",
]


@pytest.mark.parametrize("source", [TOWER, THREAD], ids=["document", "thread"])
async def test_erasure_killed_at_any_step_is_finished_by_its_repetition(
    start_orchestrator: Start, jetstream: Nats, source: Source
) -> None:
    for step in STEPS:
        for after in (False, True):
            orchestrator = await start_orchestrator()
            key = await ended(orchestrator, IN_THREAD)
            undo = _crash_at(orchestrator, step, after=after)
            with suppress(Crash):
                await forget(orchestrator, source)
            undo()
            assert await forget(orchestrator, source) is None, step
            assert "1889" not in await stored(jetstream), step
            assert ("acme", key.run_id) in orchestrator.tools.forgotten, step
            if source is TOWER:
                assert (await orchestrator.runs.get(key)).forgotten_at is not None
                assert orchestrator.memory.forgotten[-1] == (ANN.subject, IN_THREAD.thread_id, key.run_id)
            else:
                assert (await orchestrator.runs.list("acme", 10, "")).runs == []
            await orchestrator.stop()
            for bucket in ("FORGOTTEN", "RUN_SOURCES", "RUN_RECORDS"):
                await jetstream.js.purge_stream(f"KV_{bucket}")


def _crash_at(orchestrator: Orchestrator, step: str, *, after: bool) -> Callable[[], None]:
    """The process dies before or after the first time that the step is done. Returns what takes it back."""
    part_name, method_name = step.split(".")
    part = getattr(orchestrator.forgetting, part_name)
    real = getattr(part, method_name)

    async def crash(*args: Any, **options: Any) -> Any:
        if after:
            await real(*args, **options)
        raise Crash(step)

    setattr(part, method_name, crash)
    return lambda: setattr(part, method_name, real)


async def test_runs_of_an_earlier_version_are_noted_once_and_forgotten_like_others(
    orchestrator: Orchestrator, jetstream: Nats
) -> None:
    key, threadless = await ended(orchestrator, IN_THREAD), await ended(orchestrator)
    await jetstream.js.purge_stream("KV_RUN_SOURCES")
    store, log, sources = orchestrator.runs._store, orchestrator.runs._log, orchestrator.runs._sources
    await note_stored_runs(store, log, sources)
    assert await sources.is_complete()
    assert await forget(orchestrator, TOWER) is None
    assert orchestrator.memory.forgotten == [(ANN.subject, IN_THREAD.thread_id, key.run_id)]
    assert "1889" not in await stored(jetstream)
    assert (await orchestrator.runs.get(threadless)).forgotten_at is not None
    await note_stored_runs(store, log, sources)


async def test_run_with_a_damaged_record_is_erased_with_it(orchestrator: Orchestrator, jetstream: Nats) -> None:
    key = await ended(orchestrator, IN_THREAD)
    records = await KeyValue.open(jetstream, "RUN_RECORDS", ttl_s=86_400.0)
    await records.put(f"acme.{key.run_id}", b"{torn")
    assert await forget(orchestrator, TOWER) is None
    assert "1889" not in await stored(jetstream)
    with pytest.raises(RunNotFound):
        await orchestrator.runs.get(key)


async def test_queue_is_worked_on_until_everything_is_forgotten(start_orchestrator: Start, jetstream: Nats) -> None:
    model = GatedModel()
    orchestrator = await start_orchestrator(model)
    key, events = await orchestrator.runs.start(ANN, IN_THREAD)
    await model.speaking.wait()
    with use_principal(ANN):
        await orchestrator.queue.request(ForgetRequest(THREAD, now()))
        await orchestrator.queue.queue.publish("acme.new", b'{"kind": "dream"}', job_id="new")
    orchestrator.consume()
    assert (await collect(events))[-1].payload == Done(RunStatus.CANCELLED)

    async def is_gone() -> bool:
        try:
            await orchestrator.runs.get(key)
        except RunNotFound:
            return True
        return False

    await until(is_gone)
    assert "tower" not in (await stored(jetstream)).lower()

    async def is_the_unknown_job_all_that_waits() -> bool:
        return await orchestrator.queue.queue.pending() == 1

    await until(is_the_unknown_job_all_that_waits)


async def test_run_that_is_deleted_while_it_goes_on_is_cancelled_and_gone(start_orchestrator: Start) -> None:
    model = GatedModel()
    orchestrator = await start_orchestrator(model)
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    with use_principal(ANN):
        await orchestrator.deletion.delete(key)
    assert (await collect(events))[-1].payload == Done(RunStatus.CANCELLED)
    orchestrator.consume()

    async def is_gone() -> bool:
        return not (await orchestrator.runs.list("acme", 10, "")).runs

    await until(is_gone)


async def test_deletion_that_cannot_be_made_sure_of_is_refused(orchestrator: Orchestrator) -> None:
    key = await ended(orchestrator)

    async def away(request: ForgetRequest) -> None:
        raise Unavailable("the store is down")

    orchestrator.deletion._request = away
    with pytest.raises(Unavailable):
        await orchestrator.deletion.delete(key)
    assert len(await collect(orchestrator.runs.attach(key, 0))) > 1
