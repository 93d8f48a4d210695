"""Calls of the Linux kernel that Python has no names for. Each returns what the kernel returns, with -1 turned into OSError by
`checked`."""

import ctypes
import os
import struct
from collections.abc import Sequence

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
CAP_DAC_OVERRIDE = 1
_CAPABILITY_VERSION = 0x20080522  # _LINUX_CAPABILITY_VERSION_3: two sets of 32


def checked(result: int) -> int:
    """Raises OSError for the -1 of a call that failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, *arguments: int) -> int:
    """prctl(2) on the calling thread."""
    four = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    return int(_libc().prctl(ctypes.c_int(option), *four))


def system_call(number: int, *arguments: "int | bytes | None") -> int:
    """A call for which the C library has no function."""
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return int(_libc().syscall(ctypes.c_long(number), *converted))


def unshare(flags: int) -> int:
    """unshare(2): a namespace of one's own."""
    return int(_libc().unshare(ctypes.c_int(flags)))


def keep_capabilities(kept: Sequence[int]) -> None:
    """Gives up all capabilities but these, in so far as this process has them. Raises OSError."""
    libc = _libc()
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    held = ctypes.create_string_buffer(24)
    checked(int(libc.capget(header, held)))
    effective = struct.unpack("6I", held.raw)[0] & sum(1 << number for number in kept)
    checked(int(libc.capset(header, struct.pack("6I", effective, effective, 0, 0, 0, 0))))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
