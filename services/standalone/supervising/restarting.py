"""``groundwork restart``: every process of the running system anew, one after the other, while it works.

A process that ends on SIGTERM after it has served is started again by its supervisor at once, wherever the signal came from. This
command ends one after the other, and watches the state file for the new one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from kit.process.broken_pipe import reader_has_gone
from services.standalone.app import read_standalone_settings
from services.standalone.errors import NotRestarted, NotRunning, StandaloneError, StartRefused
from services.standalone.replicas import REPLICABLE
from services.standalone.storage.data_dir import DataDir
from services.standalone.supervising.state_file import RunningSystem, read_running

END_TIMEOUT_S = 60.0
"""What has not ended by then, or by the end of its grace if that is longer, is stuck, and killed."""
READY_TIMEOUT_S = 180.0
"""A process is ready in seconds; one that mends its indexes first takes longer."""
POLL_S = 0.05


def restart(names: Sequence[str]) -> int:
    """Restarts the named services or processes, all of the services if none is named; the exit code."""
    try:
        data_dir = DataDir(read_standalone_settings().data_dir)
        system = _running(data_dir)
        chosen = choose(system.services, names)
        for name in chosen:
            seconds = _restart_one(data_dir, name)
            _say(f"  {name:<15} restarted in {seconds:.1f} s")
    except BrokenPipeError:
        return reader_has_gone()
    except StandaloneError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted: what was stopped is started again, the rest goes on as it was.\n")
        return 130
    if len(chosen) > 1:
        _say(f"Restarted {len(chosen)} processes; each was ready before the next was stopped.")
    return 0


def choose(services: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """The processes to restart, in the order of their turns: a service before its callers. Raises StartRefused."""
    wanted = set(names or REPLICABLE)
    names_of: dict[str, set[str]] = {
        name: {name, str(each.get("service", name))} | ({f"{name}-1"} if name in REPLICABLE else set())
        for name, each in services.items()
    }
    unknown = sorted(wanted.difference(*names_of.values())) if names else []
    if "nats" in wanted:
        raise StartRefused(
            "nats is the message store of all others, which would wait for it: stop and start Groundwork"
        )
    if unknown:
        known = ", ".join(name for name in services if name != "nats")
        raise StartRefused(f"There is no {', '.join(unknown)} to restart. Name some of {known}, or nothing for all")
    return [name for name, called in names_of.items() if called & wanted]


def _restart_one(data_dir: DataDir, name: str) -> float:
    """Seconds until the next process was ready. Raises NotRestarted."""
    began_at = time.monotonic()
    _wait(lambda: _is_ready(_process(data_dir, name)), READY_TIMEOUT_S, _not_ready(data_dir, name))
    process = _process(data_dir, name)
    pid, end_timeout_s = int(process["pid"]), max(END_TIMEOUT_S, float(process.get("stop_grace_s", 0)))
    _send(pid, signal.SIGTERM, _running(data_dir))

    def has_ended() -> bool:
        return bool(_process(data_dir, name)["pid"] != pid)

    if not _holds(has_ended, end_timeout_s):
        _say(f"  {name:<15} does not end; killing it")
        _send(pid, signal.SIGKILL, _running(data_dir))
        _wait(has_ended, END_TIMEOUT_S, _not_ready(data_dir, name))
    _wait(lambda: _is_ready(_process(data_dir, name)), READY_TIMEOUT_S, _not_ready(data_dir, name))
    return time.monotonic() - began_at


def _running(data_dir: DataDir) -> RunningSystem:
    system = read_running(data_dir.state_file)
    if system is None:
        raise NotRunning(
            f"Groundwork does not run on {data_dir.path}. Start it with groundwork up, or say where it runs: GROUNDWORK_DATA_DIR=…"
        )
    return system


def _process(data_dir: DataDir, name: str) -> Mapping[str, Any]:
    return _running(data_dir).services[name]


def _is_ready(process: Mapping[str, Any]) -> bool:
    return bool(process["state"] == "ready" and process["pid"])


def _send(pid: int, number: signal.Signals, system: RunningSystem) -> None:
    """To a process of the system, and to nobody who has its process id now."""
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        # Services are children of the supervisor, or of its fork server.
        if system.supervisor_pid in (parent.pid for parent in psutil.Process(pid).parents()[:2]):
            os.kill(pid, number)


def _wait(condition: Callable[[], bool], timeout_s: float, otherwise: NotRestarted) -> None:
    if not _holds(condition, timeout_s):
        raise otherwise


def _holds(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Whether it comes true in time. Polled: the state file offers no event to wait on."""
    give_up_at = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(POLL_S)
    return True


def _not_ready(data_dir: DataDir, name: str) -> NotRestarted:
    log: Path = data_dir.logs / f"{name}.log"
    return NotRestarted(f"{name} is not ready. Its log says why: {log}. Those after it were not restarted")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
