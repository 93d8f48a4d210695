"""The system under fire: the real processes on a folder of their own, which may be killed, stopped and started again, and whose
clock may be set."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from evals.system import stop, system_environment, wait_until_ready
from kit.testing.harness import free_port

_DISK_BYTES = 1024**3
"""Of the small disk that can be filled: a campaign writes some 100 MB."""
_SETTINGS = {
    "GROUNDWORK_INGEST_LEASE_TTL_S": "3",
    "GROUNDWORK_INGEST_SWEEP_INTERVAL_S": "3",
    "GROUNDWORK_INGEST_RECONCILE_INTERVAL_S": "20",
    "GROUNDWORK_RUN_LEASE_S": "2",
    "GROUNDWORK_RESTART_BACKOFF_MAX_S": "0.5",
    "GROUNDWORK_NATS_START_TIMEOUT_S": "60",
}
"""What waits for minutes in earnest waits for seconds here; the order of things is the same."""


_FAKETIME = "libfaketimeMT.so.1"
"""Of the Debian package faketime (libfaketime): gives the time of a file to the processes that are started with it."""


@dataclass
class ChaosSystem:
    """One installation. `has_own_disk`: its data lies on a disk of its own, which may be filled."""

    folder: Path
    has_own_disk: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None
    clock_offset_s: int = 0
    clock_was_set: bool = False
    store_was_damaged: bool = False

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

    @property
    def has_own_clock(self) -> bool:
        """Whether the clock of the services can be set: where libfaketime is installed."""
        return _faketime() is not None

    def set_clock(self, offset_s: int) -> None:
        """Sets the wall clock of all services so far ahead of the true one, or behind it. Not that of the message store, a program
        that asks the kernel itself: it keeps time as one on another machine does."""
        written = self._clock_file.with_suffix(".new")
        written.write_text(f"{offset_s:+d}")
        written.replace(self._clock_file)
        self.clock_offset_s = offset_s
        self.clock_was_set |= offset_s != 0

    @property
    def _clock_file(self) -> Path:
        return self.folder / "clock"

    def _clock_environment(self) -> dict[str, str]:
        library = _faketime()
        if library is None:
            return {}
        self.set_clock(self.clock_offset_s)
        return {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock_file),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def start(self) -> None:
        """Up and ready. Raises SystemNotReady."""
        clock = self._clock_environment()
        environment = {**system_environment(self.data_dir, self.port), **clock, **_SETTINGS, **self.settings}
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

    def named_damage(self) -> Counter[str]:
        """What the system says is damaged and was not put right: how many entries, by bucket or stream."""
        named: Counter[str] = Counter()
        with contextlib.suppress(httpx.HTTPError):
            answer = httpx.get(f"{self.url}/readyz", timeout=5.0, trust_env=False).json()
            for finding in answer["damage"]:
                named[finding["where"]] += finding["count"] - finding["repaired"]
        return named

    @contextmanager
    def store_kept(self) -> Iterator[Callable[[], None]]:
        """Of a stopped system: keeps a copy of the message store for the block, which damages it, and yields what puts it back."""
        store, kept = self.data_dir / "nats", self.folder / "nats.kept"
        shutil.copytree(store, kept)
        self.store_was_damaged = True

        def put_back() -> None:
            shutil.rmtree(store)
            shutil.copytree(kept, store)

        try:
            yield put_back
        finally:
            shutil.rmtree(kept)


def _faketime() -> Path | None:
    for folder in (Path("/usr/lib"), Path("/usr/local/lib"), Path("/usr/lib64")):
        for library in sorted(folder.glob(f"**/faketime/{_FAKETIME}")):
            return library
    return None


def _mounted(folder: Path) -> bool:
    """Whether a small disk could be mounted on the folder."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", str(folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
