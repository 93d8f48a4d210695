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

import psutil
import pytest

from services.standalone.supervising import forking
from services.standalone.supervising.fork_server import SHARED_MODULES
from services.standalone.supervising.forking import ForkServer, fork_server
from services.standalone.supervising.models import ChildSpec, ChildState
from tests.unit.standalone.conftest import SLEEPER, WAIT_S, Supervise, spec

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
        assert not psutil.pid_exists(first)
        again = observed.of("one", ChildState.READY)[1].pid
        await running.stopped()
        assert again
        assert not psutil.pid_exists(again)


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
