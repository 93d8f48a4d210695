"""The tools service is killed in the middle of a call: what its successor, which shares the message store, says of it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.errors import Unavailable
from kit.testing.harness import free_port, open_test_channel
from services.orchestrator.adapters.services.tools import GrpcTools
from services.orchestrator.models import Tool
from services.orchestrator.steps.calls import settle
from services.orchestrator.steps.effects import Call, Fate, ToolOutcome
from tests.conftest import REPOSITORY
from tests.service.tools.calls.conftest import CONTRACT, DROPPED, named


@asynccontextmanager
async def tools_process(address: str, nats_url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process of its own, which is not waited for until it serves."""
    environment = {
        **os.environ,
        "GROUNDWORK_GRPC_ADDRESS": address,
        "GROUNDWORK_NATS_URL": nats_url,
        "GROUNDWORK_TOOLS_FOLDERS": str(DROPPED),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.tools", cwd=REPOSITORY, env=environment, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def once_it_serves(tools: GrpcTools, name: str) -> Tool:
    async with asyncio.timeout(120):
        while True:
            try:
                return await named(tools, name)
            except Unavailable:
                await asyncio.sleep(0.1)


async def settled(call: Call) -> ToolOutcome:
    """As a run that is taken over asks."""
    outcome = await settle(call, "run1/a")
    found = await call.find("run1/a")
    assert not isinstance(found, Fate)
    assert (found.ok, found.content) == (outcome.ok, outcome.content)
    return outcome


@pytest.mark.parametrize("name", ["transfers", "keeps"])
async def test_call_whose_process_was_killed_ends_as_its_effect_demands(
    nats_url: str, tmp_path: Path, name: str
) -> None:
    file, address = tmp_path / "made", f"127.0.0.1:{free_port()}"
    async with open_test_channel(address, services=CONTRACT) as channel:
        tools = GrpcTools(channel, list_timeout_s=30.0)
        async with tools_process(address, nats_url) as process:
            call = tools.call(await once_it_serves(tools, name), {"file": str(file)}, [])
            with pytest.raises(Unavailable):
                await call.run("run1/a")
            assert await process.wait() < 0
        async with tools_process(address, nats_url):
            await once_it_serves(tools, name)
            outcome = await settled(call)
    if name == "transfers":
        assert (outcome.is_in_doubt, file.read_text().count("made")) == (True, 1), "never made again"
        assert "look whether" in outcome.summary
    else:
        assert (outcome.ok, outcome.content, file.read_text().count("made")) == (True, {"made": 2}, 2)
