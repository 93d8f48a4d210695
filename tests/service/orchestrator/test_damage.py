"""Records that cannot be decoded, and those of a newer version: everything else goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import record_pb2 as pb_record
from prometheus_client import REGISTRY

from kit.jetstream import KeyValue, Nats
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.errors import RunDamaged, RunOfNewerVersion
from services.orchestrator.log.events import Done, RunEvent, RunMode, RunStatus, Thinking, Token
from services.orchestrator.models import RunKey
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, collect
from tests.service.orchestrator.test_runs import until

Start = Callable[..., Awaitable[Orchestrator]]
_NEWER_FIELD = b"\xfa\x3f\x02hi"
"""Field 1023, which no message has yet."""


@pytest.fixture
async def records(jetstream: Nats) -> KeyValue:
    return await KeyValue.open(jetstream, "RUN_RECORDS", ttl_s=86_400.0)


async def _ended(orchestrator: Orchestrator) -> tuple[RunKey, list[RunEvent]]:
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    live = await collect(events)

    async def is_finished() -> bool:
        return (await orchestrator.runs.get(key)).finished_at is not None

    await until(is_finished)
    return key, live


async def _overwritten(jetstream: Nats, key: RunKey, events: list[RunEvent], seq: int, data: bytes) -> None:
    """The run's log again under its name, with `data` in the place of one event."""
    subject = f"runs.{key.tenant_id}.{key.run_id}"
    stored = [(await jetstream.js.get_msg("RUNS", seq=n + 1)).data for n in range(len(events))]
    await jetstream.js.purge_stream("RUNS", subject=subject)
    for number, each in enumerate(stored, start=1):
        await jetstream.js.publish(subject, data if number == seq else each)


def _set_aside(store: str) -> float:
    return REGISTRY.get_sample_value("groundwork_records_set_aside_total", {"store": store}) or 0.0


@pytest.mark.parametrize("position", ["first", "middle", "last"])
@pytest.mark.parametrize("torn", [b"\xff\xff\xff", b""], ids=["torn", "empty"])
async def test_replay_goes_on_around_an_event_that_cannot_be_read(
    start_orchestrator: Start, jetstream: Nats, torn: bytes, position: str
) -> None:
    orchestrator = await start_orchestrator()
    key, live = await _ended(orchestrator)
    seq = {"first": 1, "middle": 4, "last": len(live)}[position]
    await _overwritten(jetstream, key, live, seq, torn)
    before = _set_aside("RUNS")
    async with asyncio.timeout(60):
        replayed = [event async for event in orchestrator.runs.attach(key, 0)]
    assert [event.seq for event in replayed] == [event.seq for event in live]
    assert [event for event in replayed if event.seq != seq] == [event for event in live if event.seq != seq]
    shown = replayed[seq - 1].payload
    assert isinstance(shown, Thinking)
    assert shown.degraded is not None
    assert shown.degraded.reason == "EVENT_DAMAGED"
    assert _set_aside("RUNS") == before + 1


async def test_log_whose_first_entries_expired_is_read_from_where_it_can_be(jetstream: Nats) -> None:
    log = await JetStreamEventLog.open(jetstream, retention_days=1)
    key = RunKey("acme", "c" * 32)
    await jetstream.js.publish(f"runs.acme.{key.run_id}", b"\xff")
    for seq in (57, 58):
        event = pb.RunEvent(run_id=key.run_id, seq=seq, token=pb.Token(text="text"))
        await jetstream.js.publish(f"runs.acme.{key.run_id}", event.SerializeToString())
    events, _ = await log.read(key)
    assert [(event.seq, type(event.payload)) for event in events] == [(1, Thinking), (57, Token), (58, Token)]


async def test_run_with_a_damaged_event_can_be_continued(jetstream: Nats) -> None:
    log = await JetStreamEventLog.open(jetstream, retention_days=1)
    key = RunKey("acme", "d" * 32)
    await jetstream.js.publish(f"runs.acme.{key.run_id}", b"\xff")
    events, position = await log.read(key)
    assert [event.seq for event in events] == [1]
    done = RunEvent(key.run_id, 2, events[0].at, Done(RunStatus.CANCELLED))
    await log.append(key, done, position)
    assert (await log.read(key))[0][1] == done


async def test_event_of_a_newer_version_reaches_the_follower_as_it_was_stored(
    start_orchestrator: Start, jetstream: Nats
) -> None:
    orchestrator = await start_orchestrator()
    key, live = await _ended(orchestrator)
    newer = pb.RunEvent(run_id=key.run_id, seq=2).SerializeToString() + b"\xfa\x3f\x02hi"
    await _overwritten(jetstream, key, live, 2, newer)
    replayed = await collect(orchestrator.runs.attach(key, 0))
    assert replayed[1].raw == newer
    assert len(replayed) == len(live)


async def test_record_that_cannot_be_read_is_left_out_of_the_list(start_orchestrator: Start, records: KeyValue) -> None:
    orchestrator = await start_orchestrator()
    key, _ = await _ended(orchestrator)
    broken = [b"", b"{", b"[]", b"null", b'{"mode": "qa"}', b"\xff\xfe"]
    for number, value in enumerate(broken):
        await records.put(f"acme.{number:032x}", value)
    before = _set_aside("RUN_RECORDS")
    assert [run.key for run in (await orchestrator.runs.list("acme", 100, "")).runs] == [key]
    assert _set_aside("RUN_RECORDS") == before + len(broken)
    with pytest.raises(RunDamaged):
        await orchestrator.runs.get(RunKey("acme", f"{1:032x}"))


async def test_record_of_a_newer_version_is_shown_as_unknown_and_left_to_it(
    start_orchestrator: Start, records: KeyValue, jetstream: Nats
) -> None:
    orchestrator = await start_orchestrator()
    key, _ = await _ended(orchestrator)
    entry = await records.get(f"acme.{key.run_id}")
    assert entry is not None
    newer = pb_record.RunRecord.FromString(entry.value or b"")
    newer.status = 99  # type: ignore[assignment]
    newer.request.mode = 99  # type: ignore[assignment]
    newer.ClearField("finished_at")
    strange = RunKey("acme", "f" * 32)
    await records.put(strange.name, newer.SerializeToString() + _NEWER_FIELD)
    active = await KeyValue.open(jetstream, "RUN_ACTIVE")
    await active.put(strange.name, b"")
    record = await orchestrator.runs.get(strange)
    assert (record.status, record.request.mode) == (RunStatus.UNKNOWN, RunMode.UNKNOWN)
    assert [run.key for run in (await orchestrator.runs.list("acme", 100, "")).runs] == [strange, key]
    with suppress(RunOfNewerVersion):  # or the sweeper has been there
        await orchestrator.runs._take_over(strange)
    assert await active.get(strange.name) is not None
    await orchestrator.runs.cancel(strange)
    await orchestrator.runs._store.forget(strange, record.created_at)
    after = await records.get(strange.name)
    assert after is not None
    assert (after.value or b"").endswith(_NEWER_FIELD)
    assert pb_record.RunRecord.FromString(after.value or b"").request.mode == 99
