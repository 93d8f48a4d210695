"""The disk below the data directory: noticing that it is full, saying it once, and going on when there is room again."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

from services.standalone.errors import DiskFull

ROOM_BYTES = 8 * 1024 * 1024
"""What must fit for the disk to count as usable: a block of the message store, the largest piece that is written at once."""
RECHECK_INTERVAL_S = 2.0
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_PROBE_FILE = ".room"


class Disk:
    """Code that fails to write reports it here; code that must act once writing works again is called."""

    def __init__(self, folder: Path, say: Callable[[str], None], *, interval_s: float = RECHECK_INTERVAL_S) -> None:
        self._folder = folder
        self._say = say
        self._interval_s = interval_s
        self._failed = asyncio.Event()
        self._works = asyncio.Event()
        self._works.set()
        self._when_it_works: list[Callable[[], None]] = []

    def report(self, problem: str) -> None:
        """A write failed. Said the first time only, until writing works again."""
        if self._failed.is_set():
            return
        self._works.clear()
        self._failed.set()
        self._say(
            f"  {self._folder} cannot be written: {problem}. Everything goes on as far as it can without, and entirely once "
            f"there is room: free some space on the disk of {self._folder}"
        )

    def when_it_works(self, action: Callable[[], None]) -> None:
        """Calls `action` each time that writing works again. It may report a new failure."""
        self._when_it_works.append(action)

    async def working(self) -> None:
        """Waits until writing works; at once unless a failure was reported."""
        await self._works.wait()

    async def watch(self) -> None:
        """Looks for room after each reported failure, until cancelled."""
        while True:
            await self._failed.wait()
            while not await asyncio.to_thread(has_room, self._folder):  # noqa: ASYNC110 - a disk has no event to wait on
                await asyncio.sleep(self._interval_s)
            self._failed.clear()
            self._works.set()
            for action in self._when_it_works:
                action()
            if not self._failed.is_set():
                self._say(f"  {self._folder} can be written again")


def has_room(folder: Path) -> bool:
    """Whether ROOM_BYTES can be written. Tried, not computed: quotas, reserved blocks and read-only mounts count too."""
    try:
        _try_writing(folder)
    except OSError:
        return False
    return True


def require_room(folder: Path) -> None:
    """Raises DiskFull unless a start has room to begin with."""
    try:
        _try_writing(folder)
    except OSError as error:
        raise refusal(folder, error) from error


def refusal(folder: Path, error: OSError) -> DiskFull:
    """The sentence that a start on a full disk ends with."""
    return DiskFull(
        f"The data directory {folder} cannot be written: {error.strerror}. Free some space on its disk (a start needs "
        f"{ROOM_BYTES // 1024 // 1024} MB, documents need more), or choose another with GROUNDWORK_DATA_DIR=…"
    )


def _try_writing(folder: Path) -> None:
    probe = folder / _PROBE_FILE
    descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        rest = memoryview(bytes(ROOM_BYTES))
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        probe.unlink(missing_ok=True)
