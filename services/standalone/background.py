"""``groundwork up --detach`` and ``groundwork stop``: the system on one machine without a terminal of its own."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from services.standalone.app import read_standalone_settings, require_machine
from services.standalone.errors import NotRunning, StandaloneError
from services.standalone.storage.data_dir import DataDir, is_in_use, open_data_dir
from services.standalone.supervising.state_file import RunningSystem, read_running

POLL_S = 0.1
STOP_TIMEOUT_S = 120.0
"""Each stage of a stop takes its grace at most; what does not end is killed by its supervisor."""


def start(*, local_llm: bool = False, replicas: str | None = None, program: str = "groundwork") -> int:
    """Starts the system in the background and waits until it is ready; the exit code. What the start says is shown and kept."""
    given = {} if replicas is None else {"replicas": replicas}
    try:
        settings = read_standalone_settings(**given)
        require_machine(settings, local_llm=local_llm)
        with open_data_dir(settings.data_dir) as data_dir:
            said = data_dir.logs / "up.log"
    except StandaloneError as error:
        sys.stderr.write(f"\n{error}\n")
        return error.exit_code
    is_usual = settings.data_dir == type(settings).model_fields["data_dir"].default
    stop = f"{'' if is_usual else f'GROUNDWORK_DATA_DIR={shlex.quote(str(settings.data_dir))} '}{program} stop"
    command = [sys.executable, "-P", "-m", "services.standalone", f"--program={program}"]
    command += ["--llm=local"] if local_llm else []
    command += [f"--replicas={replicas}"] if replicas is not None else []
    with said.open("wb") as log:
        supervisor = subprocess.Popen(  # noqa: S603 - this program
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        exit_code = _show_until_ready(supervisor, said, data_dir)
    except KeyboardInterrupt:
        sys.stdout.write(f"\nIt goes on starting in the background. Stop it: {stop}\n")
        return 130
    if exit_code is None:
        sys.stdout.write(f"It runs in the background, process {supervisor.pid}. Stop it: {stop}\n")
    return exit_code or 0


def _show_until_ready(supervisor: subprocess.Popen[bytes], said: Path, data_dir: DataDir) -> int | None:
    """Copies what the start says. Returns its exit code, or None once the system is ready."""
    with said.open("r", encoding="utf-8", errors="replace") as lines:
        while True:
            exit_code = supervisor.poll()
            running = read_running(data_dir.state_file)
            sys.stdout.write(lines.read())
            sys.stdout.flush()
            if exit_code is not None:
                return exit_code
            if running is not None and running.supervisor_pid == supervisor.pid and running.is_ready:
                sys.stdout.write(lines.read())
                return None
            time.sleep(POLL_S)


def stop() -> int:
    """Stops the system of the data directory and waits for its end; the exit code."""
    try:
        _stop(DataDir(read_standalone_settings().data_dir))
    except StandaloneError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write("Stopped. Your data is kept.\n")
    return 0


def _stop(data_dir: DataDir) -> None:
    system = read_running(data_dir.state_file)
    if system is None:
        raise NotRunning(f"Groundwork does not run on {data_dir.path}. Say where it runs: GROUNDWORK_DATA_DIR=…")
    if not _ended(data_dir, system):
        raise StandaloneError(
            f"Groundwork (process {system.supervisor_pid}) has not ended after {STOP_TIMEOUT_S:g} s. Its logs say why: "
            f"{data_dir.logs}"
        )


def _ended(data_dir: DataDir, system: RunningSystem) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(system.supervisor_pid, signal.SIGTERM)
    give_up_at = time.monotonic() + STOP_TIMEOUT_S
    while is_in_use(data_dir.path):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(POLL_S)
    return True
