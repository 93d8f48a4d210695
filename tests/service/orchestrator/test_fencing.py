"""Two orchestrators that both believe a run is theirs, on a real NATS server: one writes, the other falls silent, and what the run
does to the world is done once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kit.jetstream import Nats
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.errors import FencedOff
from services.orchestrator.log.events import Done, EffectClass, RunMode, RunStarted, RunStatus, ToolCall, ToolResult
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.steps.run import Run
from tests.service.orchestrator.test_runs import _now
from tests.unit.orchestrator.steps.test_cuts import Bank, Transfer

KEY = RunKey("acme", "f" * 32)


class Paused(Transfer):
    """A call whose worker stands still at one point, as a process does that is frozen or swapped out."""

    def __init__(self, bank: Bank, *, made: bool) -> None:
        super().__init__(bank, EffectClass.ONCE)
        self.made = made
        self.stands_still = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def run(self, call_id: str) -> ToolOutcome:
        if self.made:
            await super().run(call_id)
        self.stands_still.set()
        await self.goes_on.wait()
        return ToolOutcome(True, summary="Done.")


async def owner(jetstream: Nats) -> Journal:
    log = await JetStreamEventLog.open(jetstream, retention_days=1)
    return await Journal.open(KEY, log, _now)


async def pays(journal: Journal, call: Transfer, before: Callable[[], Awaitable[object]] | None = None) -> RunStatus:
    run = await Run.begin(journal, RunStarted(RunMode.QA, "Pay."))
    if before:
        await before()
    await run.effect("pay", call)
    return await run.end(RunStatus.COMPLETED)


async def stored(jetstream: Nats) -> list[object]:
    log = await JetStreamEventLog.open(jetstream, retention_days=1)
    events, _ = await log.read(KEY)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return [event.payload for event in events]


async def test_owner_that_was_overtaken_before_it_acted_does_not_act(jetstream: Nats) -> None:
    bank = Bank()
    stands_still, goes_on = asyncio.Event(), asyncio.Event()

    async def pause() -> None:
        stands_still.set()
        await goes_on.wait()

    old = asyncio.create_task(pays(await owner(jetstream), Transfer(bank, EffectClass.ONCE), pause))
    await stands_still.wait()
    assert await pays(await owner(jetstream), Transfer(bank, EffectClass.ONCE)) is RunStatus.COMPLETED
    goes_on.set()
    with pytest.raises(FencedOff):
        await old
    payloads = await stored(jetstream)
    assert payloads[-1] == Done(RunStatus.COMPLETED)
    assert sum(isinstance(each, ToolCall) for each in payloads) == 1
    assert bank.made == {f"{KEY.run_id}/pay": 1}


@pytest.mark.parametrize("made", [True, False], ids=["had acted", "was about to act"])
@pytest.mark.parametrize("knows", [True, False], ids=["bank knows", "bank does not know"])
async def test_owner_that_was_overtaken_while_it_acted_says_nothing_of_it(
    jetstream: Nats, made: bool, knows: bool
) -> None:
    bank = Bank(forgetful=not knows)
    paused = Paused(bank, made=made)
    old = asyncio.create_task(pays(await owner(jetstream), paused))
    await paused.stands_still.wait()
    await pays(await owner(jetstream), Transfer(bank, EffectClass.ONCE))
    paused.goes_on.set()
    with pytest.raises(FencedOff):
        await old
    payloads = await stored(jetstream)
    (result,) = [each for each in payloads if isinstance(each, ToolResult)]
    assert result.error_reason == ("" if knows else "IN_DOUBT")
    assert bank.asked == [f"{KEY.run_id}/pay"]
    assert sum(bank.made.values()) == (1 if made or knows else 0)
    assert payloads[-1] == Done(RunStatus.COMPLETED)
