"""The data directory: one instance at a time, marked with its layout's version, private to its user."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kit.private_files import write_private
from services.standalone.errors import DataDirUnusable
from services.standalone.storage.disk import FULL, refusal

LAYOUT_VERSION = "1"
VERSION_FILE = "VERSION"
LOCK_FILE = "lock"
LEDGER_FILE = "ledger.sqlite"
IGNORED_ENTRIES = frozenset({LOCK_FILE, ".gitkeep", ".gitignore", ".DS_Store", "lost+found"})
"""A folder that holds only these counts as empty and is taken into use."""


@dataclass(frozen=True)
class DataDir:
    """A data directory in use by this process."""

    path: Path

    @property
    def nats_store(self) -> Path:
        """JetStream's files."""
        return self.path / "nats"

    @property
    def keys(self) -> Path:
        """The keys of principal tokens."""
        return self.path / "secrets" / "keys"

    @property
    def ledger_file(self) -> Path:
        """What the message store is known to hold, kept outside of it."""
        return self.path / LEDGER_FILE

    @property
    def logs(self) -> Path:
        """One log file per service."""
        return self.path / "logs"

    @property
    def ports_file(self) -> Path:
        """Ports that the processes had at the last start."""
        return self.path / "ports.json"

    @property
    def state_file(self) -> Path:
        """Processes and addresses of the running instance."""
        return self.path / "state.json"

    def secret(self, name: str) -> str:
        """A random secret that stays the same for the life of the directory; the file is readable by its owner only."""
        path = self.path / "secrets" / name
        with contextlib.suppress(FileNotFoundError):
            if value := path.read_text("ascii").strip():
                return value
        value = secrets.token_hex(32)
        write_private(path, value + "\n")
        return value


@contextlib.contextmanager
def open_data_dir(path: Path) -> Iterator[DataDir]:
    """Locks the directory and checks its layout; makes it when it is new. Raises DataDirUnusable."""
    path = path.expanduser().absolute()
    lock = _lock(path)
    try:
        _check_layout(path)
        data_dir = DataDir(path)
        for folder in (data_dir.nats_store, data_dir.logs, path / "secrets"):
            folder.mkdir(mode=0o700, exist_ok=True)
        yield data_dir
    except PermissionError as error:
        raise DataDirUnusable(_no_permission(path, error)) from error
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise refusal(path, error) from error
    finally:
        os.close(lock)  # releases the lock; the file stays, since removing it would let two instances lock two files


def is_in_use(path: Path) -> bool:
    """Whether a process has locked the directory. A process id could not tell: after a restart of the machine it is another's."""
    try:
        descriptor = os.open(path / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock(path: Path) -> int:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except (FileExistsError, NotADirectoryError) as error:
        raise DataDirUnusable(
            f"The data directory {path} cannot be made: a file is in its way. Choose another with GROUNDWORK_DATA_DIR=…"
        ) from error
    except OSError as error:
        raise DataDirUnusable(_no_permission(path, error)) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise DataDirUnusable(
            f"The data directory {path} is in use by another Groundwork (process {holder or 'unknown'}). "
            "Stop that one, or choose another directory and port: GROUNDWORK_DATA_DIR=./data2 GROUNDWORK_PORT=8081"
        ) from error
    os.ftruncate(descriptor, 0)
    with contextlib.suppress(OSError):  # on a full disk the holder's name is missing; what follows says that it is full
        os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
    return descriptor


def _check_layout(path: Path) -> None:
    marker = path / VERSION_FILE
    try:
        version = marker.read_text("utf-8", "replace").strip()
    except FileNotFoundError:
        _take_into_use(path)
        return
    if version != LAYOUT_VERSION:
        raise DataDirUnusable(
            f"{marker} says layout {version[:40]!r}; this Groundwork knows layout {LAYOUT_VERSION}. The directory was made by "
            "another version, or is damaged. Use the version that made it, restore a backup, or choose another "
            "directory with GROUNDWORK_DATA_DIR=…"
        )


def _take_into_use(path: Path) -> None:
    strangers = sorted(entry.name for entry in path.iterdir() if entry.name not in IGNORED_ENTRIES)
    if strangers:
        shown = ", ".join(strangers[:5])
        raise DataDirUnusable(
            f"The data directory {path} is not empty ({shown}) and has no {VERSION_FILE} file: it is not Groundwork's, or it "
            "is damaged. Choose an empty or new one with GROUNDWORK_DATA_DIR=…, or restore a backup."
        )
    write_private(path / VERSION_FILE, LAYOUT_VERSION + "\n")


def _no_permission(path: Path, error: OSError) -> str:
    return (
        f"The data directory {path} cannot be used: {error.strerror} ({error.filename}). "
        "Give yourself the right to write there, or choose another directory with GROUNDWORK_DATA_DIR=…"
    )
