"""The system under fire: the real processes on a folder of their own, which may be killed, stopped and started again."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from evals.system import free_port, stop, system_environment, wait_until_ready

_DISK_BYTES = 1024**3
"""Of the small disk that can be filled: a campaign writes some 100 MB."""
_SETTINGS = {
    "GROUNDWORK_INGEST_LEASE_TTL_S": "3",
    "GROUNDWORK_INGEST_SWEEP_INTERVAL_S": "3",
    "GROUNDWORK_INGEST_RECONCILE_INTERVAL_S": "20",
    "GROUNDWORK_RUN_LEASE_S": "2",
    "GROUNDWORK_RESTART_BACKOFF_MAX_S": "0.5",
}
"""What waits for minutes in earnest waits for seconds here; the order of things is the same."""


@dataclass
class ChaosSystem:
    """One installation. `has_own_disk`: its data lies on a disk of its own, which may be filled."""

    folder: Path
    has_own_disk: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @classmethod
    @contextmanager
    def on_empty_folder(cls, settings: Mapping[str, str] | None = None) -> Iterator["ChaosSystem"]:
        """On a small disk where one can be made (Linux, root), and all of it gone with the block."""
        with tempfile.TemporaryDirectory(prefix="groundwork-chaos-", ignore_cleanup_errors=True) as folder:
            has_own_disk = _mounted(Path(folder))
            system = cls(Path(folder), has_own_disk, settings or {})
            try:
                yield system
            finally:
                system.kill()
                if has_own_disk:
                    subprocess.run(["umount", "--lazy", folder], check=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    @property
    def terminal(self) -> Path:
        """What the system printed, over all its starts."""
        return self.folder / "terminal.log"

    def start(self) -> None:
        """Up and ready. Raises SystemNotReady."""
        environment = {**system_environment(self.data_dir, self.port), **_SETTINGS, **self.settings}
        with self.terminal.open("ab") as out:
            self.process = subprocess.Popen(
                [Path(sys.executable).with_name("groundwork"), "up"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until_ready(self.url, self.process, self.terminal)

    def stop(self) -> None:
        """In good order."""
        if self.process is not None:
            stop(self.process)
            self.process = None

    def kill(self) -> None:
        """Every process at once, as a power cut does to them."""
        if self.process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            supervisor = psutil.Process(self.process.pid)
            for process in [*supervisor.children(recursive=True), supervisor]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self.process.wait()
        self.process = None

    def services(self) -> dict[str, Any]:
        """The processes as the supervisor sees them: name → pid, state; those that are up."""
        try:
            state: dict[str, Any] = json.loads((self.data_dir / "state.json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return {name: each for name, each in state["services"].items() if each["pid"] is not None}

    def is_ready(self) -> bool:
        """Whether every service serves."""
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5.0, trust_env=False).is_success
        except httpx.HTTPError:
            return False


def _mounted(folder: Path) -> bool:
    """Whether a small disk could be mounted on the folder."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", str(folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
