"""The pen of a run, interrupted at the worst moments."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from services.orchestrator.log.events import RunEvent, Thinking
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey
from tests.unit.orchestrator.fakes import MemoryLog

KEY = RunKey("local", "a" * 32)
ONE, TWO = Thinking("answer", "one"), Thinking("answer", "two")


class SlowLog(MemoryLog):
    """Holds each append until `gate` opens."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()
        self.gate = asyncio.Event()

    async def append(self, key: RunKey, event: RunEvent, last_position: int) -> int:
        self.reached.set()
        await self.gate.wait()
        return await super().append(key, event, last_position)


def now() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def texts(events: Sequence[RunEvent]) -> list[str]:
    return [event.payload.text for event in events if isinstance(event.payload, Thinking)]


async def test_writer_that_is_cancelled_twice_still_knows_where_its_log_ends() -> None:
    log = SlowLog()
    journal = await Journal.open(KEY, log, now)
    writing = asyncio.create_task(journal.write(ONE))
    await log.reached.wait()
    for _ in range(3):
        writing.cancel()
        await asyncio.sleep(0)
    log.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await journal.write(TWO)
    assert texts(log.events[KEY]) == ["one", "two"]
    assert journal.progress.seq == 2


async def test_cancellation_is_not_lost_when_the_log_goes_away_at_that_moment() -> None:
    log = SlowLog()
    journal = await Journal.open(KEY, log, now)
    writing = asyncio.create_task(journal.write(ONE))
    await log.reached.wait()
    writing.cancel()
    await asyncio.sleep(0)
    log.down = True
    log.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert not journal.durable


async def test_log_that_refuses_says_so_once_and_goes_on_live() -> None:
    log = MemoryLog()
    journal = await Journal.open(KEY, log, now)
    live = journal.follow()
    log.down = True
    await journal.write(ONE)
    log.down = False
    await journal.write(TWO)
    journal.close()
    events = [event async for event in live]
    assert [event.seq for event in events] == [1, 2, 3]
    assert KEY not in log.events
