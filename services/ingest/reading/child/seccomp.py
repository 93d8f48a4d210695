"""Which system calls a parsing child may make: a list of what reading a file takes, everything else is refused by the kernel
(seccomp with a filter in classic BPF, Linux `Documentation/userspace-api/seccomp_filter.rst`).

There is no well-kept package for it: those on PyPI need the system's libseccomp, which slim images lack. So the filter is made
here, for the two architectures that Groundwork runs on. What it leaves out: sockets, starting programs and processes, opening for
writing, changing files or folders, signals to others, ptrace and its kin, namespaces, io_uring, bpf, keys, mounts."""

import ctypes
import errno
import platform
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.ingest.reading.child.kernel import PR_SET_SECCOMP, checked, prctl
from services.ingest.reading.child.syscalls import ARCHITECTURES, FIRST_UNKNOWN, Architecture

_SECCOMP_MODE_FILTER = 2
# BPF_LD|W|ABS, BPF_JMP|JEQ|K, |JSET|K, |JGE|K, BPF_RET|K of linux/bpf_common.h.
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
# In struct seccomp_data. Little-endian: the low half of an argument comes first.
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

_ALWAYS = re.findall(
    r"\w+",
    "read readv pread64 write writev lseek close close_range fstat newfstatat statx stat lstat access faccessat "
    "faccessat2 readlink readlinkat getcwd getdents64 statfs fstatfs fadvise64 dup dup2 dup3 recvmsg poll ppoll select "
    "pselect6 mmap munmap mprotect mremap brk madvise mincore membarrier futex set_robust_list get_robust_list "
    "set_tid_address rseq sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_get_priority_max "
    "sched_get_priority_min getpriority nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times "
    "getrusage getrandom getpid gettid getppid getuid geteuid getgid getegid getgroups uname sysinfo getcpu getrlimit "
    "setrlimit rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending sigaltstack restart_syscall exit exit_group",
)
_ABSENT = ("clone3", "openat2")
"""Answered as by a kernel that has not got them: the C library then takes the older call, whose arguments a filter can see."""

_WRITING = 0o3 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC
_NAMESPACES = 0x7E020000  # all CLONE_NEW*
_CLONE_THREAD = 0x10000
_FCNTL = (0, 1, 2, 3, 4, 1030, 1034)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GET_SEALS
_IOCTL = (0x5401, 0x5413, 0x5450, 0x5451, 0x541B)  # TCGETS, TIOCGWINSZ, FIONCLEX, FIOCLEX, FIONREAD
_PRCTL = (15, 16, 23, 0x53564D41)  # PR_SET_NAME, PR_GET_NAME, PR_CAPBSET_READ, PR_SET_VMA (names of memory areas)


@dataclass(frozen=True)
class _If:
    """A system call that is allowed for some values of one argument."""

    call: str
    argument: int
    is_one_of: Sequence[int] = ()
    has_none_of: int = 0
    has_all_of: int = 0
    """A single bit."""


def architecture() -> Architecture | None:
    """That of this process, if there is a filter for it."""
    return ARCHITECTURES.get(platform.machine()) if struct.calcsize("P") == 8 else None


def refuse_other_calls(pid: int) -> None:
    """Installs the filter in this thread and all that it starts; `pid` is this process, the only one it may signal. Needs
    no_new_privs. Raises OSError where the kernel has no seccomp."""
    found = architecture()
    if found is None:
        raise OSError(errno.ENOSYS, f"no filter for {platform.machine()}")
    code = ctypes.create_string_buffer(b"".join(program(found, pid)))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(code)))
    checked(prctl(PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(header)))


def program(target: Architecture, pid: int) -> Iterator[bytes]:
    """The instructions of the filter, 8 bytes each."""
    yield _step(_LOAD, _ARCHITECTURE_AT)
    yield _step(_EQUAL, target.audit_id, 1, 0)
    yield _step(_RETURN, _KILL)
    yield _step(_LOAD, _NUMBER_AT)
    yield from _returns(_AT_LEAST, FIRST_UNKNOWN, _REFUSE | errno.ENOSYS)  # newer than this list, and x32's on x86_64
    for name in _known(target, _ABSENT):
        yield from _returns(_EQUAL, target.numbers[name], _REFUSE | errno.ENOSYS)
    for name in _known(target, _ALWAYS):
        yield from _returns(_EQUAL, target.numbers[name], _ALLOW)
    for rule in _conditions(pid):
        if rule.call in target.numbers:
            body = list(_condition(rule))
            yield _step(_EQUAL, target.numbers[rule.call], 0, len(body))
            yield from body
    yield _step(_RETURN, _REFUSE | errno.EPERM)


def _conditions(pid: int) -> Iterator[_If]:
    yield _If("openat", 2, has_none_of=_WRITING)
    yield _If("open", 1, has_none_of=_WRITING)
    yield _If("fcntl", 1, is_one_of=_FCNTL)
    yield _If("ioctl", 1, is_one_of=_IOCTL)
    yield _If("prctl", 0, is_one_of=_PRCTL)
    yield _If("clone", 0, has_none_of=_NAMESPACES, has_all_of=_CLONE_THREAD)  # threads, no processes
    for call in ("kill", "tgkill"):  # abort() signals its own process
        yield _If(call, 0, is_one_of=(pid,))
    for call in ("prlimit64", "sched_setaffinity"):
        yield _If(call, 0, is_one_of=(0, pid))


def _condition(rule: _If) -> Iterator[bytes]:
    """Ends the filter either way: a refusal is EPERM."""
    yield _step(_LOAD, _ARGUMENTS_AT + 8 * rule.argument)
    for value in rule.is_one_of:
        yield from _returns(_EQUAL, value, _ALLOW)
    if rule.is_one_of:
        yield _step(_RETURN, _REFUSE | errno.EPERM)
        return
    yield from _returns(_ANY_BIT, rule.has_none_of, _REFUSE | errno.EPERM)
    if rule.has_all_of:
        yield _step(_ANY_BIT, rule.has_all_of, 1, 0)
        yield _step(_RETURN, _REFUSE | errno.EPERM)
    yield _step(_RETURN, _ALLOW)


def _known(target: Architecture, names: Sequence[str]) -> Iterator[str]:
    return (name for name in names if name in target.numbers)


def _returns(test: int, value: int, result: int) -> Iterator[bytes]:
    yield _step(test, value, 0, 1)
    yield _step(_RETURN, result)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value & 0xFFFFFFFF)
