"""Under which conditions a run measured: without them a figure means nothing."""

import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

MODEL = "embedding model and runtime"
"""Name of the line that says which model the system embeds with."""


@dataclass(frozen=True)
class Conditions:
    """The machine and the version, as they were before the first measurement."""

    measured_at: str
    processor: str
    cores: int
    memory_gib: float
    system: str
    python: str
    model: str
    commit: str
    load: str

    @classmethod
    def now(cls, model: str) -> "Conditions":
        return cls(
            measured_at=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            processor=_processor(),
            cores=psutil.Process().cpu_affinity().__len__()
            if hasattr(psutil.Process, "cpu_affinity")
            else os.cpu_count() or 1,
            memory_gib=psutil.virtual_memory().total / 2**30,
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            model=model,
            commit=_commit(),
            load=load_average(),
        )

    def lines(self) -> Iterator[tuple[str, str]]:
        yield "date", self.measured_at
        yield "processor", f"{self.processor}, {self.cores} cores, {self.memory_gib:.0f} GiB of memory, {self.system}"
        yield "load average before (1, 5, 15 minutes)", self.load
        yield "Python", self.python
        yield MODEL, self.model
        yield "commit", self.commit


def load_average() -> str:
    """Of the last 1, 5 and 15 minutes; how busy the machine was with other work."""
    return ", ".join(f"{load:.1f}" for load in psutil.getloadavg())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    known = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    # int8 matrix units decide the speed of the embedder: about a factor of three.
    extensions = [
        name for name in ("amx_int8", "avx512_vnni", "avx_vnni", "avx2") if name in known.get("flags", "").split()
    ]
    return f"{known.get('model name', platform.machine())} ({', '.join(extensions) or 'no vector extensions known'})"


def _commit() -> str:
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        return f"{commit} with uncommitted changes" if _git("status", "--porcelain", "--untracked-files=no") else commit
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()
