"""Services that are forked from a process that has loaded what all of them use."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from services.standalone.storage.data_dir import open_data_dir
from services.standalone.supervising import forking, restarting
from services.standalone.supervising.fork_server import SHARED_MODULES
from services.standalone.supervising.forking import ForkedProcess, ForkServer, fork_server
from services.standalone.supervising.models import ChildSpec, ChildState, Probe, ProbeKind
from services.standalone.supervising.spawning import spawn
from tests.unit.standalone.conftest import ENDS_WHEN_TOLD, SLEEPER, WAIT_S, FakeProbe, Supervise, spec
from tests.unit.standalone.test_restarting import kept_in_a_state_file

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="skipped: only on Linux are services forked")
ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "gen")])}
TELLS = """
import json, os, socket, sys
print(json.dumps({
    "arguments": sys.argv[2:],
    "environment": dict(os.environ),
    "stdin": sys.stdin.read(),
    "files": sorted(os.listdir("/proc/self/fd"), key=int),
    "door": socket.socket(fileno=int(os.environ["DOOR"])).getsockname()[1],
    "session": os.getsid(0) == os.getpid(),
    "imported": "kit.process.service" in sys.modules,
}))
print("and this", file=sys.stderr)
sys.exit(7)
"""
FORK_SERVER = "services.standalone.supervising.fork_server"
DRIVER = f"""
import asyncio
from tests.unit.standalone.test_forking import ENVIRONMENT, forked
from services.standalone.supervising.forking import ForkServer

async def main():
    process = await ForkServer(ENVIRONMENT).fork(forked("one", {SLEEPER!r}))
    print(process.pid, flush=True)
    await process.wait()

asyncio.run(main())
"""


def forked(name: str, script: str, *arguments: str) -> ChildSpec:
    """A child that is forked to run a script."""
    return replace(
        spec(name, "import sys; sys.exit('it was started as a program')"),
        module="tests.unit.standalone.forked_script",
        arguments=[script, *arguments],
        environment=ENVIRONMENT,
    )


@pytest.fixture
async def server() -> AsyncIterator[ForkServer]:
    server = ForkServer(ENVIRONMENT)
    yield server
    await server.close()


async def test_forked_service_finds_what_a_program_of_its_own_would_find(server: ForkServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        environment = {"DOOR": str(door.fileno()), "SECRET": "x" * 300_000, "PYTHONPATH": ENVIRONMENT["PYTHONPATH"]}
        heir = replace(forked("heir", TELLS, "--worker"), environment=environment, inherited_fds=(door.fileno(),))
        process = await server.fork(heir)
        async with asyncio.timeout(WAIT_S):
            said = json.loads(await process.stdout.read())
            error = await process.stderr.read()
            assert await process.wait() == 7
        assert said == {
            "arguments": ["--worker"],
            "environment": environment,
            "stdin": "",
            "files": ["0", "1", "2", *sorted({"3", str(door.fileno())}, key=int)],  # 3 lists them
            "door": door.getsockname()[1],
            "session": True,
            "imported": True,
        }
        assert error == b"and this\n"


async def test_signals_that_end_services_do_not_end_the_fork_server(server: ForkServer) -> None:
    """As a service manager sends them, which ends all processes of a unit at once."""
    async with asyncio.timeout(WAIT_S):
        process = await server.fork(forked("one", "import signal; print('on', flush=True); signal.pause()"))
        await process.stdout.readline()
        parent = psutil.Process(process.pid).parent()
        assert parent
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            parent.send_signal(number)
        process.terminate()
        assert await process.wait() == -signal.SIGTERM
        interrupted = await server.fork(forked("two", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"))
        assert b"KeyboardInterrupt" in await interrupted.stderr.read()
        await interrupted.wait()


async def test_a_fork_server_that_does_not_answer_is_given_up(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "PROGRAM", (sys.executable, "-c", SLEEPER))
    monkeypatch.setattr(forking, "START_TIMEOUT_S", 0.05)
    for _ in range(2):
        with pytest.raises(OSError, match=r"nothing was forked within 0.05 s"):
            await server.fork(forked("one", SLEEPER))
    monkeypatch.undo()
    async with asyncio.timeout(WAIT_S):
        process = await server.fork(forked("one", "pass"))
        assert await process.wait() == 0


async def test_several_are_forked_at_once_and_each_is_known_by_its_own_end(server: ForkServer) -> None:
    async with asyncio.timeout(WAIT_S):
        processes = await asyncio.gather(
            *(server.fork(forked(f"{i}", f"import sys; sys.exit({i})")) for i in range(6)),
            server.fork(forked("sleeper", SLEEPER)),
        )
        *ended, sleeper = processes
        assert [await process.wait() for process in ended] == list(range(6))
        assert sleeper.returncode is None
        os.killpg(sleeper.pid, signal.SIGKILL)
        assert await sleeper.wait() == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            sleeper.terminate()


def is_running(pid: int) -> bool:
    """False for a zombie too: an orphan stays one where process 1 takes nobody's exit code, as in a container without an init."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_services_of_a_dead_fork_server_are_forked_anew_from_another(supervise: Supervise) -> None:
    async with supervise([forked("one", SLEEPER), forked("two", SLEEPER)]) as running:
        observed = running.observed
        async with asyncio.timeout(WAIT_S):
            await observed.all_ready.wait()
        first = observed.of("one", ChildState.READY)[0].pid
        assert first
        parent = psutil.Process(first).parent()
        assert parent
        assert parent.pid != os.getpid()
        parent.kill()
        await observed.until(lambda: all(len(observed.of(name, ChildState.READY)) == 2 for name in ("one", "two")))
        assert [event.exit_code for event in observed.of("one", ChildState.DIED)] == [-signal.SIGKILL]
        assert not is_running(first)
        again = observed.of("one", ChildState.READY)[1].pid
        await running.stopped()
        assert again
        assert not is_running(again)


async def test_a_service_that_cannot_be_forked_is_tried_again(
    supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork, calls = ForkServer.fork, 0

    async def refuses_once(self: ForkServer, child: ChildSpec) -> object:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError(12, "Cannot allocate memory")
        return await fork(self, child)

    monkeypatch.setattr(ForkServer, "fork", refuses_once)
    async with supervise([forked("one", SLEEPER)]) as running:
        await running.observed.until(lambda: running.observed.of("one", ChildState.READY))
        died = running.observed.of("one", ChildState.DIED)[0]
        assert died.last_lines == ("one cannot be started: Cannot allocate memory",)
        await running.stopped()


async def test_a_service_that_ends_while_it_is_forked_does_not_disturb_a_stop(
    supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = ForkServer.fork

    async def stopped_meanwhile(self: ForkServer, child: ChildSpec) -> ForkedProcess:
        process = await fork(self, child)
        running.supervisor.request_stop()
        await process.wait()
        return process

    monkeypatch.setattr(ForkServer, "fork", stopped_meanwhile)
    async with supervise([forked("one", "pass")]) as running:
        async with asyncio.timeout(WAIT_S):
            await running.task
        assert running.observed.of("one", ChildState.STOPPED)


async def test_the_end_of_a_service_that_was_never_forked_is_not_that_of_a_later_one() -> None:
    """Which may be given the same process id."""
    server = ForkServer(ENVIRONMENT)
    server._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, server._control:
        for end in (theirs, server._control):
            end.setblocking(False)
        answer = asyncio.create_task(server._answer())
        await asyncio.sleep(0)
        theirs.send(json.dumps({"ended": 5, "exit_code": 9}).encode())
        server._read()
        with pytest.raises(OSError, match="killed while it was being forked"):
            await answer
    assert server._early_ends == {}


async def test_a_fork_server_that_is_closed_while_it_starts_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = []

    async def slowly(*args: Any, **options: Any) -> asyncio.subprocess.Process:
        programs.append(await spawn(*args, **options))
        await asyncio.sleep(0.05)
        return programs[0]

    monkeypatch.setattr(forking, "spawn", slowly)
    server = ForkServer(ENVIRONMENT)
    prepared = asyncio.create_task(server.prepare())
    await asyncio.sleep(0)
    async with asyncio.timeout(WAIT_S):
        await server.close()
        await prepared
    assert programs[0].returncode is not None


async def test_a_forked_service_is_restarted(
    supervise: Supervise, probe: FakeProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWORK_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(restarting, "END_TIMEOUT_S", 5.0)
    specs = [replace(forked("tools", ENDS_WHEN_TOLD), probe=Probe(ProbeKind.HTTP, "127.0.0.1", 7))]
    probe.when_said = {7: tmp_path / "tools.log"}
    with open_data_dir(tmp_path):
        async with supervise(specs) as running:
            await kept_in_a_state_file(running, specs)
            assert await asyncio.to_thread(restarting.restart, ["tools"]) == 0
            assert running.observed.of("tools", ChildState.ENDED)
            await running.stopped()


def test_no_forked_service_outlives_a_killed_supervisor() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=ENVIRONMENT
    ) as driver:
        assert driver.stdout is not None
        child = psutil.Process(int(driver.stdout.readline()))
        driver.kill()
        driver.wait()
    assert psutil.wait_procs([child], timeout=WAIT_S)[1] == []


def test_what_services_share_starts_no_thread_when_it_is_imported() -> None:
    counts = f"import importlib, os; [importlib.import_module(name) for name in {SHARED_MODULES!r}]"
    code = f"{counts}; print(len(os.listdir('/proc/self/task')))"
    environment = {**ENVIRONMENT, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_the_fork_server_is_given_only_what_all_services_have_in_common() -> None:
    one, two = (replace(forked(name, ""), environment={"SHARED": "1", "OWN_SECRET": name}) for name in ("one", "two"))
    server = fork_server([spec("nats", ""), one, two])
    assert server is not None
    assert server._environment == {"SHARED": "1"}
    assert fork_server([spec("nats", "")]) is None
