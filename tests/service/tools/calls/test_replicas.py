"""Two tools services over one message store: a call by its id is the same call at either."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from kit.testing.harness import TEST_PRINCIPAL, open_test_channel
from services.orchestrator.adapters.services.tools import GrpcTools
from services.orchestrator.steps.effects import ToolOutcome
from tests.service.tools.calls.conftest import CONTRACT, Serve, named


@pytest.fixture
async def both(serve: Serve) -> AsyncIterator[list[GrpcTools]]:
    """Each as an orchestrator has it."""
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(2):
            address = await stack.enter_async_context(serve())
            channel = await stack.enter_async_context(open_test_channel(address, TEST_PRINCIPAL, CONTRACT))
            found.append(GrpcTools(channel, list_timeout_s=30.0))
        yield found


@pytest.fixture
def file(tmp_path: Path) -> dict[str, Any]:
    """Arguments of a tool that adds a line to it."""
    made = tmp_path / "made"
    made.write_text("made\n")
    return {"file": str(made)}


@pytest.mark.parametrize("name", ["transfers", "keeps"])
async def test_call_that_one_has_made_is_answered_by_the_other(
    both: list[GrpcTools], file: dict[str, Any], name: str
) -> None:
    calls = [tools.call(await named(tools, name), file, []) for tools in both]
    first = await calls[0].run("run1/a")
    again = await calls[1].find("run1/a")
    assert isinstance(again, ToolOutcome)
    assert (first.content, again.content) == ({"made": 2}, {"made": 2})


async def test_call_that_both_are_asked_for_at_once_is_made_once(both: list[GrpcTools], file: dict[str, Any]) -> None:
    calls = [tools.call(await named(tools, "transfers"), file, []) for tools in both]
    outcomes = await asyncio.gather(*(call.run("run1/a") for call in calls for _ in range(3)))
    assert [each.content for each in outcomes] == 6 * [{"made": 2}]


async def test_calls_that_are_forgotten_through_one_are_refused_by_the_other(
    both: list[GrpcTools], file: dict[str, Any]
) -> None:
    calls = [tools.call(await named(tools, "transfers"), file, []) for tools in both]
    assert (await calls[0].run("run1/a")).ok
    await both[1].forget_calls("run1")
    assert (await calls[0].run("run1/a")).error_reason == "CALL_FORGOTTEN"
    assert (await calls[0].run("run1/b")).error_reason == "CALL_FORGOTTEN"
