"""`groundwork restart` against a supervisor with tiny children."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from services.standalone.storage.data_dir import open_data_dir
from services.standalone.supervising import restarting
from services.standalone.supervising.models import ChildSpec, ChildState
from services.standalone.supervising.restarting import restart
from services.standalone.supervising.state_file import StateFile
from tests.unit.standalone.conftest import (
    ENDS_WHEN_TOLD,
    IGNORES_SIGTERM,
    WAIT_S,
    FakeProbe,
    Running,
    Supervise,
    spec,
)


@pytest.fixture(autouse=True)
def _data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GROUNDWORK_DATA_DIR", str(tmp_path))
    with open_data_dir(tmp_path):
        yield


async def kept_in_a_state_file(running: Running, specs: Sequence[ChildSpec]) -> None:
    """Once all are ready: writes the state file, and keeps it true from now on."""
    async with asyncio.timeout(WAIT_S):
        await running.observed.all_ready.wait()
    state = StateFile(
        running.logs / "state.json",
        specs,
        supervisor_pid=os.getpid(),
        url="",
        nats_url="",
        data_dir=running.logs,
        report_failure=running.disk.report,
    )
    for event in running.observed.events:
        state.record(event)
    running.observed.tell = state.record


async def test_processes_are_restarted_one_after_the_other(
    supervise: Supervise, probe: FakeProbe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("tools", "tools-2", "gateway")
    specs = [spec(name, ENDS_WHEN_TOLD, port=port) for port, name in enumerate(names, start=7)]
    probe.when_said = {port: tmp_path / f"{name}.log" for port, name in enumerate(names, start=7)}
    async with supervise(specs) as running:
        await kept_in_a_state_file(running, specs)
        began = len(running.observed.events)
        assert await asyncio.to_thread(restart, ["gateway", "tools", "tools-2"]) == 0
        changes = [(event.name, event.state) for event in running.observed.events[began:]]
        assert changes == [
            (name, state) for name in names for state in (ChildState.ENDED, ChildState.STARTING, ChildState.READY)
        ]
        await running.stopped()
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in said[:3]] == [[name, "restarted"] for name in names]
    assert said[3] == "Restarted 3 processes; each was ready before the next was stopped."


async def test_a_process_that_does_not_end_is_killed(
    supervise: Supervise, probe: FakeProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarting, "END_TIMEOUT_S", 0.2)
    specs = [spec("tools", IGNORES_SIGTERM, port=7, grace_s=0.2)]
    probe.when_said = {7: tmp_path / "tools.log"}
    async with supervise(specs) as running:
        await kept_in_a_state_file(running, specs)
        assert await asyncio.to_thread(restart, []) == 0
        assert [event.exit_code for event in running.observed.of("tools", ChildState.DIED)] == [-9]


async def test_a_process_with_a_long_grace_is_given_it(
    supervise: Supervise, probe: FakeProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarting, "END_TIMEOUT_S", -1.0)
    specs = [spec("tools", ENDS_WHEN_TOLD, port=7, grace_s=WAIT_S)]
    probe.when_said = {7: tmp_path / "tools.log"}
    async with supervise(specs) as running:
        await kept_in_a_state_file(running, specs)
        assert await asyncio.to_thread(restart, []) == 0
        assert not running.observed.of("tools", ChildState.DIED)


async def test_a_process_that_does_not_come_back_is_named_and_the_others_are_left_alone(
    supervise: Supervise,
    probe: FakeProbe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(restarting, "READY_TIMEOUT_S", 0.2)
    specs = [spec("tools", ENDS_WHEN_TOLD, port=7), spec("gateway", ENDS_WHEN_TOLD, port=8)]
    probe.when_said = {7: tmp_path / "tools.log"}
    async with supervise(specs) as running:
        await kept_in_a_state_file(running, specs)
        probe.when_said, probe.never = {}, {7}
        assert await asyncio.to_thread(restart, []) == 1
        assert not running.observed.of("gateway", ChildState.ENDED)
    assert f"tools is not ready. Its log says why: {tmp_path}/logs/tools.log" in capsys.readouterr().err


def test_a_system_that_does_not_run_is_not_restarted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert restart([]) == 2
    assert f"Groundwork does not run on {tmp_path}. Start it with groundwork up" in capsys.readouterr().err
