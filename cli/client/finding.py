"""Which files a command means, and the names that their documents get."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cli.errors import UsageError


@dataclass(frozen=True)
class FoundFile:
    """A file, and its document's name: relative, with "/" on every system."""

    path: Path
    name: str
    problem: str = ""
    """Why it cannot be uploaded; empty where it can."""


@dataclass
class _Argument:
    """A file or folder as the user named it."""

    files: list[Path]
    place: Path
    """Where it lies, absolute, as named: a link keeps its own name."""
    problems: list[tuple[Path, str]] = field(default_factory=list)
    """Folders and files below it that cannot be looked at, each with the reason."""
    parents: int = 0
    """How many of its parent folders its names begin with."""

    def name(self, file: Path) -> str:
        """Of one of its files."""
        folders = self.place.parts[1:]
        top = max(0, len(folders) - 1 - self.parents)
        return "/".join(_absolute(file).parts[1:][top:])

    def grow(self) -> bool:
        """Takes one parent folder more; False when there is none."""
        grown = self.parents + 1 < len(self.place.parts[1:])
        self.parents += grown
        return grown


def find_files(paths: Sequence[Path]) -> list[FoundFile]:
    """Files as named, and all below named folders, hidden ones skipped, each once, in a stable order. Names differ: a name that is
    sent twice would make one file a new revision of the other."""
    arguments: list[_Argument] = []
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} does not exist.")
        argument = _Argument([], _absolute(path))
        for file in _below(path, argument.problems) if path.is_dir() else (path,):
            if (real := file.resolve()) not in seen:
                seen.add(real)
                argument.files.append(file)
        arguments.append(argument)
    if not seen and not any(argument.problems for argument in arguments):
        raise UsageError(f"No files in {', '.join(str(path) for path in paths)} (hidden files are skipped).")
    _tell_apart(arguments)
    return [found for argument in arguments for found in _found(argument)]


def _found(argument: _Argument) -> Iterator[FoundFile]:
    for file in argument.files:
        name = argument.name(file)
        shown = os.fsencode(name).decode("utf-8", "backslashreplace")
        not_text = "its name is not UTF-8; rename it and ingest it again"
        yield FoundFile(file, shown, "" if shown == name else not_text)
    for path, problem in argument.problems:
        yield FoundFile(path, os.fsencode(argument.name(path)).decode("utf-8", "backslashreplace"), problem)


def _tell_apart(arguments: Sequence[_Argument]) -> None:
    """Arguments that share a name take more of their parent folders, all files of a folder alike."""
    grown = True
    while grown:
        by_name: dict[str, list[_Argument]] = defaultdict(list)
        for argument in arguments:
            for file in argument.files:
                by_name[argument.name(file)].append(argument)
        clashing = {id(each): each for sharing in by_name.values() if len(sharing) > 1 for each in sharing}
        grown = (
            sum(argument.grow() for argument in clashing.values()) > 0
        )  # all of them, where any() would stop at the first


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - without "..", but with links as they are named


def _below(folder: Path, problems: list[tuple[Path, str]]) -> Iterator[Path]:
    """Files below a folder. What cannot be looked at is added to `problems`."""

    def note(error: OSError) -> None:
        problems.append((Path(os.fsdecode(error.filename or folder)), error.strerror or str(error)))

    for root, folders, names in os.walk(folder, onerror=note):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(root, name)
            try:
                if not name.startswith(".") and file.is_file():
                    yield file
            except OSError as error:
                note(error)
