"""Starts services by forking: the supervisor's end of :mod:`.fork_server`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from services.standalone.supervising.models import ChildSpec
from services.standalone.supervising.spawning import spawn

PROGRAM = (sys.executable, "-P", "-m", "services.standalone.supervising.fork_server")
MESSAGE_BYTES_MAX = 4096
START_TIMEOUT_S = 120.0
"""For the fork server to load its modules on a busy machine, and to fork."""


@dataclass
class ForkedProcess:
    """A forked service: as much of asyncio.subprocess.Process as the supervisor uses."""

    pid: int
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    returncode: int | None = None
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    def terminate(self) -> None:
        """Sends SIGTERM. Raises ProcessLookupError when it has ended."""
        if self.returncode is not None:
            raise ProcessLookupError(self.pid)
        os.kill(self.pid, signal.SIGTERM)

    async def wait(self) -> int:
        """Returns its exit code once it has ended; negative is the signal that ended it."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def record_end(self, exit_code: int) -> None:
        """It has ended."""
        self.returncode = exit_code
        self._ended.set()


class ForkServer:
    """Starts the fork server, and another one when it has died."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment` is what all services have in common: modules may read it when they are imported."""
        self._environment = environment
        self._one_at_a_time = asyncio.Lock()
        self._program: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._started: asyncio.Future[int] | None = None
        """The process id of the service that is being started."""
        self._processes: dict[int, ForkedProcess] = {}
        self._early_ends: dict[int, int] = {}
        """Exit codes of services that ended before :meth:`fork` had returned them."""

    async def prepare(self) -> None:
        """Starts the fork server ahead of the first service: it loads modules while others start."""
        with contextlib.suppress(OSError):  # `fork` raises it
            async with self._one_at_a_time:
                await self._connected()

    async def fork(self, spec: ChildSpec) -> ForkedProcess:
        """Starts the service. Raises OSError where no process can be had."""
        async with self._one_at_a_time:
            control = await self._connected()
            with contextlib.ExitStack() as handed_over:
                request = handed_over.enter_context(await asyncio.to_thread(_request, spec))
                stdout, stdout_writer = await _pipe()
                handed_over.callback(os.close, stdout_writer)
                stderr, stderr_writer = await _pipe()
                handed_over.callback(os.close, stderr_writer)
                descriptors = [request.fileno(), stdout_writer, stderr_writer, *spec.inherited_fds]
                socket.send_fds(control, [b"\n"], descriptors)
            process = ForkedProcess(await self._answer(), stdout, stderr)
            if (exit_code := self._early_ends.pop(process.pid, None)) is None:
                self._processes[process.pid] = process
            else:
                process.record_end(exit_code)
            return process

    async def close(self) -> None:
        """Ends the fork server and each service that is left."""
        async with self._one_at_a_time:  # it may just be starting
            self._disconnect()
            if self._program is not None:
                await self._program.wait()

    async def _connected(self) -> socket.socket:
        if self._control is not None:
            return self._control
        if self._program is not None:
            await self._program.wait()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.ExitStack() as on_failure:
            on_failure.enter_context(ours)
            self._program = await spawn(
                PROGRAM, env=dict(self._environment), stdin=theirs, stdout=asyncio.subprocess.DEVNULL
            )
            on_failure.pop_all()
        ours.setblocking(False)
        asyncio.get_running_loop().add_reader(ours, self._read)
        self._control = ours
        return ours

    async def _answer(self) -> int:
        self._started = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                return await self._started
        except TimeoutError:
            self._disconnect()
            raise OSError(errno.ETIMEDOUT, f"nothing was forked within {START_TIMEOUT_S:g} s") from None

    def _read(self) -> None:
        assert self._control is not None
        try:
            message = self._control.recv(MESSAGE_BYTES_MAX)
        except BlockingIOError:
            return
        except ConnectionError:
            message = b""
        if not message:
            self._disconnect()
            return
        match json.loads(message):
            case {"started": pid}:
                self._resolve(pid)
            case {"failed": number}:
                self._resolve(OSError(number, os.strerror(number)))
            case {"ended": pid, "exit_code": exit_code} if pid in self._processes:
                self._processes.pop(pid).record_end(exit_code)
            case {"ended": _} if self._started is not None and not self._started.done():
                self._resolve(OSError(errno.ESRCH, "it was killed while it was being forked"))
            case {"ended": pid, "exit_code": exit_code}:
                self._early_ends[pid] = exit_code

    def _disconnect(self) -> None:
        """Ends the fork server. The kernel ends each service with it."""
        if self._control is None:
            return
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()
        self._control = None
        if self._program is not None:
            with contextlib.suppress(ProcessLookupError):
                self._program.kill()
        self._resolve(OSError(errno.ECONNRESET, "the process that services are forked from has died"))
        for process in self._processes.values():
            process.record_end(-signal.SIGKILL)
        self._processes.clear()

    def _resolve(self, answer: int | OSError) -> None:
        """Answers the caller of :meth:`fork` that waits, if one does."""
        if self._started is None or self._started.done():
            return
        if isinstance(answer, OSError):
            self._started.set_exception(answer)
        else:
            self._started.set_result(answer)


def fork_server(specs: Sequence[ChildSpec]) -> ForkServer | None:
    """One for these children, where the system can: on macOS a program that forks without becoming another one may crash."""
    environments = [spec.environment.items() for spec in specs if spec.module]
    if not environments or sys.platform != "linux":
        return None
    return ForkServer(dict(set.intersection(*map(set, environments))))


def _request(spec: ChildSpec) -> BinaryIO:
    """In memory alone, since it holds secrets; in a file, since a message has a greatest length."""
    request = {
        "module": spec.module,
        "arguments": spec.arguments,
        "environment": dict(spec.environment),
        "numbers": [1, 2, *spec.inherited_fds],
    }
    file = os.fdopen(os.memfd_create("request"), "w+b")
    file.write(json.dumps(request).encode())
    file.seek(0)
    return file


async def _pipe() -> tuple[asyncio.StreamReader, int]:
    """What is written to the descriptor can be read from the stream."""
    reader, writer = os.pipe()
    stream = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reader, "rb", 0)
    )
    return stream, writer
