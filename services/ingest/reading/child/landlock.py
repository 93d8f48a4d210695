"""Which files a parsing child may open: those of the interpreter and its libraries, to read; none to write or run (Landlock,
Linux `Documentation/userspace-api/landlock.rst`). Inside its own domain a process can also neither trace nor signal one outside,
connect by TCP, nor reach an abstract Unix socket.

There is no well-kept package for it; it is three system calls, the same on all architectures."""

import os
import struct
from collections.abc import Iterable
from pathlib import Path

from services.ingest.reading.child.kernel import checked, system_call

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_SIGNALS_SINCE, _TCP_SINCE, _DEVICES_SINCE, _TRUNCATE_SINCE, _REFER_SINCE = 6, 4, 5, 3, 2


def version() -> int:
    """The interface that the kernel offers; 0 when it has no Landlock or has it switched off."""
    try:
        return max(0, system_call(_CREATE_RULESET, None, 0, _VERSION))
    except (OSError, AttributeError):
        return 0


def ruleset(readable: Iterable[Path]) -> int:
    """A file descriptor for `restrict`: files beneath these folders, and these files, may be read, and nothing else be done in the
    file system. Paths that do not exist are left out. Raises OSError."""
    offered = version()
    files = (1 << 13) - 1
    files |= (1 << 13) * (offered >= _REFER_SINCE) | (1 << 14) * (offered >= _TRUNCATE_SINCE)
    files |= (1 << 15) * (offered >= _DEVICES_SINCE)
    tcp = 0b11 * (offered >= _TCP_SINCE)
    scopes = 0b11 * (offered >= _SIGNALS_SINCE)
    fields = 1 + (offered >= _TCP_SINCE) + (offered >= _SIGNALS_SINCE)
    made = checked(system_call(_CREATE_RULESET, struct.pack("QQQ", files, tcp, scopes), 8 * fields, 0))
    for path in readable:
        _allow(made, path)
    return made


def restrict(made: int) -> None:
    """Puts this process into a domain of its own with the rules of `ruleset`. Needs no_new_privs. Raises OSError."""
    checked(system_call(_RESTRICT_SELF, made, 0))


def _allow(made: int, path: Path) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = _READ_FILE | _READ_DIR if path.is_dir() else _READ_FILE
        checked(system_call(_ADD_RULE, made, _PATH_BENEATH, struct.pack("=Qi", rights, handle), 0))
    finally:
        os.close(handle)
