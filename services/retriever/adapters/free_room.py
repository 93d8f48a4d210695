"""Room on the disk for files that are written again beside what they take the place of."""

import contextlib
import shutil
from pathlib import Path

from services.retriever.errors import IndexUnavailable

_KEPT_FREE_BYTES = 64_000_000
"""For all else that writes to the disk: with less, an index takes it for full."""


def require_room(folder: Path, sizes: int) -> None:
    """Raises IndexUnavailable where the disk has not room for the folder's files so many times."""
    needed = sizes * _used_bytes(folder) + _KEPT_FREE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise IndexUnavailable(
            f"removed texts stay in {folder}: to erase them, {needed} bytes must be free, and {free} are; make room"
        )


def _used_bytes(folder: Path) -> int:
    used = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # an engine renames and removes files in threads of its own
            used += path.lstat().st_blocks * 512
    return used
