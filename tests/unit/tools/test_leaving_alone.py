"""A tool that keeps failing is left alone for a while, then tried with one call."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from kit.breaker import CircuitBreaker
from kit.deadline import limited_to
from kit.errors import InvalidArgument, NotFound, ResourceExhausted, Unavailable
from services.tools.calling.execution import Toolbox
from services.tools.errors import ServiceUnavailable, ToolError
from services.tools.models import Effect, Policy, ToolOutcome
from tests.unit.tools.boxes import CALL, make_box


@dataclass
class Probe:
    """A tool that fails as it is told, and the clock of its breaker."""

    failure: Exception | None = None
    hangs: bool = False
    now: float = 100.0
    made: int = 0
    entered: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, count: int) -> int:
        self.made += 1
        self.entered.set()
        if self.hangs:
            await asyncio.Event().wait()
        if self.failure:
            raise self.failure
        return count

    def box(self, **options: Any) -> Toolbox:
        async def probe(count: int) -> int:
            return await self(count)

        return make_box(probe, breaker=self.breaker, **options)

    def breaker(self) -> CircuitBreaker:
        return CircuitBreaker(failures=2, window_s=10.0, open_s=5.0, clock=lambda: self.now)


def translated(cause: Exception) -> ToolError:
    """As an adapter puts what another service says."""
    error = ToolError("the search does not answer now", reason="SEARCH_UNAVAILABLE")
    error.__cause__ = cause
    return error


async def opened(probe: Probe) -> Toolbox:
    box = probe.box()
    for _ in range(2):
        assert not (await box.call(CALL)).ok
    return box


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (RuntimeError("broke"), "TOOL_FAILED"),
        (TimeoutError(), "TOOL_TIMEOUT"),
        (Unavailable("10.0.0.7:7002 is away"), "SERVICE_UNAVAILABLE"),
        (ServiceUnavailable("the search does not answer now"), "SERVICE_UNAVAILABLE"),
        (translated(Unavailable("10.0.0.7:7002 is away")), "SEARCH_UNAVAILABLE"),
    ],
)
async def test_tool_that_fails_again_and_again_is_left_alone_and_says_until_when(
    failure: Exception, reason: str
) -> None:
    probe = Probe(failure)
    box = probe.box()
    outcomes = [await box.call(CALL) for _ in range(3)]
    assert [outcome.error_reason for outcome in outcomes] == [reason, reason, "TOOL_UNAVAILABLE"]
    assert "tried again in 5 s" in outcomes[-1].error_message
    assert not [outcome for outcome in outcomes if "10.0.0.7" in outcome.error_message]
    assert probe.made == 2
    probe.failure = None
    assert (await box.call(replace(CALL, name="other"))).ok, "each tool has its own"


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (ToolError("not today", reason="NOT_TODAY"), "NOT_TODAY"),
        (NotFound("no such document", reason="DOCUMENT_NOT_FOUND"), "DOCUMENT_NOT_FOUND"),
        (InvalidArgument("too many", reason="TOO_MANY"), "TOO_MANY"),
        (ResourceExhausted("later", reason="BUSY"), "BUSY"),
        (translated(NotFound("no such document")), "SEARCH_UNAVAILABLE"),
    ],
)
async def test_tool_that_says_no_works(refusal: Exception, reason: str) -> None:
    probe = Probe(refusal)
    box = probe.box()
    for _ in range(4):
        assert (await box.call(CALL)).error_reason == reason
    assert (await box.call(replace(CALL, arguments={}))).error_reason == "INVALID_ARGUMENTS"
    assert probe.made == 4


async def test_after_the_pause_one_call_tries_and_closes_it() -> None:
    probe = Probe(RuntimeError())
    box = await opened(probe)
    probe.now += 5.0
    probe.failure, probe.hangs = None, True
    probe.entered.clear()
    trying = asyncio.create_task(box.call(CALL))
    await probe.entered.wait()
    assert (await box.call(CALL)).error_reason == "TOOL_UNAVAILABLE", "one at a time"
    trying.cancel()
    await asyncio.wait([trying])
    probe.hangs = False
    assert (await box.call(CALL)).ok, "the try that was given up says nothing"
    assert (await box.call(CALL)).ok


async def test_a_try_that_fails_doubles_the_pause() -> None:
    probe = Probe(RuntimeError())
    box = await opened(probe)
    probe.now += 5.0
    assert (await box.call(CALL)).error_reason == "TOOL_FAILED"
    assert "in 10 s" in (await box.call(CALL)).error_message


async def test_caller_that_leaves_no_time_does_not_count() -> None:
    probe = Probe(hangs=True)
    box = probe.box()
    for _ in range(3):
        with limited_to(0.05):
            assert (await box.call(CALL)).error_reason == "TOOL_TIMEOUT"
    assert probe.made == 3


async def test_call_that_was_made_is_answered_while_its_tool_is_left_alone() -> None:
    probe = Probe()
    box = probe.box(policy=Policy(effect=Effect.ONCE))
    first = await box.call(replace(CALL, call_id="run1/a"))
    probe.failure = RuntimeError()
    for number in range(2):
        await box.call(replace(CALL, call_id=f"run1/{number}"))
    assert await box.call(replace(CALL, call_id="run1/a")) == first
    assert (await box.call(replace(CALL, call_id="run1/b"))).error_reason == "TOOL_UNAVAILABLE"


async def test_state_is_shown_in_the_metrics() -> None:
    def shown() -> float | None:
        return REGISTRY.get_sample_value("groundwork_tool_breaker", {"tool": "probe"})

    probe = Probe(RuntimeError())
    box = probe.box()
    await box.offered(CALL.caller)
    states = [shown()]
    for _ in range(2):
        await box.call(CALL)
    states.append(shown())
    probe.now += 5.0
    states.append(shown())
    probe.failure = None
    await box.call(CALL)
    assert [*states, shown()] == [0, 2, 1, 0]


@pytest.mark.parametrize("failure", [RuntimeError("broke"), TimeoutError(), Unavailable("away")])
async def test_what_must_not_happen_twice_and_was_cut_off_is_in_doubt(failure: Exception) -> None:
    once = Probe(failure).box(policy=Policy(effect=Effect.ONCE))
    outcome = await once.call(replace(CALL, call_id="run1/a"))
    assert outcome.error_reason == "CALL_IN_DOUBT"
    assert "look whether it was" in outcome.error_message
    refused = Probe(ServiceUnavailable("the mail server does not answer")).box(policy=Policy(effect=Effect.ONCE))
    assert (await refused.call(replace(CALL, call_id="run1/a"))).error_reason == "SERVICE_UNAVAILABLE"


async def test_what_was_done_and_answers_with_too_much_says_that_it_was_done() -> None:
    async def does(count: int) -> str:
        return "x" * 300_000

    box = make_box(does, policy=Policy(effect=Effect.ONCE))
    outcome: ToolOutcome = await box.call(replace(CALL, call_id="run1/a"))
    assert outcome.error_reason == "OUTPUT_TOO_LARGE"
    assert "was done" in outcome.error_message
