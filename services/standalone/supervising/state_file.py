"""``state.json`` in the data directory: the running instance's processes and addresses, for tools and people.

Owner-readable only, since it holds the NATS credentials. Written at each change, removed at a clean stop; a file in a directory
that no ``supervisor_pid`` has locked is left over from a kill. On a full disk it is out of date until it can be written again:
no reason to stop anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from kit.private_files import write_private
from services.standalone.storage.data_dir import is_in_use
from services.standalone.supervising.models import ChildEvent, ChildSpec, ChildState


class StateFile:
    """Keeps the file true."""

    def __init__(
        self,
        path: Path,
        specs: Sequence[ChildSpec],
        *,
        supervisor_pid: int,
        url: str,
        nats_url: str,
        data_dir: Path,
        report_failure: Callable[[str], None],
    ) -> None:
        self._path = path
        self._report_failure = report_failure
        self._state: dict[str, object] = {
            "supervisor_pid": supervisor_pid,
            "url": url,
            "nats_url": nats_url,
            "data_dir": str(data_dir),
            "ready": False,
        }
        self._services: dict[str, dict[str, object]] = {
            spec.name: {
                "service": spec.service or spec.name,
                "address": _address(spec),
                "ops_port": _ops_port(spec),
                "pid": None,
                "state": "waiting",
                "restarts": 0,
                "stop_grace_s": spec.stop_grace_s,
            }
            for spec in specs
        }
        self.write()

    def record(self, event: ChildEvent) -> None:
        """A change in a child's life."""
        gone = event.state in {ChildState.ENDED, ChildState.DIED, ChildState.STOPPED, ChildState.KILLED}
        self._services[event.name] |= {
            "pid": None if gone else event.pid,
            "state": event.state.value,
            "restarts": event.restarts,
        }
        self.write()

    def record_ready(self) -> None:
        """Every child has been ready."""
        self._state["ready"] = True
        self.write()

    def remove(self) -> None:
        """The instance has stopped."""
        self._path.unlink(missing_ok=True)

    def write(self) -> None:
        """Writes what is known now. A failure is reported, not raised."""
        try:
            write_private(self._path, json.dumps({**self._state, "services": self._services}, indent=2) + "\n")
        except OSError as error:
            self._report_failure(f"{error.strerror} ({self._path.name})")


def _address(spec: ChildSpec) -> str:
    return spec.environment.get("GROUNDWORK_GRPC_ADDRESS") or f"{spec.probe.host}:{spec.probe.port}"


def _ops_port(spec: ChildSpec) -> int | None:
    port = spec.environment.get("GROUNDWORK_OPS_PORT")
    return int(port) if port else None


@dataclass(frozen=True)
class RunningSystem:
    """A system that runs, as its file says."""

    supervisor_pid: int
    url: str
    nats_url: str
    services: Mapping[str, Mapping[str, Any]]
    is_ready: bool = False
    """Whether all of its processes have been ready."""

    def described(self) -> str:
        """One line for an operator."""
        not_ready = [
            f"{name} ({each.get('state')})" for name, each in self.services.items() if each.get("state") != "ready"
        ]
        state = (
            f"not ready: {', '.join(not_ready)}"
            if not_ready
            else f"all of its processes ({len(self.services)}) are ready"
        )
        return f"Groundwork runs: process {self.supervisor_pid}, {self.url}; {state}."


def read_running(path: Path) -> RunningSystem | None:
    """None when nothing runs: there is no file, or it was left behind by a system that was killed."""
    try:
        state = json.loads(path.read_text("utf-8"))
        pid = int(state["supervisor_pid"])
        services, is_ready = state.get("services", {}), bool(state.get("ready"))
        found = RunningSystem(pid, str(state.get("url", "")), str(state["nats_url"]), services, is_ready)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return found if is_in_use(path.parent) and psutil.pid_exists(pid) else None
