"""Processes of plain tools: their start is not the tool's time."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.deadline import limited_to
from services.tools import __main__ as main_module
from services.tools.calling.processes import Processes, _prepare
from services.tools.errors import ToolsBusy
from tests.unit.tools import plain_tools


class SlowToStart(Processes):
    """Starts when it is let; what it runs is done at once."""

    def __init__(self) -> None:
        super().__init__(1)
        self.may_start = asyncio.Event()
        self.starting = 0

    async def _in_process(self, function: Any, *arguments: Any) -> Any:
        if function is not _prepare:
            return "done"
        self.starting += 1
        await self.may_start.wait()
        return None


async def test_start_is_not_counted_against_the_tools_limit() -> None:
    processes = SlowToStart()
    running = asyncio.create_task(processes.run(plain_tools.give, {"count": 1}, timeout_s=0.01))
    done, _ = await asyncio.wait([running], timeout=0.1)
    assert not done
    processes.may_start.set()
    assert await running == "done"


async def test_start_that_takes_too_long_for_the_caller_is_said_and_frees_its_place() -> None:
    processes = SlowToStart()
    for _ in range(2):
        with limited_to(0.05), pytest.raises(ToolsBusy, match="no process"):
            await processes.run(plain_tools.give, {"count": 1}, timeout_s=60.0)
    assert processes.starting == 2
    processes.may_start.set()
    assert await processes.run(plain_tools.give, {"count": 1}, timeout_s=60.0) == "done"


async def test_processes_are_bounded() -> None:
    processes = SlowToStart()
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(processes.run(plain_tools.give, {"count": 1}, timeout_s=60.0))
        await asyncio.sleep(0)
        assert processes.starting <= 1
        processes.may_start.set()
    assert processes.starting == 3


def test_what_a_process_reads_at_its_start_is_light() -> None:
    """anyio has each process run the main module of its parent. With the service's imports it would take five times as long to
    start, and 80 MB."""
    main = Path(main_module.__file__ or "")
    script = f"import runpy, sys; runpy.run_path({str(main)!r}, run_name='__mp_main__'); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert not {"grpc", "nats", "pydantic", "kit.process.service"} & set(shown.stdout.split())
