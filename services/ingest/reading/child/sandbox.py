"""What a parsing child gives up before it opens a file from outside. A parser that a hostile file has taken over can then compute
until its time is over, answer the worker with lies about that file, and die.

It keeps from the child, each where the machine has it (`parser_sandbox` in the worker's log says what is in force):

* secrets of the environment: its own is empty, and /proc of other processes is closed (Landlock; another user when started as
  root);
* files: only the interpreter, its libraries and fonts can be read, nothing be written (Landlock, seccomp, RLIMIT_FSIZE). The
  document arrives as an open file without a name; one child reads the files of one tenant;
* the network: no socket can be made (seccomp), and there is no network around it (namespace);
* other processes: none can be started, signalled or traced (seccomp, Landlock), and those of the same user are out of its reach;
* the machine: memory, processor time, threads and open files have limits.

It does not keep the child from using its share of processor and memory, from answering wrongly about the file that took it over or
later ones of the same tenant until it is replaced, nor from what a fault in the kernel or the processor gives away. Without
Landlock (Linux before 5.13, or switched off) a child of the worker's own user can read what that user can read."""

import contextlib
import math
import os
import resource
import sys
import sysconfig
import zoneinfo
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from services.ingest.reading.child import kernel, landlock, seccomp

_OPEN_FILES = 256
_THREADS = 512
_NICENESS = 5
"""Parsing runs ahead of the embedder on the same cores and must not slow it down."""
_OOM_SCORE = 500
"""A machine without memory ends a parser first: its file is read again, and nothing else is lost."""
_NOBODY = 65534
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
_FONTS = ("/usr/share/fonts", "/usr/share/X11/fonts", "/usr/local/share/fonts")  # PDFium draws pages that carry none
_LANGUAGES = (
    "/usr/share/tesseract-ocr",
    "/usr/share/tessdata",
    "/usr/local/share/tessdata",
)  # what Tesseract reads with
_TIME_ZONES = zoneinfo.TZPATH  # of the dates of calendars
_MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system", "/dev/null", "/dev/urandom")
_PACKAGES = ("services", "kit")


@dataclass(frozen=True)
class Plan:
    """What `confine` does, on this machine."""

    memory_limit_bytes: int
    user_id: int | None = None
    """The user to become; this process must have the right to."""
    ruleset: int | None = None
    """File descriptor of Landlock's rules."""
    limits_calls: bool = False
    owns_user: bool = False
    """Whether no process outside counts towards the limit of threads."""


def prepare_server() -> str:
    """For the process that starts the children, once: priority, no core dumps, no network, an end with its parent. Returns what
    became of the network."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold the document
    os.nice(_NICENESS)
    if sys.platform != "linux":
        return "not limited: this is not Linux"
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE))
    network = _leave_network()
    _die_with_parent()
    return network


def plans(memory_limit_bytes: int) -> Iterator[Plan]:
    """What could be in force here, the strictest first. Which of them works, a child has to try: a folder of root's own may hold
    the interpreter, or a container's own filter may not let system calls be limited."""
    if sys.platform != "linux":
        yield Plan(memory_limit_bytes)
        return
    is_root = os.geteuid() == 0
    rules = landlock.ruleset(_readable()) if landlock.version() else None
    strictest = Plan(
        memory_limit_bytes, None, rules, seccomp.architecture() is not None, owns_user=_is_in_own_namespace()
    )
    if is_root:
        yield replace(strictest, user_id=_NOBODY, owns_user=True)
    yield strictest
    yield replace(strictest, ruleset=None)
    yield replace(strictest, limits_calls=False)
    yield Plan(memory_limit_bytes)


def described(plan: Plan, refusals: Sequence[str]) -> dict[str, str]:
    """What is in force under a plan, in words for the log; `refusals` is what the machine said to stricter ones."""
    version = landlock.version() if sys.platform == "linux" else 0
    return {
        "user": str(plan.user_id) if plan.user_id is not None else "the worker's, without capabilities",
        "files": f"Landlock {version}: libraries to read, nothing to write"
        if plan.ruleset is not None
        else "not limited",
        "calls": "seccomp: no sockets, no programs, no writing" if plan.limits_calls else "not limited",
        "threads": str(_THREADS) if plan.owns_user else "not limited",
        "refused": "; ".join(refusals),
    }


def confine(plan: Plan) -> None:
    """Limits this process for the rest of its life. To be called before its first thread starts. Raises OSError where the plan asks
    for what this machine does not give."""
    limits = {
        resource.RLIMIT_AS: plan.memory_limit_bytes,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_FSIZE: 0,
    }
    if plan.owns_user:
        limits[resource.RLIMIT_NPROC] = _THREADS
    for kind, limit in limits.items():
        _, hard = resource.getrlimit(kind)
        bounded = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (bounded, bounded))
    if sys.platform != "linux":
        return
    _leave_user(plan.user_id)
    _die_with_parent()  # a change of user takes it back
    kernel.checked(kernel.prctl(kernel.PR_SET_DUMPABLE, 0))
    kernel.checked(kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1))
    if plan.ruleset is not None:
        landlock.restrict(plan.ruleset)
        os.close(plan.ruleset)
    if plan.limits_calls:
        seccomp.refuse_other_calls(os.getpid())


def allow_processor_time(limit_s: float) -> None:
    """From now on this process may compute for `limit_s` seconds; then the kernel ends it with SIGXCPU. Unlike the
    caller's time limit, this one holds when nobody waits any more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = math.ceil(used.ru_utime + used.ru_stime + limit_s)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def needed_files() -> tuple[str, ...]:
    """Files that a child must be able to open, one of each place it imports from."""
    return tuple(str(sys.modules[name].__file__) for name in ("os", "numpy", __name__))


def _readable() -> Iterator[Path]:
    """Never a whole checkout: its root often holds the data folder."""
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield Path(sysconfig.get_path(name))
    yield Path(sys.base_prefix, "lib")
    for package in _PACKAGES:
        yield from map(Path, sys.modules[package].__path__)
    yield from map(Path, (*_LIBRARIES, *_FONTS, *_LANGUAGES, *_TIME_ZONES, *_MACHINE))


def _leave_network() -> str:
    """Moves to a network of its own, which has no way out. Root needs no namespace of users for it, and would lose the right to
    become another user in one."""
    flags = kernel.CLONE_NEWNET if os.geteuid() == 0 else kernel.CLONE_NEWNET | kernel.CLONE_NEWUSER
    try:
        kernel.checked(kernel.unshare(flags))
    except (OSError, AttributeError) as error:
        return f"the machine's: a namespace was refused ({error})"
    return "own namespace"


def _is_in_own_namespace() -> bool:
    """Whether `_leave_network` made a namespace of users: nobody is known in it."""
    try:
        return not Path("/proc/self/uid_map").read_text()
    except OSError:
        return False


def _leave_user(user_id: int | None) -> None:
    if user_id is not None:
        os.setgroups([])
        os.setresgid(user_id, user_id, user_id)
        os.setresuid(user_id, user_id, user_id)  # gives up all capabilities, too
    else:
        # Root without this one could not read what another user installed; Landlock says what it reads all the same.
        kernel.keep_capabilities([kernel.CAP_DAC_OVERRIDE] if os.geteuid() == 0 else [])


def _die_with_parent() -> None:
    """A worker that is killed takes its parsers with it, also out of the middle of a file."""
    with contextlib.suppress(OSError, AttributeError):
        kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)
