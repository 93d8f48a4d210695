"""Whether a child takes more time or memory than it may until it is ready.

A nats-server whose blocks are damaged can rebuild for ever and eat the machine's memory on the way, saying nothing: what is not
ready within bounds ends with a reason instead.
"""

from __future__ import annotations

import psutil

from services.standalone.supervising.models import StartLimits

_MEBIBYTE = 1024 * 1024


def limit_reached(limits: StartLimits, pid: int, elapsed_s: float) -> str:
    """What the process does too much of, as the rest of a sentence about it; empty when it keeps within its limits."""
    if elapsed_s > limits.timeout_s:
        return f"was not ready within {limits.timeout_s:g} s"
    used_bytes = resident_bytes(pid)
    if used_bytes > limits.memory_bytes:
        return (
            f"took {used_bytes // _MEBIBYTE} MB of memory without becoming ready; "
            f"{limits.memory_bytes // _MEBIBYTE} MB are allowed"
        )
    return ""


def resident_bytes(pid: int) -> int:
    """Memory that a process has in RAM; 0 when it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
