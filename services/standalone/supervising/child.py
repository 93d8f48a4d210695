"""One supervised process: started, watched until ready, started again when it dies, stopped with grace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time
from collections.abc import Callable

from kit.process.configuration import EX_CONFIG
from services.standalone.errors import (
    ChildKeepsCrashing,
    DataDamaged,
    PortLost,
    SettingsRefused,
    StandaloneError,
    StartLimitReached,
)
from services.standalone.free_ports import is_taken
from services.standalone.supervising.backoff import Backoff
from services.standalone.supervising.forking import ForkedProcess, ForkServer
from services.standalone.supervising.models import ChildEvent, ChildSpec, ChildState, RestartPolicy
from services.standalone.supervising.ports import Announcer, DiskWatch, HealthProbe, LogSink
from services.standalone.supervising.spawning import GUARD, spawn
from services.standalone.supervising.start_limits import limit_reached

LINE_BYTES_MAX = 64 * 1024
"""Longer lines of a child are cut into pieces, so that one of them cannot fill the memory."""
PROBE_INTERVAL_S = 0.05
PIPE_DRAIN_S = 1.0


class Child:
    """Keeps one process alive until a signal stops it."""

    def __init__(
        self,
        spec: ChildSpec,
        policy: RestartPolicy,
        *,
        probe: HealthProbe,
        log: LogSink,
        announce: Announcer,
        on_hopeless: Callable[[StandaloneError], None],
        disk: DiskWatch,
        fork_server: ForkServer | None = None,
        guard: str = GUARD,
    ) -> None:
        self.spec = spec
        self.ready = asyncio.Event()
        """Set from the first readiness on, also while a later process is starting."""
        self._policy = policy
        self._probe = probe
        self._log = log
        self._announce = announce
        self._on_hopeless = on_hopeless
        self._disk = disk
        self._fork_server = fork_server
        self._guard = guard
        self._backoff = Backoff(policy)
        self._process: asyncio.subprocess.Process | ForkedProcess | None = None
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._restarts = 0
        self._served = False
        """Whether the present process has been ready."""
        self._killed = False
        self._damage = re.compile(spec.damage_pattern) if spec.damage_pattern else None
        self._damaged = False
        self._write_failure = re.compile(spec.write_failure_pattern) if spec.write_failure_pattern else None
        self._cannot_write = asyncio.Event()
        self._between: Callable[[], None] | None = None

    async def run(self) -> None:
        """Runs the process again and again until :meth:`stop`, or until it has crashed too often before being ready.

        A process that served and ended in good order is started again at once: somebody restarts it (`groundwork restart`). A
        process that died waits for its backoff.
        """
        try:
            while not self._stopping.is_set():
                started_at = time.monotonic()
                exit_code = await self._run_once(started_at)
                if self._between:
                    await asyncio.to_thread(self._between)
                    self._between = None
                    continue
                if self._cannot_write.is_set():  # ended by us, to be started on a disk that has room
                    self._cannot_write.clear()
                    self._restarts += 1
                    await self._pause(self._backoff.after_crash(time.monotonic() - started_at))
                    continue
                uptime_s = time.monotonic() - started_at
                if exit_code == os.EX_OK and self._served and not self._stopping.is_set():
                    self._restarts += 1
                    self._tell(ChildState.ENDED, uptime_s, None)
                    continue
                if self._stopping.is_set() or not await self._retry(exit_code, uptime_s):
                    break
        finally:
            self.kill()
            self.close()
            self._ended.set()

    async def stop(self) -> None:
        """SIGTERM, then SIGKILL after the grace; returns when the process is gone."""
        stop_asked_at = time.monotonic()
        pid = self._process.pid if self._process else None
        self._stopping.set()
        if self._process is not None:
            self._tell(ChildState.STOPPING, 0.0, pid)
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()  # the process alone: how its own children end is its business
        try:
            await asyncio.wait_for(self._ended.wait(), self.spec.stop_grace_s)
        except TimeoutError:
            self.kill()
            await self._ended.wait()
        state = ChildState.KILLED if self._killed else ChildState.STOPPED
        self._tell(state, time.monotonic() - stop_asked_at, pid)

    async def restart(self, between: Callable[[], None]) -> None:
        """Ends the process, does something while there is none, and returns when the next one is ready."""
        self._between = between
        self.ready.clear()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
        await self.ready.wait()

    def kill(self) -> None:
        """SIGKILL to the process and whatever it started."""
        self._stopping.set()
        if self._process is not None:
            self._killed = self._process.returncode is None
            _kill_group(self._process.pid)

    def close(self) -> None:
        """Closes the log; for a child that was never started, too."""
        self._log.close()

    async def _run_once(self, started_at: float) -> int:
        self._log.mark_start()
        self._served = False
        try:
            process = self._process = await self._spawn()
        except OSError as error:  # no memory or no process to be had: waited for like a crash
            self._log.write("stderr", f"{self.spec.name} cannot be started: {error.strerror}".encode())
            return os.EX_OSERR
        if self._stopping.is_set():  # while it was being spawned, when there was no process yet to tell
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        self._tell(ChildState.STARTING, 0.0, process.pid)
        watches = [
            asyncio.create_task(self._watch_until_ready(started_at, process.pid)),
            asyncio.create_task(self._end_when_disk_has_room(process)),
        ]
        pumps = [
            asyncio.create_task(self._pump("stdout", process.stdout)),
            asyncio.create_task(self._pump("stderr", process.stderr)),
        ]
        try:
            exit_code = await process.wait()
            _kill_group(process.pid)  # what it started must not hold its ports or its pipes
            await asyncio.wait(pumps, timeout=PIPE_DRAIN_S)
            return exit_code
        finally:
            if process.returncode is None:
                _kill_group(process.pid)
            for task in (*watches, *pumps):
                task.cancel()
            await asyncio.gather(*watches, *pumps, return_exceptions=True)
            self._process = None

    async def _spawn(self) -> asyncio.subprocess.Process | ForkedProcess:
        if self.spec.module and self._fork_server:
            return await self._fork_server.fork(self.spec)
        return await spawn(
            self.spec.command,
            self._guard,
            env=dict(self.spec.environment),
            pass_fds=self.spec.inherited_fds,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def _retry(self, exit_code: int, uptime_s: float) -> bool:
        """Waits for the backoff; False when there is no point in another start."""
        pid = None
        last_lines = self._log.last_lines()
        if exit_code == EX_CONFIG:
            self._tell(ChildState.DIED, uptime_s, pid, exit_code=exit_code)
            said = "\n".join(dict.fromkeys(last_lines))
            self._on_hopeless(SettingsRefused(said or f"{self.spec.name} refused its settings without a word"))
            return False
        if not self.ready.is_set() and (taken := [port for port in self.spec.ports if is_taken(port)]):
            self._tell(ChildState.DIED, uptime_s, pid, exit_code=exit_code)
            self._on_hopeless(
                PortLost(f"another program took port {taken[0]} before {self.spec.name} could listen on it")
            )
            return False
        if not self.ready.is_set() and self._restarts + 1 >= self._policy.start_crashes_max:
            self._tell(ChildState.DIED, uptime_s, pid, exit_code=exit_code)
            self._on_hopeless(ChildKeepsCrashing(_describe(self.spec.name, self._restarts + 1, exit_code, last_lines)))
            return False
        delay_s = self._backoff.after_crash(uptime_s)
        self._tell(
            ChildState.DIED, uptime_s, pid, exit_code=exit_code, retry_in_s=delay_s, last_lines=tuple(last_lines)
        )
        self._restarts += 1
        await self._pause(delay_s)
        return not self._stopping.is_set()

    async def _pause(self, delay_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), delay_s)

    async def _watch_until_ready(self, started_at: float, pid: int) -> None:
        while not await self._probe.is_ready(self.spec.probe):
            limits = self.spec.start_limits
            elapsed_s = time.monotonic() - started_at
            if limits and (problem := await asyncio.to_thread(limit_reached, limits, pid, elapsed_s)):
                self._on_hopeless(StartLimitReached(_stuck(self.spec.name, problem, self._log, limits.advice)))
                return
            await asyncio.sleep(PROBE_INTERVAL_S)
        if self._damaged:
            return  # nobody may be let near it
        self.ready.set()
        self._served = True
        self._tell(ChildState.READY, time.monotonic() - started_at, pid)

    async def _end_when_disk_has_room(self, process: asyncio.subprocess.Process | ForkedProcess) -> None:
        await self._cannot_write.wait()
        await self._disk.working()
        with contextlib.suppress(ProcessLookupError):
            process.terminate()

    async def _pump(self, stream: str, reader: asyncio.StreamReader | None) -> None:
        assert reader is not None
        rest = b""
        while piece := await reader.read(LINE_BYTES_MAX):
            *lines, rest = (rest + piece).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                lines.append(rest)
                rest = b""
            for line in lines:
                self._keep(stream, line)
        if rest:
            self._keep(stream, rest)

    def _keep(self, stream: str, line: bytes) -> None:
        self._log.write(stream, line)
        if self._damage is None and self._write_failure is None:
            return
        text = line.decode("utf-8", "replace")
        if self._write_failure and self._write_failure.search(text) and not self._cannot_write.is_set():
            self._disk.report(f"{self.spec.name} says: {text}")
            self._cannot_write.set()
        if self._damage and not self._damaged and self._damage.search(text):
            self._damaged = True
            self._on_hopeless(
                DataDamaged(
                    f"The data of {self.spec.name} is damaged. It says:\n    {text}\n{self.spec.damage_advice}."
                )
            )

    def _tell(self, state: ChildState, seconds: float, pid: int | None, **details: object) -> None:
        self._announce(
            ChildEvent(self.spec.name, state, pid, seconds, restarts=self._restarts, **details)  # type: ignore[arg-type]  # the named fields of ChildEvent
        )


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS says EPERM for a group of zombies
        os.killpg(pid, signal.SIGKILL)


def _stuck(name: str, problem: str, log: LogSink, advice: str) -> str:
    said = "".join(f"\n    {line}" for line in log.last_lines()[-3:])
    return f"{name} {problem}.{f' It last said:{said}' if said else ''}\n{advice}."


def _describe(name: str, crashes: int, exit_code: int, last_lines: list[str]) -> str:
    ending = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
    said = "\n".join(f"    {line}" for line in last_lines) or "    (nothing)"
    return f"{name} died {crashes} times before it was ready ({ending}). It last said:\n{said}"
