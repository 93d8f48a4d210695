"""Setting a damaged index aside: an engine begins anew in its place, and what was there can be looked at."""

import errno
import fcntl
import os
import shutil
import time
from pathlib import Path

import structlog

from services.retriever import metrics

_log = structlog.get_logger()
_MARK = ".damaged-"
_UNLOCK_WAIT_S = 2.0
"""For an attempt of ours to open the index that has just failed to let go of it."""
_LEAST_FREE_BYTES = 64_000_000
"""With less an engine may fail to open because the disk is full."""


def set_aside(folder: Path, engine: str, problem: str) -> None:
    """Moves the folder out of the way; of those that were moved before, none is kept. Says so once."""
    for older in folder.parent.glob(f"{folder.name}{_MARK}*"):
        shutil.rmtree(older, ignore_errors=True)
    aside = folder.with_name(f"{folder.name}{_MARK}{int(time.time())}")
    folder.rename(aside)
    metrics.DAMAGED.labels(engine).inc()
    _log.error("index_damaged", engine=engine, problem=problem[:500], set_aside_as=str(aside))


def is_locked(path: Path) -> bool:
    """Whether another engine, of this process or another, has locked the file or folder with flock, as these engines do."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        deadline_s = time.monotonic() + _UNLOCK_WAIT_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline_s:
                    return True
                time.sleep(0.05)
            else:
                return False
    finally:
        os.close(handle)


def environment_problem(folder: Path) -> str | None:
    """What keeps every program from using the folder: rights, too many open files, a full disk. None when it must be the files'
    content."""
    try:
        if not folder.is_dir():
            return "there is no such folder"
        if shutil.disk_usage(folder).free < _LEAST_FREE_BYTES:
            return "the disk is full"
        for path in folder.rglob("*"):
            if path.is_file():
                os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        if error.errno != errno.ENOENT:
            return str(error)
    return None
