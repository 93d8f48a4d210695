"""Names of files and folders at a source: which are selected, and how they become parts of a document's name."""

from collections.abc import Callable
from fnmatch import fnmatchcase


def matcher(patterns: str) -> Callable[[str], bool]:
    """Says of a path whether its last part matches one of the patterns, with commas between them. Without a pattern all match."""
    wanted = [part.strip().lower() for part in patterns.split(",") if part.strip()]

    def is_wanted(path: str) -> bool:
        name = path.rpartition("/")[2].lower()
        return not wanted or any(fnmatchcase(name, pattern) for pattern in wanted)

    return is_wanted


def path_part(name: str) -> str:
    """The name without what a part of a path cannot hold: slashes, invisible characters and line breaks become single spaces."""
    printable = "".join(char if char.isprintable() and char not in "/\\" else " " for char in name)
    return " ".join(printable.split())
