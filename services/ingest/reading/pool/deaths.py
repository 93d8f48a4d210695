"""Why a parsing child ended, and what that says of its file. Only a limit of its own and a crash that repeats itself are the file's
fault; the others would take the next file as well."""

import signal
from enum import Enum
from pathlib import Path

from kit.errors import Unavailable
from services.ingest.errors import DocumentRejected
from services.ingest.reading.child import wire
from services.ingest.reading.child.failures import too_large
from services.ingest.reading.pool.server import Ending

_CRASHES = {
    -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGILL, -signal.SIGFPE, -signal.SIGTRAP, -signal.SIGSYS,
}  # fmt: skip
_NEAR_LIMIT = 0.5
"""Of the address space, in memory really used. A library that gets no more aborts, or uses the null that it was given."""
_VMSTAT = Path("/proc/vmstat")


class Cause(Enum):
    """Why a child ended."""

    MEMORY_LIMIT = "memory limit of the child"
    TIME_LIMIT = "time limit of the child"
    CRASH = "crash"
    MACHINE_MEMORY = "the machine ran out of memory"
    SIGNAL = "signal from outside"

    @property
    def is_final(self) -> bool:
        """Whether another try would end likewise: it has the same limit."""
        return self in (Cause.MEMORY_LIMIT, Cause.TIME_LIMIT)


def cause_of(ending: Ending, memory_limit_bytes: int, *, machine_killed: bool) -> Cause:
    """`machine_killed`: whether the kernel ended any process for want of memory meanwhile."""
    code = ending.exit_code
    if code == -signal.SIGXCPU:
        return Cause.TIME_LIMIT
    if code == -signal.SIGKILL and machine_killed:
        return Cause.MACHINE_MEMORY
    if code is None or (code < 0 and code not in _CRASHES):
        return Cause.SIGNAL
    near_limit = ending.peak_bytes >= _NEAR_LIMIT * memory_limit_bytes
    return Cause.MEMORY_LIMIT if code == wire.OUT_OF_MEMORY or near_limit else Cause.CRASH


def machine_kills() -> int:
    """Processes that the kernel has ended for want of memory, of the machine's or of a container's, since it started."""
    try:
        lines = _VMSTAT.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def verdict(cause: Cause, name: str) -> DocumentRejected | Unavailable:
    """What is said of a file whose child ended so, and ended so again."""
    match cause:
        case Cause.MEMORY_LIMIT:
            return DocumentRejected("PARSE_TOO_LARGE", too_large(name))
        case Cause.TIME_LIMIT:
            return DocumentRejected("PARSE_TIMEOUT", f"{name} takes too long to be read; split it or simplify it")
        case Cause.CRASH:
            return DocumentRejected(
                "PARSE_CRASHED",
                f"{name} made the parser crash twice: the file is probably damaged; save it again and upload that",
            )
        case Cause.MACHINE_MEMORY:
            return Unavailable(
                f"the machine ran out of memory twice while {name} was read; give it more, or lower "
                "GROUNDWORK_PARSE_MEMORY_LIMIT_BYTES or GROUNDWORK_PARSER_PROCESSES",
                reason="PARSER_OUT_OF_MEMORY",
            )
        case Cause.SIGNAL:
            return Unavailable(f"the parser was stopped twice while it read {name}", reason="PARSER_STOPPED")
