"""The supervisor, with real processes that are tiny."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from services.standalone.errors import ChildKeepsCrashing, DataDamaged, PortLost, SettingsRefused, StartLimitReached
from services.standalone.supervising.models import ChildState, StartLimits
from tests.unit.standalone.conftest import (
    DIES_SAYING,
    ENDS_WHEN_TOLD,
    IGNORES_SIGTERM,
    SLEEPER,
    WAIT_S,
    FakeProbe,
    Supervise,
    spec,
)


async def test_children_of_one_stage_start_together_and_the_next_stage_waits_for_them(
    supervise: Supervise, probe: FakeProbe
) -> None:
    probe.never = {7}
    async with supervise([spec("first", SLEEPER, port=7, start=0), spec("second", SLEEPER)]) as running:
        await running.observed.until(lambda: running.observed.of("first", ChildState.STARTING))
        assert not running.observed.of("second", ChildState.STARTING)
        probe.never = set()
        async with asyncio.timeout(WAIT_S):
            await running.observed.all_ready.wait()
        await running.stopped()


@pytest.mark.parametrize("turns", range(1, 9))
async def test_a_stop_while_a_child_is_being_spawned_reaches_it(supervise: Supervise, turns: int) -> None:
    async with supervise([spec("one", SLEEPER, grace_s=WAIT_S)]) as running:
        for _ in range(turns):  # of the event loop: somewhere among them the process exists and nobody holds it yet
            await asyncio.sleep(0)
        running.supervisor.request_stop()
        async with asyncio.timeout(WAIT_S / 2):
            await running.task
        assert not running.observed.of("one", ChildState.KILLED)


async def test_a_child_that_dies_is_started_again_and_its_last_words_are_told(supervise: Supervise) -> None:
    async with supervise([spec("one", SLEEPER)]) as running:
        await running.observed.until(lambda: running.observed.of("one", ChildState.READY))
        first = running.observed.of("one", ChildState.READY)[0].pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await running.observed.until(lambda: len(running.observed.of("one", ChildState.READY)) == 2)
        died = running.observed.of("one", ChildState.DIED)[0]
        again = running.observed.of("one", ChildState.READY)[1]
        assert (died.exit_code, died.retry_in_s) == (-signal.SIGKILL, 0.05)
        assert (again.restarts, again.pid != first) == (1, True)
        await running.stopped()


async def test_a_child_that_ends_in_good_order_after_it_served_is_started_again_at_once(
    supervise: Supervise, probe: FakeProbe, tmp_path: Path
) -> None:
    probe.when_said = {7: tmp_path / "one.log"}
    async with supervise([spec("one", ENDS_WHEN_TOLD, port=7)]) as running:
        observed = running.observed
        for restarts in range(5):  # a crash each would have been given up, and the backoff grown
            await observed.until(lambda restarts=restarts: len(observed.of("one", ChildState.READY)) == restarts + 1)  # type: ignore[misc]
            pid = observed.of("one", ChildState.READY)[-1].pid
            assert pid
            (tmp_path / "one.log").write_text("")
            os.kill(pid, signal.SIGTERM)
        await observed.until(lambda: len(observed.of("one", ChildState.READY)) == 6)
        assert [event.restarts for event in observed.of("one", ChildState.ENDED)] == [1, 2, 3, 4, 5]
        assert not observed.of("one", ChildState.DIED)
        await running.stopped()


async def test_a_child_that_ends_before_it_served_counts_as_dead(supervise: Supervise, probe: FakeProbe) -> None:
    probe.never = {7}
    async with supervise([spec("one", "pass", port=7)]) as running:
        with pytest.raises(ChildKeepsCrashing, match=r"one died 3 times"):
            await asyncio.wait_for(running.task, WAIT_S)


async def test_a_child_whose_port_another_program_has_taken_ends_the_start_at_once(
    supervise: Supervise, probe: FakeProbe
) -> None:
    probe.never = {7}
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = replace(spec("one", "import sys; sys.exit(1)", port=7), ports=(other.getsockname()[1],))
        async with supervise([taken]) as running:
            with pytest.raises(PortLost, match="another program took port"):
                await asyncio.wait_for(running.task, WAIT_S)
            assert len(running.observed.of("one", ChildState.STARTING)) == 1


async def test_an_open_file_is_handed_to_the_child_that_inherits_it_alone(supervise: Supervise, tmp_path: Path) -> None:
    looks = "import os, sys; open(sys.argv[1], 'w').write(str(os.path.exists(f'/dev/fd/{sys.argv[2]}'))); " + SLEEPER
    with socket.socket() as door:
        number = door.fileno()
        specs = [
            replace(each, command=[*each.command, str(tmp_path / each.name), str(number)])
            for each in (replace(spec("heir", looks), inherited_fds=(number,)), spec("other", looks))
        ]
        async with supervise(specs) as running:
            async with asyncio.timeout(WAIT_S):
                while not all(
                    (tmp_path / name).exists() and (tmp_path / name).read_text() for name in ("heir", "other")
                ):
                    await asyncio.sleep(0.02)  # a file has no event to wait on
            await running.stopped()
    assert [(tmp_path / name).read_text() for name in ("heir", "other")] == ["True", "False"]


async def test_a_child_that_keeps_dying_before_it_is_ready_stops_everything_and_says_why(
    supervise: Supervise, probe: FakeProbe
) -> None:
    probe.never = {7}
    script = DIES_SAYING.format("index damaged: remove data/retriever\n")
    async with supervise([spec("healthy", SLEEPER), spec("broken", script, port=7)]) as running:
        with pytest.raises(ChildKeepsCrashing, match=r"broken died 3 times .*exit code 7.*\n.*index damaged"):
            await asyncio.wait_for(running.task, WAIT_S)
        died = running.observed.of("broken", ChildState.DIED)
        assert [event.retry_in_s for event in died] == [0.05, 0.1, None]
        assert died[0].last_lines == ("index damaged: remove data/retriever",)
        assert running.observed.of("healthy", ChildState.STOPPED)


async def test_children_that_refuse_their_settings_are_not_started_again_and_the_reason_is_told_once(
    supervise: Supervise, probe: FakeProbe
) -> None:
    probe.never = {7}
    line = "GROUNDWORK_LOG_LEVEL=chatty is not valid: it must be one of DEBUG, INFO"
    script = f"import sys; sys.stderr.write({line + chr(10)!r}); sys.exit(78)"
    specs = [spec("healthy", SLEEPER), spec("one", script, port=7), spec("two", script, port=7)]
    async with supervise(specs) as running:
        with pytest.raises(SettingsRefused) as caught:
            await asyncio.wait_for(running.task, WAIT_S)
        assert (str(caught.value), caught.value.exit_code) == (line, 2)
        assert all(event.restarts == 0 and not event.last_lines for event in running.observed.events)
        assert running.observed.of("healthy", ChildState.STOPPED)


async def test_a_stop_during_a_check_between_stages_ends_it_even_if_it_forgets_the_first_cancellation(
    supervise: Supervise,
) -> None:
    checking, ended = asyncio.Event(), asyncio.Event()

    async def check(stage: int) -> None:
        checking.set()
        with contextlib.suppress(asyncio.CancelledError):  # as asyncio.wait_for does before Python 3.12, now and then
            await asyncio.Event().wait()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with supervise([spec("one", SLEEPER)], check) as running:
        async with asyncio.timeout(WAIT_S):
            await checking.wait()
        await running.stopped()
        assert ended.is_set()
        assert not running.observed.all_ready.is_set()


async def test_a_child_is_restarted_with_something_done_while_it_is_away(supervise: Supervise) -> None:
    async with supervise([spec("one", SLEEPER)]) as running:
        observed = running.observed
        async with asyncio.timeout(WAIT_S):
            await observed.all_ready.wait()
        first = observed.of("one", ChildState.READY)[0].pid
        assert first
        seen: list[bool] = []
        async with asyncio.timeout(WAIT_S):
            await running.supervisor.restart("one", lambda: seen.append(psutil.pid_exists(first)))
        assert seen == [False]
        assert observed.of("one", ChildState.READY)[1].pid != first
        assert not observed.of("one", ChildState.DIED)
        await running.stopped()


GROWS = """
import signal
print('recovering', flush=True)
taken = bytearray(96 * 1024 * 1024)
taken[::4096] = b'x' * len(taken[::4096])
signal.pause()
"""


@dataclass(frozen=True)
class Stuck:
    """A program that does not become ready, and what it is ended with."""

    script: str
    limits: StartLimits
    message: str


@pytest.mark.parametrize(
    "case",
    [
        Stuck(
            SLEEPER, StartLimits(0.0, 2**40, "Look at its data"), r"nats was not ready within 0 s.\nLook at its data"
        ),
        Stuck(
            GROWS,
            StartLimits(WAIT_S, 64 * 1024 * 1024, "Look at its data"),
            r"nats took \d+ MB of memory without becoming ready; 64 MB are allowed"
            r". It last said:\n    recovering\nLook at its data",
        ),
    ],
    ids=["time", "memory"],
)
async def test_a_start_that_takes_too_much_ends_with_the_reason_and_what_to_do(
    supervise: Supervise, probe: FakeProbe, case: Stuck
) -> None:
    probe.never = {9}
    store = replace(spec("nats", case.script, port=9, start=0), start_limits=case.limits)
    async with supervise([store, spec("service", SLEEPER)]) as running:
        with pytest.raises(StartLimitReached, match=case.message):
            await asyncio.wait_for(running.task, WAIT_S)
        assert not running.observed.of("service", ChildState.STARTING)


async def test_damaged_data_stops_everything_before_anybody_is_let_near_it(supervise: Supervise) -> None:
    script = f"import sys; sys.stderr.write('metafile: checksums do not match\\n'); {SLEEPER}"
    damaged = replace(
        spec("nats", script, start=0), damage_pattern="checksums do not match", damage_advice="Restore it"
    )
    async with supervise([damaged, spec("service", SLEEPER)]) as running:
        with pytest.raises(DataDamaged, match=r"nats is damaged. It says:\n.*checksums do not match\nRestore it"):
            await asyncio.wait_for(running.task, WAIT_S)


async def test_stages_stop_one_after_another(supervise: Supervise) -> None:
    specs = [spec("nats", SLEEPER, stop=3), spec("orchestrator", SLEEPER, stop=2), spec("gateway", SLEEPER, stop=1)]
    async with supervise(specs) as running:
        async with asyncio.timeout(WAIT_S):
            await running.observed.all_ready.wait()
        await running.stopped()
        ends = [
            (event.name, event.state)
            for event in running.observed.events
            if event.state in {ChildState.STOPPING, ChildState.STOPPED}
        ]
        assert ends == [
            (name, state)
            for name in ("gateway", "orchestrator", "nats")
            for state in (ChildState.STOPPING, ChildState.STOPPED)
        ]


async def test_a_child_that_ignores_sigterm_is_killed_after_its_grace(
    supervise: Supervise, probe: FakeProbe, tmp_path: Path
) -> None:
    probe.when_said = {7: tmp_path / "deaf.log"}
    async with supervise([spec("deaf", IGNORES_SIGTERM, port=7, grace_s=0.3)]) as running:
        await running.observed.until(lambda: running.observed.of("deaf", ChildState.READY))
        await running.stopped()
        assert running.observed.of("deaf", ChildState.KILLED)


async def test_a_second_request_to_stop_kills_at_once(supervise: Supervise, probe: FakeProbe, tmp_path: Path) -> None:
    probe.when_said = {7: tmp_path / "deaf.log"}
    async with supervise([spec("deaf", IGNORES_SIGTERM, port=7, grace_s=600)]) as running:
        await running.observed.until(lambda: running.observed.of("deaf", ChildState.READY))
        running.supervisor.request_stop()
        await running.observed.until(lambda: running.observed.of("deaf", ChildState.STOPPING))
        await running.stopped()
        assert running.observed.of("deaf", ChildState.KILLED)


async def test_stopping_while_a_child_waits_for_its_backoff_does_not_wait_with_it(
    supervise: Supervise, probe: FakeProbe
) -> None:
    probe.never = {7}
    async with supervise([spec("broken", DIES_SAYING.format("no\n"), port=7)]) as running:
        await running.observed.until(lambda: running.observed.of("broken", ChildState.DIED))
        await running.stopped()


async def test_what_a_child_writes_is_kept_as_json_lines(supervise: Supervise, tmp_path: Path) -> None:
    script = f"print('plain words'); print('{{\"event\": \"own\"}}', flush=True); {SLEEPER}"
    async with supervise([spec("one", script)]) as running:
        log = tmp_path / "one.log"
        async with asyncio.timeout(WAIT_S):
            while log.read_text().count("\n") < 2:
                await asyncio.sleep(0.02)  # a file has no event to wait on
        await running.stopped()
    plain, own = (json.loads(line) for line in log.read_text().splitlines())
    assert (plain["line"], plain["stream"]) == ("plain words", "stdout")
    assert own == {"event": "own"}


DRIVER = """
import asyncio, sys
from pathlib import Path
from tests.unit.standalone.conftest import POLICY, SLEEPER, FakeDisk, FakeProbe, spec
from services.standalone.supervising import child as child_module
from services.standalone.storage.log_files import JsonLinesLog

async def main():
    child = child_module.Child(spec("one", SLEEPER), POLICY, probe=FakeProbe(), log=JsonLinesLog(Path(sys.argv[1])),
        announce=lambda event: print(event.state.value, event.pid, flush=True), on_hopeless=print,
        disk=FakeDisk(Path(sys.argv[1]).parent), guard=sys.argv[2])
    await child.run()

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "guard",
    [
        pytest.param(
            "prctl", marks=pytest.mark.skipif(sys.platform != "linux", reason="skipped: PR_SET_PDEATHSIG is Linux's")
        ),
        "watch",
    ],
)
def test_no_child_outlives_a_killed_supervisor(guard: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path / "log"), guard],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as driver:
        assert driver.stdout is not None
        child = None
        for line in driver.stdout:
            if line.startswith("ready"):
                child = psutil.Process(int(line.split()[1]))
                break
        assert child is not None
        _until_it_is_the_command(child)
        driver.kill()
        driver.wait()
    assert psutil.wait_procs([child], timeout=WAIT_S)[1] == []


def _until_it_is_the_command(process: psutil.Process) -> None:
    """The launcher has done its work once it has become the command."""
    while "launcher.py" in " ".join(process.cmdline()):
        process.cpu_percent(interval=0.02)
