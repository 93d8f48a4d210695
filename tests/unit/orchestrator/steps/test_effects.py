"""What is made of a call whose end nobody saw."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kit import deadline
from kit.errors import DeadlineExceeded
from services.orchestrator.log.events import EffectClass
from services.orchestrator.steps.calls import make
from services.orchestrator.steps.effects import Fate, ToolOutcome


@dataclass
class SlowPayment:
    """Takes all the time that there is; what came of it is known a moment later."""

    name: str = "pay"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    effect: EffectClass = EffectClass.ONCE
    known: bool = True
    asked_with_s: float | None = None

    async def run(self, call_id: str) -> ToolOutcome:
        raise DeadlineExceeded("no answer in time")

    async def find(self, call_id: str) -> ToolOutcome | Fate:
        self.asked_with_s = deadline.remaining_s()
        if not self.known:
            raise DeadlineExceeded("no answer in time")
        return ToolOutcome(True, {"paid": True})


async def test_call_that_took_all_the_time_is_asked_for_in_a_moment_of_its_own() -> None:
    call = SlowPayment()
    with deadline.within(0.0):
        outcome = await make(call, "run1/a")
        assert deadline.remaining_s() == 0.0
    assert outcome.ok
    assert call.asked_with_s is not None
    assert 0.0 < call.asked_with_s <= 2.0


async def test_what_came_of_an_idempotent_call_is_asked_for_and_what_only_reads_has_failed() -> None:
    kept = SlowPayment(effect=EffectClass.IDEMPOTENT)
    assert (await make(kept, "run1/a")).ok
    read = SlowPayment(effect=EffectClass.NONE)
    outcome = await make(read, "run1/b")
    assert (outcome.ok, outcome.error_reason) == (False, DeadlineExceeded.reason)


async def test_idempotent_call_of_which_nobody_knows_anything_has_failed() -> None:
    call = SlowPayment(effect=EffectClass.IDEMPOTENT, known=False)
    outcome = await make(call, "run1/a")
    assert (outcome.ok, outcome.error_reason) == (False, DeadlineExceeded.reason)


async def test_call_without_a_deadline_is_asked_for_without_one() -> None:
    call = SlowPayment()
    assert (await make(call, "run1/a")).ok
    assert call.asked_with_s is None
