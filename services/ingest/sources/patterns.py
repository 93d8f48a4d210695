"""Selects the files of a source by patterns of names."""

from collections.abc import Callable
from fnmatch import fnmatchcase


def matcher(patterns: str) -> Callable[[str], bool]:
    """Says of a path whether its last part matches one of the patterns, with commas between them. Without a pattern all match."""
    wanted = [part.strip().lower() for part in patterns.split(",") if part.strip()]

    def is_wanted(path: str) -> bool:
        name = path.rpartition("/")[2].lower()
        return not wanted or any(fnmatchcase(name, pattern) for pattern in wanted)

    return is_wanted
