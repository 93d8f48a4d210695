"""What the parsing child gives up before it opens a file from outside: memory, processor time, files, the network, its place in the
queue for the processor. A parser that a hostile file has driven mad, or taken over, can then do little but die."""

import contextlib
import ctypes
import math
import os
import resource
import signal
import sys

_OPEN_FILES = 256
_FILE_BYTES = 64 * 1024 * 1024
"""Largest file that a library may write in passing; we write none."""
_NICENESS = 5
"""Parsing runs ahead of the embedder on the same cores and must not slow it down."""
_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def confine(memory_limit_bytes: int) -> None:
    """Limits this process for the rest of its life. To be called before the first thread starts."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_limit_bytes, memory_limit_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold the document
    for kind, limit in ((resource.RLIMIT_NOFILE, _OPEN_FILES), (resource.RLIMIT_FSIZE, _FILE_BYTES)):
        _, hard = resource.getrlimit(kind)
        bounded = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (bounded, bounded))
    os.nice(_NICENESS)
    if sys.platform == "linux":
        _leave_network()
        _die_with_parent()


def allow_processor_time(limit_s: float) -> None:
    """From now on this process may compute for `limit_s` seconds; then the kernel ends it with SIGXCPU. Unlike the time limit of
    whoever waits for it, this one holds when nobody waits any more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = math.ceil(used.ru_utime + used.ru_stime + limit_s)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _leave_network() -> None:
    """Moves to a network of its own, which has no way out. Where that is not permitted (many containers), the network policy of
    the deployment has to do."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).unshare(_CLONE_NEWUSER | _CLONE_NEWNET)


def _die_with_parent() -> None:
    """A worker that is killed takes its child with it, also out of the middle of a file."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
