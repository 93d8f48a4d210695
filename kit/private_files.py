"""Files that only their owner may read."""

import os
import stat
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Replaces a file in one step, readable by its owner only. Raises OSError, having left nothing behind."""
    temporary = path.with_name(path.name + ".new")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, stat.S_IRUSR | stat.S_IWUSR)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
