"""The pen of a run, interrupted at the worst moments."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.orchestrator.errors import FencedOff
from services.orchestrator.log.events import Approval, ApprovalDecision, Payload, RunEvent, StepState, Thinking
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.state import RESUMED
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


ASKED = Approval("a", "mail", {}, "ab", (), datetime(2026, 1, 2, tzinfo=UTC))
ALLOWED = replace(ASKED, decision=ApprovalDecision.ALLOWED, decided_by="ann")
RESUME = Thinking(RESUMED, "Going on where this answer had stopped.")


async def asking(log: MemoryLog) -> Journal:
    """The journal of a worker that has asked something."""
    journal = await Journal.open(KEY, log, now)
    await journal.record("ask", ASKED, StepState())
    journal.takes_in_decisions = True
    return journal


async def others_write(log: MemoryLog, *payloads: Payload) -> None:
    other = await Journal.open(KEY, log, now)
    for payload in payloads:
        await other.record("ask", payload, StepState())


async def test_decision_that_somebody_appends_is_taken_in_by_the_worker_that_goes_on() -> None:
    log = MemoryLog()
    journal = await asking(log)
    live = journal.follow()
    await others_write(log, ALLOWED)
    await journal.write(ONE)
    assert [event.seq for event in log.events[KEY]] == [1, 2, 3]
    assert journal.progress.approvals["ask"].decision is ApprovalDecision.ALLOWED
    assert journal.progress.has_unread_decision
    journal.close()
    assert [event.seq async for event in live] == [2, 3], "who follows sees it too"


@pytest.mark.parametrize("theirs", [(ONE,), (ALLOWED, RESUME), (RESUME, ALLOWED), (ASKED,)])
async def test_any_other_entry_says_that_the_run_is_anothers(theirs: Sequence[Payload]) -> None:
    log = MemoryLog()
    journal = await asking(log)
    await others_write(log, *theirs)
    with pytest.raises(FencedOff):
        await journal.write(TWO)
    assert len(log.events[KEY]) == 1 + len(theirs)


async def test_who_decides_is_told_when_another_decision_came_first() -> None:
    log = MemoryLog()
    await asking(log)
    late = await Journal.open(KEY, log, now)
    await others_write(log, ALLOWED)
    with pytest.raises(FencedOff):
        await late.record("ask", replace(ALLOWED, decision=ApprovalDecision.DENIED), StepState())
