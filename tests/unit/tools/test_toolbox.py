"""Finding and calling tools."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kit.access.principal import ADMIN, INGEST, QUERY
from kit.deadline import set_remaining
from services.tools import toolbox as real_toolbox
from services.tools.calling.execution import Toolbox
from services.tools.errors import BrokenTool
from services.tools.models import Caller, Passage, Policy, ToolOutcome, ToolOutput
from services.tools.sources.discovery import discover
from tests.unit.tools import plain_tools
from tests.unit.tools.boxes import CALL, make_box


async def names(box: Toolbox, caller: Caller) -> list[str]:
    return [tool.name for tool in await box.offered(caller)]


async def _called(function: Callable[..., Any], **arguments: Any) -> ToolOutcome:
    return await make_box(function).call(replace(CALL, arguments=arguments or CALL.arguments))


def test_the_real_tools_are_found() -> None:
    tools = discover(real_toolbox)
    assert list(tools) == sorted(tools)
    assert tools["math_eval"].cacheable
    assert not tools["time_now"].cacheable


def test_the_only_search_of_documents_that_is_offered_is_search() -> None:
    other = {name for name, tool in discover(real_toolbox).items() if tool.policy.other_name_of == "search"}
    assert other == {"query_local_kb", "rag_search"}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("x = 1", "SCHEMA is not an OpenAI function schema"),
        (
            "SCHEMA = {'function': {'name': 'odd', 'description': '', 'parameters': {'type': 'nonsense'}}}",
            "not a JSON Schema",
        ),
        ("SCHEMA = {'function': {'name': 'odd', 'description': '', 'parameters': {}}}", "must both be named 'odd'"),
    ],
)
def test_a_module_that_is_no_tool_is_named(
    source: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    package = tmp_path / f"box_{abs(hash(request.node.name))}"
    package.mkdir()
    (package / "odd.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = ModuleType(package.name)
    module.__path__ = [str(package)]
    monkeypatch.setitem(__import__("sys").modules, package.name, module)
    with pytest.raises(BrokenTool, match=says):
        discover(module)


async def test_plain_functions_run_in_another_process_and_coroutines_on_the_event_loop() -> None:
    async def coroutine(count: int) -> int:
        return os.getpid()

    assert (await _called(plain_tools.own_process)).output != os.getpid()
    assert (await _called(coroutine)).output == os.getpid()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"x": 1}, "'count' is a required"),
        ({"count": 0}, "count: 0 is less"),
        ({"count": 1, "x": 2}, "'x' was unexpected"),
    ],
)
async def test_arguments_that_do_not_fit_are_a_result(arguments: dict[str, Any], says: str) -> None:
    outcome = await _called(plain_tools.give, **arguments)
    assert (outcome.ok, outcome.error_reason) == (False, "INVALID_ARGUMENTS")
    assert says in outcome.error_message


async def test_an_unknown_tool_is_a_result_that_names_the_known_ones() -> None:
    outcome = await make_box(plain_tools.give).call(replace(CALL, name="rm"))
    assert outcome.error_reason == "TOOL_UNKNOWN"
    assert "other, probe" in outcome.error_message


async def test_a_tool_that_a_tenant_or_a_caller_may_not_use_is_neither_offered_nor_called() -> None:
    box = make_box(plain_tools.give, allowed={"acme": ["other"]})
    assert await names(box, Caller("acme")) == ["other"]
    assert await names(box, Caller("umbrella")) == ["other", "probe"]
    assert (await box.call(CALL)).error_reason == "TOOL_NOT_ALLOWED"
    theirs = replace(CALL, tenant_id="umbrella")
    assert (await box.call(replace(theirs, allowed_tools=("other",)))).error_reason == "TOOL_NOT_ALLOWED"
    assert (await box.call(theirs)).ok


async def test_a_tool_whose_scope_the_caller_lacks_is_neither_offered_nor_called() -> None:
    box = make_box(plain_tools.give, policy=Policy(timeout_s=60.0, scope=INGEST))
    assert await names(box, Caller("acme", scopes=frozenset({INGEST}))) == ["other", "probe"]
    assert await names(box, Caller("acme", scopes=frozenset({ADMIN}))) == ["other", "probe"]
    assert await names(box, Caller("acme", scopes=frozenset({QUERY}))) == []
    refused = await box.call(replace(CALL, scopes=frozenset({QUERY})))
    assert (refused.ok, refused.error_reason) == (False, "SCOPE_MISSING")
    assert "'ingest'" in refused.error_message
    assert (await box.call(replace(CALL, scopes=frozenset({INGEST})))).ok


async def test_a_tool_that_breaks_is_a_result_without_internals() -> None:
    outcome = await _called(plain_tools.breaks)
    assert (outcome.ok, outcome.error_reason) == (False, "TOOL_FAILED")
    assert "hunter2" not in outcome.error_message


async def test_reason_of_a_tool_that_refuses_comes_back_from_its_process() -> None:
    outcome = await _called(plain_tools.refuses)
    assert (outcome.error_reason, outcome.error_message) == ("NOT_TODAY", "not today")


async def test_a_tool_whose_process_dies_is_a_result_and_the_next_call_works() -> None:
    box = make_box(plain_tools.dies)
    assert (await box.call(CALL)).error_reason == "TOOL_FAILED"
    assert (await _called(plain_tools.give)).ok


async def test_a_plain_tool_that_hangs_loses_its_process_and_others_go_on() -> None:
    box = make_box(plain_tools.hangs, other=plain_tools.give, policy=Policy(timeout_s=0.5))
    assert (await box.call(CALL)).error_reason == "TOOL_TIMEOUT"
    assert (await box.call(replace(CALL, name="other"))).output == 1, "by the one process that the box has"


@pytest.mark.parametrize("of", ["policy", "caller"])
async def test_a_tool_that_takes_too_long_is_a_result(of: str) -> None:
    async def waits(count: int) -> None:
        await asyncio.Event().wait()

    if of == "caller":
        set_remaining(0.1)
    box = make_box(waits, policy=Policy(timeout_s=0.05 if of == "policy" else 60.0))
    assert (await box.call(CALL)).error_reason == "TOOL_TIMEOUT"


@pytest.mark.parametrize(
    ("function", "reason"), [(plain_tools.odd, "TOOL_FAILED"), (plain_tools.large, "OUTPUT_TOO_LARGE")]
)
async def test_an_output_that_cannot_be_passed_on_is_a_result(function: Callable[..., Any], reason: str) -> None:
    assert (await _called(function)).error_reason == reason


async def test_results_of_a_cacheable_tool_are_kept_for_the_tenant() -> None:
    numbers = itertools.count()

    async def counts(count: int) -> int:
        return next(numbers)

    box = make_box(counts, cacheable=True)
    first, again = await box.call(CALL), await box.call(replace(CALL, call_id="other"))
    assert (first.output, first.cached, again.output, again.cached) == (0, False, 0, True)
    assert (await box.call(replace(CALL, tenant_id="umbrella"))).output == 1
    assert (await box.call(replace(CALL, arguments={"count": 2}))).output == 2
    assert (await make_box(counts).call(CALL)).output == 3


async def test_results_that_hold_passages_of_documents_are_not_kept() -> None:
    """They would outlive their document. The retriever keeps its own, and knows when they are void."""
    numbers = itertools.count()

    async def finds(count: int) -> ToolOutput:
        return ToolOutput(next(numbers), "Found.", (Passage("c1", "d1", "a.txt", "k", "text"),))

    box = make_box(finds, cacheable=True)
    outcomes = [await box.call(CALL) for _ in range(2)]
    assert [(outcome.output, outcome.cached) for outcome in outcomes] == [(0, False), (1, False)]


async def test_hanging_up_stops_a_tool_without_effect() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def waits(count: int) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    calling = asyncio.create_task(make_box(waits).call(CALL))
    await started.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert stopped.is_set()


async def test_calls_wait_for_their_turn_and_too_many_are_turned_away() -> None:
    running = 0
    seen: list[int] = []
    two_run, go = asyncio.Event(), asyncio.Event()

    async def holds(count: int) -> int:
        nonlocal running
        running += 1
        seen.append(running)
        if running == 2:
            two_run.set()
        await go.wait()
        running -= 1
        return count

    box = make_box(holds, waiting=1)
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(box.call(CALL)) for _ in range(4)]
        await two_run.wait()
        go.set()
    reasons = sorted(call.result().error_reason for call in calls)
    assert reasons == ["", "", "", "TOOLS_BUSY"]
    assert max(seen) == 2


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("math_eval", {"expression": "235 * 1.7"}, "235 * 1.7 = 399.5"),
        ("math_eval", {"expression": "1 / 3"}, "≈ 0.333"),
        ("time_now", {"timezone": "UTC"}, "(UTC)."),
        ("multi_query_rewrite", {"query": "How do I return a broken lamp?"}, "wording"),
        ("query_plan", {"query": "What did Ann write about the launch last week?"}, "Search for"),
        ("router_select", {"query": "E14"}, "search: "),
        ("temporal_normalize", {"text": "since March 2024", "timezone": "UTC"}, "2024-03-01"),
        ("temporal_normalize", {"text": "no time at all", "timezone": "UTC"}, "There is no time"),
    ],
)
def test_what_came_out_of_a_tool_is_told_in_words(name: str, arguments: dict[str, Any], said: str) -> None:
    tool = discover(real_toolbox)[name]
    assert tool.summarise is not None
    assert said in tool.summarise(tool.function(**arguments))
