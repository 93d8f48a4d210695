"""Cold start and resident memory: `groundwork up` on an empty data directory until /readyz answers 200, then what it holds."""

import time

import psutil

from bench.report import Figure, Part
from evals.samples import Samples
from evals.system import RunningSystem, running_system
from evals.tables import Table

STARTS = 3
SETTLE_S = 3.0
START_TARGET_S = 10.0
RESIDENT_TARGET_MIB = 2048.0


def measure() -> Part:
    """Starts three times; the memory is that of the last instance, three seconds after it was ready."""
    ready_s: list[float] = []
    for number in range(STARTS):
        with running_system() as system:
            ready_s.append(system.ready_s)
            if number == STARTS - 1:
                time.sleep(SETTLE_S)
                memory = resident_memory(system)
    starts = Samples.of(ready_s)
    resident_mib = sum(resident for _, resident, _ in memory)
    pss_mib = sum(pss or 0.0 for _, _, pss in memory)
    return Part(
        title="Cold start and resident memory",
        about=(
            f"`groundwork up` on an empty data directory, {STARTS} times; until `/readyz` answers 200. The files were in the page "
            "cache. RSS counts libraries that processes share once in each; PSS (Linux) divides them among those who share them."
        ),
        figures=(
            Figure(
                "cold start to ready, s",
                starts.spread(),
                f"< {START_TARGET_S:.0f}",
                starts.median < START_TARGET_S,
            ),
            Figure(
                "resident memory, empty store, all processes, MiB",
                f"RSS {resident_mib:.0f}, PSS {_mib(pss_mib or None)}",
                f"RSS < {RESIDENT_TARGET_MIB:.0f}",
                resident_mib < RESIDENT_TARGET_MIB,
            ),
        ),
        tables=(memory_table(memory),),
    )


def resident_memory(system: RunningSystem) -> list[tuple[str, float, float | None]]:
    """(process, RSS, PSS) in MiB; PSS is None where the operating system does not tell it."""
    rows: list[tuple[str, float, float | None]] = []
    for name, process in system.processes():
        try:
            pss = getattr(process.memory_full_info(), "pss", None)
        except psutil.AccessDenied:
            pss = None
        rows.append((name, process.memory_info().rss / 2**20, None if pss is None else pss / 2**20))
    return rows


def memory_table(memory: list[tuple[str, float, float | None]]) -> Table:
    """One row a process, the largest first."""
    ordered = sorted(memory, key=lambda row: -row[1])
    return Table(
        ("process", "RSS, MiB", "PSS, MiB"), [(name, f"{resident:.0f}", _mib(pss)) for name, resident, pss in ordered]
    )


def _mib(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f}"
