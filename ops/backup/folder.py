"""A folder of backups, which are named by their time. The newest are kept."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ops.errors import BackupUnusable

_PATTERN = "groundwork-*Z.tar"
"""Names sort by time, so that the last one is the newest whatever happened to the files' dates."""
_UNFINISHED = _PATTERN + ".part"


def choose_new_file(folder: Path, now: datetime) -> Path:
    """Where the next backup goes. Removes what one that was cut off left: only one at a time may use the folder."""
    for leftover in folder.glob(_UNFINISHED):
        leftover.unlink(missing_ok=True)
    return folder / f"groundwork-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.tar"


def find_newest_file(folder: Path) -> Path:
    """Raises BackupUnusable when there is none."""
    found = sorted(folder.glob(_PATTERN))
    if not found:
        raise BackupUnusable(f"There is no backup in {folder}: none is named groundwork-TIME.tar")
    return found[-1]


def remove_older_files(folder: Path, keep: int) -> list[Path]:
    """Keeps the newest `keep`; what was removed. Files of other names are not touched."""
    older = sorted(folder.glob(_PATTERN))[:-keep]
    for file in older:
        file.unlink(missing_ok=True)
    return older
