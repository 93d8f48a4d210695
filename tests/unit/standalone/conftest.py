"""Tiny children and a supervisor around them; a message store with its ledger."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from services.standalone.storage.disk import Disk
from services.standalone.storage.log_files import JsonLinesLog
from services.standalone.supervising.models import ChildEvent, ChildSpec, ChildState, Probe, ProbeKind, RestartPolicy
from services.standalone.supervising.supervisor import Supervisor

WAIT_S = 60.0
POLICY = RestartPolicy(backoff_initial_s=0.05, backoff_max_s=0.2, start_crashes_max=3)
SLEEPER = "import signal; signal.pause()"
ENDS_WHEN_TOLD = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('deaf', flush=True)
while True:
    signal.pause()
"""
DIES_SAYING = "import sys; sys.stderr.write({!r}); sys.exit(7)"
IGNORES_SIGTERM = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('deaf', flush=True)
while True:
    signal.pause()
"""


class FakeProbe:
    """Ready as soon as the child's file says so, or at once for children without one."""

    def __init__(self) -> None:
        self.never: set[int] = set()
        self.when_said: dict[int, Path] = {}

    async def is_ready(self, probe: Probe) -> bool:
        if file := self.when_said.get(probe.port):
            return file.exists() and "deaf" in file.read_text()
        return probe.port not in self.never


class FakeDisk(Disk):
    """A disk that tests fill and empty; what it says is kept."""

    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        super().__init__(folder, self.said.append, interval_s=0.01)


@dataclass
class Observed:
    """What happened, and a way to wait for it."""

    events: list[ChildEvent] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    all_ready: asyncio.Event = field(default_factory=asyncio.Event)
    tell: Callable[[ChildEvent], None] | None = None
    """Somebody else to be told."""

    def __call__(self, event: ChildEvent) -> None:
        self.events.append(event)
        if self.tell:
            self.tell(event)
        self.changed.set()

    def of(self, name: str, state: ChildState) -> list[ChildEvent]:
        return [event for event in self.events if event.name == name and event.state is state]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


@dataclass
class Running:
    """A supervisor at work."""

    supervisor: Supervisor
    observed: Observed
    task: asyncio.Task[None]
    logs: Path
    disk: FakeDisk

    async def stopped(self) -> None:
        self.supervisor.request_stop()
        async with asyncio.timeout(WAIT_S):
            await self.task


def spec(name: str, script: str, *, port: int = 1, start: int = 1, stop: int = 1, grace_s: float = 10.0) -> ChildSpec:
    return ChildSpec(
        name=name,
        command=[sys.executable, "-I", "-S", "-c", script],
        environment=dict(os.environ),
        probe=Probe(ProbeKind.HTTP, "127.0.0.1", port),
        start_stage=start,
        stop_stage=stop,
        stop_grace_s=grace_s,
    )


async def no_checks(stage: int) -> None:
    """Nothing is looked at between the stages."""


Supervise = Callable[..., contextlib.AbstractAsyncContextManager[Running]]


@pytest.fixture
def probe() -> FakeProbe:
    return FakeProbe()


@pytest.fixture
def supervise(tmp_path: Path, probe: FakeProbe) -> Supervise:
    @asynccontextmanager
    async def run(
        specs: Sequence[ChildSpec], on_stage_ready: Callable[[int], Awaitable[None]] = no_checks
    ) -> AsyncIterator[Running]:
        observed = Observed()
        disk = FakeDisk(tmp_path)
        supervisor = Supervisor(
            specs,
            POLICY,
            probe=probe,
            open_log=lambda name: JsonLinesLog(tmp_path / f"{name}.log", report_failure=disk.report),
            announce=observed,
            on_all_ready=observed.all_ready.set,
            disk=disk,
            on_stage_ready=on_stage_ready,
            on_stage_stopping=no_checks,
        )
        task = asyncio.create_task(supervisor.run())
        try:
            yield Running(supervisor, observed, task, tmp_path, disk)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return run
