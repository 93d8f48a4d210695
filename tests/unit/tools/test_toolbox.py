"""Finding and calling tools."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kit.deadline import set_remaining
from services.tools import toolbox as real_toolbox
from services.tools.discovery import discover
from services.tools.errors import BrokenTool
from services.tools.execution import Toolbox
from services.tools.models import Policy, Tool

PARAMETERS = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1}},
    "required": ["count"],
    "additionalProperties": False,
}


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def _box(
    executor: ThreadPoolExecutor, function: Callable[..., Any], *, timeout_s: float = 5.0, waiting: int = 8
) -> Toolbox:
    tool = Tool("probe", "A probe.", PARAMETERS, function, cacheable=False, policy=Policy(timeout_s=timeout_s))
    return Toolbox({"probe": tool}, executor, calls_at_once=2, calls_waiting=waiting)


def test_the_real_tools_are_found() -> None:
    tools = discover(real_toolbox)
    assert list(tools) == ["math_eval", "time_now"]
    assert tools["math_eval"].cacheable
    assert not tools["time_now"].cacheable


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


async def test_plain_functions_run_off_the_event_loop_and_coroutines_on_it(executor: ThreadPoolExecutor) -> None:
    def plain(count: int) -> bool:
        return threading.current_thread() is threading.main_thread()

    async def coroutine(count: int) -> bool:
        return threading.current_thread() is threading.main_thread()

    assert (await _box(executor, plain).call("probe", {"count": 1})).output is False
    assert (await _box(executor, coroutine).call("probe", {"count": 1})).output is True


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({}, "'count' is a required"), ({"count": 0}, "count: 0 is less"), ({"count": 1, "x": 2}, "'x' was unexpected")],
)
async def test_arguments_that_do_not_fit_are_a_result(
    executor: ThreadPoolExecutor, arguments: dict[str, Any], says: str
) -> None:
    outcome = await _box(executor, lambda count: count).call("probe", arguments)
    assert (outcome.ok, outcome.error_reason) == (False, "INVALID_ARGUMENTS")
    assert says in outcome.error_message


async def test_an_unknown_tool_is_a_result_that_names_the_known_ones(executor: ThreadPoolExecutor) -> None:
    outcome = await _box(executor, lambda count: count).call("rm", {})
    assert outcome.error_reason == "TOOL_UNKNOWN"
    assert "probe" in outcome.error_message


async def test_a_tool_that_breaks_is_a_result_without_internals(executor: ThreadPoolExecutor) -> None:
    def breaks(count: int) -> None:
        raise RuntimeError("password=hunter2")

    outcome = await _box(executor, breaks).call("probe", {"count": 1})
    assert (outcome.ok, outcome.error_reason) == (False, "TOOL_FAILED")
    assert "hunter2" not in outcome.error_message


@pytest.mark.parametrize("of", ["policy", "caller"])
async def test_a_tool_that_takes_too_long_is_a_result(executor: ThreadPoolExecutor, of: str) -> None:
    async def waits(count: int) -> None:
        await asyncio.Event().wait()

    box = _box(executor, waits, timeout_s=0.05 if of == "policy" else 60.0)
    if of == "caller":
        set_remaining(0.1)
    assert (await box.call("probe", {"count": 1})).error_reason == "TOOL_TIMEOUT"


@pytest.mark.parametrize(("output", "reason"), [(object(), "TOOL_FAILED"), ("x" * 100_001, "OUTPUT_TOO_LARGE")])
async def test_an_output_that_cannot_be_passed_on_is_a_result(
    executor: ThreadPoolExecutor, output: Any, reason: str
) -> None:
    outcome = await _box(executor, lambda count: output).call("probe", {"count": 1})
    assert outcome.error_reason == reason


async def test_calls_wait_for_their_turn_and_too_many_are_turned_away(executor: ThreadPoolExecutor) -> None:
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

    box = _box(executor, holds, waiting=1)
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(box.call("probe", {"count": 1})) for _ in range(4)]
        await two_run.wait()
        go.set()
    reasons = sorted(call.result().error_reason for call in calls)
    assert reasons == ["", "", "", "TOOLS_BUSY"]
    assert max(seen) == 2
