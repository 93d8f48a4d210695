"""Durable runs on a real NATS server: followed, resumed, cancelled, taken over, fenced off."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from kit.errors import GroundworkError, Unavailable
from kit.jetstream import KeyValue, Nats
from kit.llm import (
    Delta,
    Finish,
    FinishReason,
    ModelInfo,
    Operation,
    Request,
    Spent,
    TextDelta,
    TokenUsage,
    estimate_tokens,
)
from kit.testing.nats import NatsServer
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.errors import (
    FencedOff,
    InvalidRequest,
    MemoryModeNotOffered,
    ModeNotOffered,
    RunNotFound,
    TooManyRuns,
)
from services.orchestrator.log.events import Answer, Budgets, Done, RunEvent, RunMode, RunStatus, Thinking, Token
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord, RunRequest, ToolSelection
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, collect

Start = Callable[..., Awaitable[Orchestrator]]


class GatedModel:
    """Says the first piece, then waits for the gate. `closed` tells that its stream was stopped."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.speaking = asyncio.Event()
        self.closed = asyncio.Event()

    def info(self, operation: Operation) -> ModelInfo:
        return ModelInfo("gated", "gated", 4096)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        return [estimate_tokens(text) for text in texts]

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        try:
            yield TextDelta("The tower was built ")
            self.speaking.set()
            await self.gate.wait()
            yield TextDelta("in 1889. [1]")
            yield Finish(FinishReason.STOP, TokenUsage(10, 2), "gated", "gated")
        finally:
            if request.meter is not None:
                request.meter.add(Spent("gated", "gated", TokenUsage(10, 2)))
            self.closed.set()


def seqs(events: list[RunEvent]) -> list[int]:
    return [event.seq for event in events]


def status_of(events: list[RunEvent]) -> RunStatus:
    last = events[-1].payload
    assert isinstance(last, Done)
    return last.status


async def test_started_run_ends_and_can_be_replayed_from_anywhere(start_orchestrator: Start) -> None:
    first, second = await start_orchestrator(), await start_orchestrator()
    key, events = await first.runs.start(ANN, QUESTION)
    live = await collect(events)
    assert seqs(live) == list(range(1, len(live) + 1))
    assert status_of(live) is RunStatus.COMPLETED
    for after_seq in (0, 3, len(live)):
        assert await collect(second.runs.attach(key, after_seq)) == live[after_seq:]


async def test_record_tells_how_the_run_ended(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator()
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    await collect(events)
    await until(lambda: _has_status(orchestrator, key, RunStatus.COMPLETED))
    page = await orchestrator.runs.list("acme", 10, "")
    assert [run.key for run in page.runs] == [key]
    assert (await orchestrator.runs.list("other", 10, "")).runs == []


async def test_who_has_followed_a_run_to_its_end_finds_it_ended(
    start_orchestrator: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await start_orchestrator(), await start_orchestrator()
    may_store = asyncio.Event()

    async def finish(record: RunRecord) -> None:
        await may_store.wait()
        await stored(record)

    store = first.runs._store
    stored = store.finish
    monkeypatch.setattr(store, "finish", finish)
    key, events = await first.runs.start(ANN, QUESTION)
    live = await collect(events)
    assert not await _has_status(second, key, RunStatus.COMPLETED)
    early = await second.runs.as_followed(ANN, key)
    may_store.set()
    await until(lambda: _has_status(second, key, RunStatus.COMPLETED))
    late = await second.runs.as_followed(ANN, key)
    assert (early.status, early.outcome) == (status_of(live), late.outcome)
    assert early.outcome is not None
    assert early.outcome.answer is not None


async def test_runs_are_listed_newest_first_in_pages(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator()
    keys = []
    for _ in range(3):
        key, events = await orchestrator.runs.start(ANN, QUESTION)
        await collect(events)
        keys.append(key)
        await asyncio.sleep(0.002)  # ids sort by millisecond
    first = await orchestrator.runs.list("acme", 2, "")
    rest = await orchestrator.runs.list("acme", 2, first.next_page_token)
    assert [run.key for run in [*first.runs, *rest.runs]] == keys[::-1]
    assert rest.next_page_token == ""


async def test_hanging_up_does_not_stop_the_run(start_orchestrator: Start) -> None:
    model = GatedModel()
    orchestrator = await start_orchestrator(model)
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await events.aclose()  # type: ignore[attr-defined]
    model.gate.set()
    assert status_of(await collect(orchestrator.runs.attach(key, 0))) is RunStatus.COMPLETED


async def test_follower_on_another_orchestrator_sees_a_live_run(start_orchestrator: Start) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model), await start_orchestrator()
    key, events = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    follower = asyncio.create_task(collect(second.runs.attach(key, 2)))
    model.gate.set()
    live = await collect(events)
    assert await follower == live[2:]


async def test_cancel_on_another_orchestrator_stops_the_model_and_is_kept(start_orchestrator: Start) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model), await start_orchestrator()
    key, events = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await second.runs.cancel(key)
    live = await collect(events)
    assert status_of(live) is RunStatus.CANCELLED
    assert model.closed.is_set()
    await until(lambda: _has_status(second, key, RunStatus.CANCELLED))
    assert await collect(second.runs.attach(key, 0)) == live


async def test_cancelling_a_finished_run_changes_nothing(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator()
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    live = await collect(events)
    await until(lambda: _has_status(orchestrator, key, RunStatus.COMPLETED))
    await orchestrator.runs.cancel(key)
    assert await collect(orchestrator.runs.attach(key, 0)) == live


async def test_run_of_a_dead_orchestrator_is_finished_by_another(start_orchestrator: Start) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model), await start_orchestrator(_open_model())
    key, events = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    seen = [await anext(events) for _ in range(4)]
    await first.die()
    rest = await collect(second.runs.attach(key, seen[-1].seq))
    whole = [*seen, *rest]
    assert seqs(whole) == list(range(1, len(whole) + 1))
    assert status_of(whole) is RunStatus.COMPLETED
    assert sum(isinstance(event.payload, Answer) for event in whole) == 1
    assert any(isinstance(event.payload, Thinking) and event.payload.phase == "resume" for event in whole)
    assert _shown(whole) == next(event.payload.text for event in whole if isinstance(event.payload, Answer))


async def test_run_that_nobody_watches_is_finished_too(start_orchestrator: Start) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model), await start_orchestrator()
    key, _ = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await first.die()
    await until(lambda: _has_status(second, key, RunStatus.COMPLETED))


async def test_run_of_a_stopped_orchestrator_is_handed_over_at_once(start_orchestrator: Start) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model, lease_s=60.0), await start_orchestrator(lease_s=60.0)
    key, _ = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await first.stop()
    async with asyncio.timeout(50.0):
        assert status_of(await collect(second.runs.attach(key, 0))) is RunStatus.COMPLETED


async def test_cancel_reaches_a_run_whose_orchestrator_has_died(start_orchestrator: Start) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model), await start_orchestrator()
    key, _ = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await first.die()
    await second.runs.cancel(key)
    assert status_of(await collect(second.runs.attach(key, 0))) is RunStatus.CANCELLED


async def test_second_writer_is_fenced_off(jetstream: Nats) -> None:
    log = await JetStreamEventLog.open(jetstream, retention_days=1)
    other = await JetStreamEventLog.open(jetstream, retention_days=1)
    key = RunKey("acme", "f" * 32)
    old = await Journal.open(key, log, _now)
    await old.write(Thinking("route", "one"))
    new = await Journal.open(key, other, _now)
    await new.write(Thinking("resume", "two"))
    with pytest.raises(FencedOff):
        await old.write(Token("late", 0))
    events, _ = await log.read(key)
    assert [event.seq for event in events] == [1, 2]


async def test_run_over_its_time_ends_as_timeout(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator(GatedModel(), wall_clock_s=0.3)
    _, events = await orchestrator.runs.start(ANN, QUESTION)
    assert status_of(await collect(events)) is RunStatus.TIMEOUT


async def test_log_outage_is_survived_live_and_said(start_orchestrator: Start, nats: NatsServer) -> None:
    model = GatedModel()
    orchestrator = await start_orchestrator(model)
    _, events = await orchestrator.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await nats.stop(kill=True)
    model.gate.set()
    live = await collect(events)
    assert status_of(live) is RunStatus.COMPLETED
    reasons = [e.payload.degraded.reason for e in live if isinstance(e.payload, Thinking) and e.payload.degraded]
    assert "LOG_UNAVAILABLE" in reasons
    await nats.start()


async def test_cancel_and_sweep_work_after_the_message_store_was_restarted(
    start_orchestrator: Start, nats: NatsServer
) -> None:
    orphaned, cancelled = GatedModel(), GatedModel()
    first, second, third = (
        await start_orchestrator(orphaned),
        await start_orchestrator(cancelled),
        await start_orchestrator(),
    )
    await nats.stop(kill=True)
    await nats.start()
    orphan, _ = await _started(first)
    stopped, events = await _started(second)
    await asyncio.gather(orphaned.speaking.wait(), cancelled.speaking.wait())
    await third.runs.cancel(stopped)
    assert status_of(await collect(events)) is RunStatus.CANCELLED
    cancelled.gate.set()
    await first.die()
    await until(lambda: _has_status(third, orphan, RunStatus.COMPLETED))


async def _started(orchestrator: Orchestrator) -> tuple[RunKey, AsyncIterator[RunEvent]]:
    """Starts a run as soon as the message store takes it."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await orchestrator.runs.start(ANN, QUESTION)
            except Unavailable:
                continue


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"question": "  "}, InvalidRequest),
        ({"budgets": Budgets(cost_usd=-1.0)}, InvalidRequest),
        ({"budgets": Budgets(cost_usd=float("nan"))}, InvalidRequest),
        ({"question": "x" * 8001}, InvalidRequest),
        ({"collection_ids": ()}, InvalidRequest),
        ({"agent": "nobody"}, InvalidRequest),
        ({"mode": RunMode.UNKNOWN}, ModeNotOffered),
        ({"budgets": Budgets(wall_clock_s=-1.0)}, InvalidRequest),
        ({"top_k": 201}, InvalidRequest),
        ({"document_ids": ("d" * 64,) * 1001}, InvalidRequest),
        ({"collection_ids": ("c" * 64,) * 1001}, InvalidRequest),
        ({"tools": ToolSelection()}, InvalidRequest),
        ({"mode": RunMode.CHAT, "document_ids": ("d",)}, InvalidRequest),
        ({"mode": RunMode.CHAT, "tools": ToolSelection(("t",) * 201)}, InvalidRequest),
        ({"mode": RunMode.CHAT, "budgets": Budgets(reasoning_steps=-1)}, InvalidRequest),
        ({"mode": RunMode.CHAT, "collection_ids": ("no id!",)}, InvalidRequest),
        ({"mode": RunMode.CHAT, "memory": "telepathy"}, MemoryModeNotOffered),
    ],
)
async def test_bad_request_is_refused(
    start_orchestrator: Start, changes: dict[str, Any], expected: type[GroundworkError]
) -> None:
    orchestrator = await start_orchestrator()
    fields = {"mode": RunMode.QA, "question": "q", "collection_ids": ("default",), **changes}
    with pytest.raises(expected):
        await orchestrator.runs.start(ANN, RunRequest(**fields))


async def test_more_runs_than_the_limit_are_refused(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator(GatedModel(), max_concurrent_runs=1)
    await orchestrator.runs.start(ANN, QUESTION)
    with pytest.raises(TooManyRuns):
        await orchestrator.runs.start(ANN, QUESTION)


async def test_run_of_another_tenant_does_not_exist(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator()
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    await collect(events)
    with pytest.raises(RunNotFound):
        await collect(orchestrator.runs.attach(RunKey("other", key.run_id), 0))


async def test_burst_of_starts_does_not_pass_the_limit(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator(GatedModel(), max_concurrent_runs=2)
    starts = await asyncio.gather(*(orchestrator.runs.start(ANN, QUESTION) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(start, TooManyRuns) for start in starts) == 3


async def test_finished_run_is_not_taken_over_by_one_who_saw_it_running(start_orchestrator: Start) -> None:
    first, second = await start_orchestrator(_open_model()), await start_orchestrator()
    key, events = await first.runs.start(ANN, QUESTION)
    stale = await second.runs.get(key)
    await collect(events)
    await until(lambda: _has_status(first, key, RunStatus.COMPLETED))
    finished = await first.runs.get(key)
    second.runs._store.get = _answering(stale, finished)  # type: ignore[method-assign]
    await collect(second.runs.attach(key, 0))
    await asyncio.sleep(0.1)
    assert await first.runs.get(key) == finished


async def test_cancel_that_comes_while_the_run_is_taken_over_is_heard(start_orchestrator: Start) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model), await start_orchestrator(GatedModel())
    key, _ = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await first.die()
    read = second.runs._log.read

    async def read_slowly(key: RunKey) -> Any:
        found = await read(key)
        await second.runs.cancel(key)
        await asyncio.sleep(0.2)  # the wish is announced while nobody listens yet
        return found

    second.runs._log.read = read_slowly  # type: ignore[method-assign]
    assert status_of(await collect(second.runs.attach(key, 0))) is RunStatus.CANCELLED


async def test_run_that_cannot_be_read_does_not_stop_the_sweep(start_orchestrator: Start, jetstream: Nats) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model), await start_orchestrator()
    active, records = (
        await KeyValue.open(jetstream, "RUN_ACTIVE"),
        await KeyValue.open(jetstream, "RUN_RECORDS", ttl_s=86_400.0),
    )
    await records.put(f"acme.{'0' * 32}", b"not a record")
    await active.put(f"acme.{'0' * 32}", b"")
    key, _ = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await first.die()
    await until(lambda: _has_status(second, key, RunStatus.COMPLETED))


async def test_start_that_is_hung_up_on_leaves_no_owner(start_orchestrator: Start) -> None:
    orchestrator, other = await start_orchestrator(), await start_orchestrator()
    store = orchestrator.runs._store
    reached, create = asyncio.Event(), store.create

    async def create_slowly(record: RunRecord) -> None:
        await create(record)
        reached.set()
        await asyncio.Event().wait()

    store.create = create_slowly  # type: ignore[method-assign]
    starting = asyncio.create_task(orchestrator.runs.start(ANN, QUESTION))
    await reached.wait()
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    (record,) = (await orchestrator.runs.list("acme", 10, "")).runs
    assert status_of(await collect(other.runs.attach(record.key, 0))) is RunStatus.COMPLETED


def _answering(*records: RunRecord) -> Callable[[RunKey], Awaitable[RunRecord]]:
    """Reads of a record that see `records` one after the other, the last one from then on."""
    remaining = list(records)

    async def get(key: RunKey) -> RunRecord:
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    return get


def _open_model() -> GatedModel:
    model = GatedModel()
    model.gate.set()
    return model


def _shown(events: list[RunEvent]) -> str:
    shown = ""
    for event in events:
        if isinstance(event.payload, Token):
            shown = shown[: event.payload.offset] + event.payload.text
    return shown


def _now() -> Any:
    from datetime import UTC, datetime  # noqa: PLC0415

    return datetime.now(UTC)


async def _has_status(orchestrator: Orchestrator, key: RunKey, status: RunStatus) -> bool:
    return (await orchestrator.runs.get(key)).status is status


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.02)
