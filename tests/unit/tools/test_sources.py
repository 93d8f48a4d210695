"""Each wrapper around a source that is no module."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kit.access.principal import INGEST, QUERY
from kit.breaker import CircuitBreaker
from kit.errors import NotFound, Unavailable
from services.tools.calling.calls import Calls
from services.tools.calling.execution import Toolbox
from services.tools.calling.progress import Tell, unheard
from services.tools.errors import (
    OutputTooLarge,
    ScopeMissing,
    ServiceUnavailable,
    ToolBroke,
    ToolError,
    ToolNotAllowed,
    ToolsBusy,
    ToolTimedOut,
    ToolUnavailable,
    UnknownTool,
)
from services.tools.models import Call, Caller, Effect, Passage, Policy, Tool, ToolOutput
from services.tools.sources.chain import guarded
from services.tools.sources.failures import Explained, LeftAlone
from services.tools.sources.limits import Bounded, Deadline, InTurn, Turns
from services.tools.sources.permissions import GUEST_TOOLS, Allowed, ApprovalRequired, Scoped
from services.tools.sources.result_cache import Cached
from services.tools.sources.source import Combined, ToolSource
from tests.unit.tools.fakes import START, MemoryCallStore

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
PROBE = Tool("server__probe", "A probe.", SCHEMA)
CALL = Call("acme", PROBE.name, {"n": 1}, "run1/a")


@dataclass
class FakeSource:
    """Tools of another server."""

    tools: Sequence[Tool] = (PROBE,)
    does: Callable[[Call], Any] = lambda call: call.arguments["n"]
    called: list[str] = field(default_factory=list)
    go: asyncio.Event | None = None

    async def list(self, caller: Caller) -> Sequence[Tool]:
        return self.tools

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        self.called.append(tool.name)
        if self.go is not None:
            await self.go.wait()
        await tell("working")
        made = self.does(call)
        return made if isinstance(made, ToolOutput) else ToolOutput(made)


def failing(error: Exception) -> FakeSource:
    def fails(_: Call) -> None:
        raise error

    return FakeSource(does=fails)


async def made(source: ToolSource, tool: Tool = PROBE, call: Call = CALL) -> Any:
    return (await source.call(tool, call, unheard)).content


async def test_tenants_keep_the_tools_on_their_list() -> None:
    source = Allowed(FakeSource(), {"acme": ["other"]})
    (listed,) = await source.list(Caller("acme"))
    assert isinstance(listed.refusal, ToolNotAllowed)
    assert [tool.refusal for tool in await source.list(Caller("umbrella"))] == [None]
    with pytest.raises(ToolNotAllowed):
        await made(source)
    assert await made(source, call=replace(CALL, tenant_id="umbrella")) == 1


async def test_guests_use_listed_tools_alone_unless_their_tenant_has_a_list() -> None:
    guest = Caller("guests", f"guest-{'0a' * 12}")
    names = ["search", "query_db", "http_get", "web_fetch", "web_search", PROBE.name]
    tools = [replace(PROBE, name=name) for name in names]
    source = Allowed(FakeSource(tools), {})
    assert [tool.name for tool in await source.list(guest) if tool.refusal is None] == ["search"]
    assert all(tool.refusal is None for tool in await source.list(Caller("guests", "librarian")))
    with pytest.raises(ToolNotAllowed):
        await source.call(PROBE, replace(CALL, tenant_id="guests", subject=guest.subject), unheard)
    listed = await Allowed(FakeSource(tools), {"guests": ["web_fetch"]}).list(guest)
    assert [tool.name for tool in listed if tool.refusal is None] == ["web_fetch"]
    assert not {"query_db", "http_get"} & GUEST_TOOLS


async def test_scope_of_the_policy_is_asked_for() -> None:
    tool = replace(PROBE, policy=Policy(scope=INGEST))
    source = Scoped(FakeSource([tool]))
    (listed,) = await source.list(Caller("acme", scopes=frozenset({QUERY})))
    assert isinstance(listed.refusal, ScopeMissing)
    with pytest.raises(ScopeMissing, match="'ingest'"):
        await made(source, tool, replace(CALL, scopes=frozenset({QUERY})))
    assert await made(source, tool, replace(CALL, scopes=frozenset({INGEST}))) == 1


async def test_a_refusal_of_the_source_stays_unless_a_wrapper_refuses_first() -> None:
    tool = replace(PROBE, refusal=ToolUnavailable("it is not set up"))
    source = Allowed(FakeSource([tool]), {"umbrella": []})
    (ours,), (theirs,) = await source.list(Caller("acme")), await source.list(Caller("umbrella"))
    assert (type(ours.refusal), type(theirs.refusal)) == (ToolUnavailable, ToolNotAllowed)


async def test_a_person_is_asked_for_the_tools_that_are_named() -> None:
    source = ApprovalRequired(FakeSource([PROBE, replace(PROBE, name="time_now")]), ["server__*"])
    assert [tool.policy.needs_approval for tool in await source.list(Caller("acme"))] == [True, False]


async def test_outputs_of_cacheable_tools_are_kept_without_passages() -> None:
    inside = FakeSource()
    source, tool = Cached(inside), replace(PROBE, cacheable=True)
    outputs = [await source.call(tool, CALL, unheard) for _ in range(2)]
    assert [(output.content, output.cached) for output in outputs] == [(1, False), (1, True)]
    await made(source, tool, replace(CALL, tenant_id="umbrella"))
    await made(source, replace(tool, cacheable=False))
    assert len(inside.called) == 3
    inside.does = lambda _: ToolOutput("found", "", (Passage("c1", "d1", "a.txt", "k", "text"),))
    for _ in range(2):
        await made(source, tool, replace(CALL, arguments={"n": 2}))
    assert len(inside.called) == 5


async def test_kept_outputs_grow_old() -> None:
    now = 0.0
    inside = FakeSource()
    source, tool = Cached(inside, clock=lambda: now), replace(PROBE, cacheable=True)
    await made(source, tool)
    now = 601.0
    await made(source, tool)
    assert len(inside.called) == 2


async def test_source_that_keeps_failing_is_left_alone_then_tried_by_one_call() -> None:
    now = 0.0
    inside = failing(ToolBroke("it broke"))
    source = LeftAlone(inside, lambda: CircuitBreaker(failures=2, open_s=5.0, clock=lambda: now))
    for _ in range(2):
        with pytest.raises(ToolBroke):
            await made(source)
    with pytest.raises(ToolUnavailable, match="in 5 s"):
        await made(source)
    now, inside.does, inside.go = 5.0, lambda _: "well", asyncio.Event()
    trying = asyncio.create_task(made(source))
    while len(inside.called) < 3:
        await asyncio.sleep(0)
    with pytest.raises(ToolUnavailable):
        await made(source)
    inside.go.set()
    assert await trying == "well"
    assert await made(source) == "well"


async def test_calls_wait_for_their_turn_and_too_many_are_turned_away() -> None:
    inside = FakeSource(go=asyncio.Event())
    turns = Turns(1, 1)
    source = InTurn(inside, turns)
    first, second = (asyncio.create_task(made(source)) for _ in range(2))
    while not turns.is_full:
        await asyncio.sleep(0)
    with pytest.raises(ToolsBusy):
        await made(source)
    assert len(inside.called) == 1
    assert inside.go is not None
    inside.go.set()
    assert [await first, await second] == [1, 1]
    assert not turns.is_full


async def test_call_ends_with_its_time() -> None:
    tool = replace(PROBE, policy=Policy(timeout_s=0.01))
    source = Explained(Deadline(FakeSource(go=asyncio.Event())))
    with pytest.raises(ToolTimedOut, match=r"0\.0 s"):
        await made(source, tool)


@pytest.mark.parametrize(
    ("raised", "becomes"),
    [
        (TimeoutError(), ToolTimedOut),
        (Unavailable("10.0.0.7 is away"), ServiceUnavailable),
        (NotFound("no such page"), ToolError),
        (RuntimeError("hunter2"), ToolBroke),
    ],
)
async def test_what_a_source_raises_is_explained(raised: Exception, becomes: type[ToolError]) -> None:
    with pytest.raises(becomes) as caught:
        await made(Explained(failing(raised)))
    assert "hunter2" not in str(caught.value)
    assert "10.0.0.7" not in str(caught.value)


async def test_output_that_is_too_large_is_refused_and_an_effect_is_told() -> None:
    source = Bounded(FakeSource(does=lambda _: "x" * 300_000))
    with pytest.raises(OutputTooLarge):
        await made(source)
    with pytest.raises(OutputTooLarge, match="was done"):
        await made(source, replace(PROBE, policy=Policy(effect=Effect.ONCE)))


async def test_several_sources_are_one() -> None:
    first, second = FakeSource(), FakeSource([PROBE, replace(PROBE, name="other")])
    source = Combined([first, second])
    listed = await source.list(Caller("acme"))
    assert [tool.name for tool in listed] == [PROBE.name, "other"]
    for tool in listed:
        await made(source, tool)
    assert (first.called, second.called) == ([PROBE.name], ["other"])
    with pytest.raises(UnknownTool):
        await made(source, replace(PROBE, name="gone"))


async def test_a_second_source_is_called_as_modules_are() -> None:
    """Looked up, checked, made once by its id, told: the execution knows no origin."""
    numbers = iter(range(9))
    effect = replace(PROBE, name="server__send", policy=Policy(effect=Effect.ONCE))
    inside = FakeSource([PROBE, effect], does=lambda _: next(numbers))
    turns = Turns(2, 2)
    box = Toolbox(guarded([FakeSource(()), inside], turns), Calls(MemoryCallStore(), now=lambda: START), turns)
    assert [tool.name for tool in await box.offered(Caller("acme"))] == [PROBE.name, effect.name]
    sent = replace(CALL, name=effect.name)
    outcomes = [await box.call(sent), await box.call(sent), await box.call(CALL)]
    assert [outcome.output for outcome in outcomes] == [0, 0, 1]
    assert (await box.call(replace(CALL, arguments={"x": 1}))).error_reason == "INVALID_ARGUMENTS"
    assert inside.called == [effect.name, PROBE.name]
