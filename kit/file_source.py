"""What is read from files while a process runs: keys and certificates. The files are looked at again, so that they change without a
restart."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import structlog

_log = structlog.get_logger()
RECHECK_AFTER_S = 1.0
"""How long a changed file may go unnoticed. Looking costs a few microseconds."""

ReadT = TypeVar("ReadT")
_Stamp = tuple[int, int, int] | None


class FileSource(Generic[ReadT]):
    """What `read` makes of the files at `paths`; any thread may ask. `setting` names them in the log.

    A change that cannot be read is logged once, and what is known stays. So do files that belong together and are replaced one
    after the other: `read` refuses what does not fit, and the next change is looked at. Raises what `read` raises at the start.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        read: Callable[[], ReadT],
        *,
        setting: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths = paths
        self._read = read
        self._setting = setting
        self._clock = clock
        self._lock = threading.Lock()
        # Before reading: what changes meanwhile is read again.
        self._stamps = self._files()
        self._looked_at = clock()
        self._known = read()

    def current(self) -> ReadT:
        """As the files were RECHECK_AFTER_S ago or later. The same object as long as nothing changed."""
        with self._lock:
            now = self._clock()
            if now - self._looked_at >= RECHECK_AFTER_S:
                self._looked_at = now
                self._look()
            return self._known

    def _look(self) -> None:
        stamps = self._files()
        if stamps == self._stamps:
            return
        self._stamps = stamps
        paths = [str(path) for path in self._paths]
        try:
            self._known = self._read()
        except (OSError, ValueError) as error:
            _log.error("files_not_read", setting=self._setting, paths=paths, error=str(error))
        else:
            _log.info("files_read", setting=self._setting, paths=paths)

    def _files(self) -> list[_Stamp]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: Path) -> _Stamp:
    """What changes with a file, also where a mounted Kubernetes secret is replaced behind a symbolic link."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)
