"""A folder of the server. Only what lies in it is read: links are not followed, at no part of a path."""

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import watchfiles

from services.ingest.adapters.source_patterns import matcher
from services.ingest.errors import BadSource, FileNotTaken, SourceAway, SourceTooLarge
from services.ingest.sources.models import FailingFile, SourceFile, SourceListing
from services.ingest.sources.ports import Opening, SourceField, SourceKind, SourceReader

_PIECE_BYTES = 256 * 1024
_SETTLED_AFTER_S = 2.0
"""Two writes within one tick of a file system's clock leave the same time behind. No clock's ticks are longer."""
_TOLD_TOGETHER_MS = 500
"""Changes that follow one another are reported as one."""


def watched_folders(by_setting: Mapping[str, Path], list_file: Path) -> Callable[[str], Mapping[str, Path]]:
    """The folders that a tenant may watch, as the operator lists them: in a setting, and in a file of the data directory, into
    which `groundwork watch` writes. A key is `<tenant>/<name>`, or `*/<name>` for all tenants."""

    def of(tenant_id: str) -> Mapping[str, Path]:
        listed = {**{key: str(path) for key, path in by_setting.items()}, **read_list(list_file)}
        parts = [(key.partition("/"), path) for key, path in listed.items()]
        return {name: Path(path) for (tenant, _, name), path in parts if tenant in ("*", tenant_id)}

    return of


def read_list(list_file: Path) -> dict[str, str]:
    """Raises SourceAway."""
    try:
        listed: dict[str, str] = json.loads(list_file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SourceAway(
            f"the list of watched folders {list_file} cannot be read ({error}); mend or remove it"
        ) from error
    return listed


@dataclass
class _Found:
    files: list[SourceFile] = field(default_factory=list)
    problems: list[FailingFile] = field(default_factory=list)


class FolderReader:
    """The files below a folder, hidden ones left out."""

    def __init__(self, root: Path, only: str, max_files: int) -> None:
        self._root = root
        self._is_wanted = matcher(only)
        self._max_files = max_files

    async def list_changes(self, cursor: str) -> SourceListing:  # noqa: ARG002 - a folder tells no changes
        found = _Found()
        await asyncio.to_thread(self._walk, "", found)
        return SourceListing(found.files, problems=found.problems)

    def _walk(self, below: str, found: _Found) -> None:
        try:
            with os.scandir(self._root / below) as entries:
                for entry in entries:
                    if not entry.name.startswith("."):
                        self._note(entry, below, found)
        except OSError as error:
            if not below:
                raise SourceAway(f"the folder cannot be read ({error.strerror}); see that it is there") from error
            what = f"the folder cannot be read ({error.strerror}); give this service the right to read it"
            found.problems.append(FailingFile(below, "FOLDER_UNREADABLE", what))

    def _note(self, entry: os.DirEntry[str], below: str, found: _Found) -> None:
        key = f"{below}/{entry.name}" if below else entry.name
        if entry.is_dir(follow_symlinks=False):
            self._walk(key, found)
        elif entry.is_file(follow_symlinks=False) and self._is_wanted(key):
            if _shown(key) != key:
                found.problems.append(FailingFile(_shown(key), "NAME_NOT_UTF8", "its name is not UTF-8; rename it"))
                return
            try:
                found.files.append(_file(key, entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                return  # it has gone meanwhile
            if len(found.files) > self._max_files:
                raise SourceTooLarge(
                    f"the folder has more than {self._max_files} files; watch folders in it one by one, or raise "
                    "GROUNDWORK_SOURCE_MAX_FILES"
                )

    async def fetch(self, file: SourceFile) -> AsyncIterator[bytes]:
        handle = await asyncio.to_thread(_open_below, self._root, file.key)
        try:
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                raise FileNotTaken("NO_FILE", "it is no file any more")
            left = before.st_size
            while left > 0 and (piece := await asyncio.to_thread(_read, handle, min(left, _PIECE_BYTES))):
                left -= len(piece)
                yield piece
            if left or _version(os.fstat(handle)) != _version(before):
                raise FileNotTaken("FILE_CHANGING", "it changed while it was read; the next sync reads it again")
        finally:
            os.close(handle)


def _file(key: str, found: os.stat_result) -> SourceFile:
    settled_at = max(found.st_mtime, found.st_ctime) + _SETTLED_AFTER_S
    return SourceFile(key, _version(found), found.st_size, settled_at=settled_at)


def _version(found: os.stat_result) -> str:
    """The time of the last change by the file system's own clock too, since programs set the other one as they like."""
    return f"{found.st_mtime_ns:x}-{found.st_ctime_ns:x}-{found.st_size:x}"


def _shown(key: str) -> str:
    return os.fsencode(key).decode("utf-8", "backslashreplace")


def _open_below(root: Path, key: str) -> int:
    """Opens a file, folder by folder. None may be a link: its writers must not have other files read."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        *folders, name = key.split("/")
        for each in folders:
            inner = os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        raise FileNotTaken(
            "FILE_UNREADABLE", f"it cannot be read ({error.strerror}); give this service the right to read it"
        ) from error
    finally:
        os.close(folder)


def _read(handle: int, size_bytes: int) -> bytes:
    try:
        return os.read(handle, size_bytes)
    except OSError as error:
        raise FileNotTaken("FILE_UNREADABLE", f"it cannot be read ({error.strerror})") from error


def _root(opening: Opening) -> Path:
    """Raises BadSource, SourceAway."""
    listed = opening.surroundings.watched_folders(opening.tenant_id)
    name = opening.settings["folder"]
    if name not in listed:
        there_are = ", ".join(sorted(listed)) or "none"
        raise BadSource(
            f"the operator lists no folder {name[:80]!r} for you; there are: {there_are}. Folders are listed in "
            "GROUNDWORK_WATCHED_FOLDERS"
        )
    below = PurePosixPath(opening.settings.get("path", ""))
    if below.is_absolute() or ".." in below.parts:
        raise BadSource("path names a folder below the listed one, as 2024/reports")
    root = listed[name]
    for part in below.parts:
        root /= part
        if root.is_symlink():
            raise BadSource("path leads over a link, which is not followed")
    if not root.is_dir():
        raise SourceAway(
            f"there is no folder {name}/{below}; see that it is there, and mounted where this service runs"
        )
    return root


@asynccontextmanager
async def _open(opening: Opening) -> AsyncIterator[SourceReader]:
    root = await asyncio.to_thread(_root, opening)
    yield FolderReader(root, opening.settings.get("only", ""), opening.surroundings.max_files)


async def _watch(opening: Opening) -> AsyncIterator[None]:
    root = await asyncio.to_thread(_root, opening)
    async for _ in watchfiles.awatch(root, debounce=_TOLD_TOGETHER_MS, step=100, watch_filter=None):
        yield


def _default_name(settings: Mapping[str, str]) -> str:
    last = PurePosixPath(settings.get("path", "")).name
    return settings["folder"] if last in ("", "..") else last


KIND = SourceKind(
    name="folder",
    says="A folder of the server, as the operator lists them in GROUNDWORK_WATCHED_FOLDERS.",
    fields=(
        SourceField("folder", "its name in the operator's list", is_required=True),
        SourceField("path", "only what is below this path in it"),
        SourceField(
            "only", "only files whose names match one of these patterns, with commas between them, as *.md,*.pdf"
        ),
    ),
    open=_open,
    default_name=_default_name,
    needs_admin=True,
    watch=_watch,
)
