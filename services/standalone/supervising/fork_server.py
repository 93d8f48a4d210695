"""The process that services are forked from: it has loaded what most of them use, so a start costs half the processor time.

``python -P -m services.standalone.supervising.fork_server``. Its stdin is a socket whose other end is :mod:`.forking`. Each message
there hands over open files: the first is the service to start as JSON, the others are the service's own. Answers are JSON too: the
process id and, later, how the process ended.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from setproctitle import setproctitle

SHARED_MODULES = (
    "uvloop",
    "numpy",
    "httpx",
    "kit.process.service",
    "kit.jetstream",
    "kit.language.question_language",
    "kit.stores.message_store",
    "groundwork.retriever.v1.retriever_pb2_grpc",
)
"""What most services import, directly or not. None of them may start a thread when it is imported: a fork has only one."""
DESCRIPTORS_MAX = 16
"""A service has its output and at most a few open files."""
STOP_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""The fork server goes on: services drain when they get one, and it ends with the supervisor."""
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Request:
    """A service to start."""

    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    numbers: Sequence[int]
    """What the service calls its open files: 1 and 2 are its output."""


def main() -> None:
    """Forks until the supervisor has gone. In each forked process it runs the service."""
    setproctitle("groundwork fork server")
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    for module in SHARED_MODULES:
        importlib.import_module(module)
    gc.freeze()  # a collector that looks through what is shared would copy it into each process
    forked = _serve(socket.socket(fileno=os.dup(0)))
    if forked is not None:
        _run(*forked)


def _serve(control: socket.socket) -> tuple[Request, Sequence[int]] | None:
    """Returns in each forked process with its request and open files, and in this one with None once the supervisor has gone."""
    pid = os.getpid()
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        readable, _, _ = select.select([control.fileno(), woken], [], [])
        if woken in readable:
            os.read(woken, 4096)
            _report_ended(control)
        if control.fileno() not in readable:
            continue
        message, received, _, _ = socket.recv_fds(control, 1, DESCRIPTORS_MAX)
        if not message:
            return None
        try:
            forked = os.fork()
        except OSError as error:
            _say(control, {"failed": error.errno})
        else:
            if forked == 0:
                signal.set_wakeup_fd(-1)
                os.close(woken)
                os.close(wakes)
                return _received(control, pid, received)
        for descriptor in received:
            os.close(descriptor)


def _received(control: socket.socket, parent_pid: int, descriptors: Sequence[int]) -> tuple[Request, Sequence[int]]:
    """In the forked process: ties it to its parent, says that it is there, and reads what it is to be."""
    for number in (signal.SIGCHLD, *STOP_SIGNALS):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()  # before the supervisor knows it, which ends it with its group
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it died before that
        os._exit(1)
    with control:
        _say(control, {"started": os.getpid()})
    written, *own = descriptors
    with os.fdopen(written, "rb") as file:
        return Request(**json.load(file)), own


def _report_ended(control: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:  # no child is left
            return
        if pid == 0:
            return
        _say(control, {"ended": pid, "exit_code": os.waitstatus_to_exitcode(status)})


def _say(control: socket.socket, message: Mapping[str, int | None]) -> None:
    control.send(json.dumps(message).encode())


def _run(request: Request, descriptors: Sequence[int]) -> None:
    """Gives this process what the service would find as a program of its own, and runs it as one."""
    _place(descriptors, request.numbers)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.argv = [request.module, *request.arguments]
    setproctitle(" ".join([sys.executable, "-P", "-m", *sys.argv]))
    runpy.run_module(request.module, run_name="__main__", alter_sys=True)


def _place(descriptors: Sequence[int], numbers: Sequence[int]) -> None:
    """Makes each open file the number that the service knows it by, and stdin empty."""
    above = max(*descriptors, *numbers) + 1
    # Copied out of the way first: one's number may be another's place.
    aside = [os.dup2(descriptor, above + i) for i, descriptor in enumerate(descriptors)]
    for descriptor in descriptors:
        os.close(descriptor)
    for descriptor, number in zip(aside, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


if __name__ == "__main__":
    main()
