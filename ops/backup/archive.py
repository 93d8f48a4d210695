"""The backup file: a tar of numbered parts of each stream's copy, and at its end a manifest with counts and SHA-256 sums.

A file without a manifest is one that was not finished. Parts and manifest are plain tar members, so that `tar -tf` lists a backup.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kit.access.keys import Jwk, parse_public_keys
from ops.errors import BackupUnusable

FORMAT = 1
MANIFEST = "manifest.json"
PART_BYTES = 8 * 1024 * 1024
"""A stream's copy is cut into parts of this size: its length is not known beforehand, and a tar member's must be."""


@dataclass(frozen=True)
class StreamEntry:
    """One stream in a backup."""

    name: str
    config: dict[str, Any]
    state: dict[str, Any]
    parts: int
    size_bytes: int
    sha256: str
    """Of all parts together."""

    @property
    def messages(self) -> int:
        return int(self.state["messages"])


@dataclass(frozen=True)
class FolderEntry:
    """A folder of the data directory in a backup, as a compressed tar of its files."""

    name: str
    parts: int
    size_bytes: int
    sha256: str
    """Of all parts together."""


@dataclass(frozen=True)
class Manifest:
    """What a backup holds."""

    created_at: str
    streams: tuple[StreamEntry, ...]
    format: int = FORMAT
    public_keys: tuple[Jwk, ...] = ()
    """With which the jobs in its queues are verified. Of their private halves nothing is in a backup."""
    damage: tuple[str, ...] = ()
    """What was wrong with the store when it was copied all the same, a sentence each."""
    folders: tuple[FolderEntry, ...] = ()
    """The indexes, where they were wanted: else they are made again from the files."""

    @property
    def messages(self) -> int:
        return sum(stream.messages for stream in self.streams)


class ArchiveWriter:
    """Writes a backup. Blocking: for a thread."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._digest = hashlib.sha256()
        self._parts = 0
        self._size_bytes = 0

    def add_part(self, stream: str, part: bytes) -> None:
        """The next part of a stream's copy."""
        _add(self._tar, _part_name(stream, self._parts), part)
        self._parts += 1
        self._size_bytes += len(part)
        self._digest.update(part)

    def end_stream(self, config: dict[str, Any], state: dict[str, Any]) -> StreamEntry:
        """What was written of this stream; the next part is another's."""
        entry = StreamEntry(config["name"], config, state, self._parts, self._size_bytes, self._digest.hexdigest())
        self._digest, self._parts, self._size_bytes = hashlib.sha256(), 0, 0
        return entry

    def add_folder(self, folder: Path) -> FolderEntry:
        """All files of a folder that nobody writes to. Compressed: an index keeps much room that it has not filled."""
        name = folder.name
        with (
            io.BufferedWriter(_Parts(self, name), PART_BYTES) as out,
            gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as compressed,
            tarfile.open(fileobj=compressed, mode="w|") as tar,
        ):
            tar.add(folder, arcname=".")
        entry = FolderEntry(name, self._parts, self._size_bytes, self._digest.hexdigest())
        self._digest, self._parts, self._size_bytes = hashlib.sha256(), 0, 0
        return entry

    def add_manifest(self, manifest: Manifest) -> None:
        """The last thing."""
        _add(self._tar, MANIFEST, json.dumps(asdict(manifest), indent=1).encode())


class _Parts(io.RawIOBase):
    """What is written becomes parts of a backup."""

    def __init__(self, writer: ArchiveWriter, name: str) -> None:
        self._writer = writer
        self._name = name

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._writer.add_part(self._name, bytes(data))
        return len(data)


@contextmanager
def write_archive(file: Path) -> Iterator[ArchiveWriter]:
    """A writer for `file`, which appears under its name, on disk and readable by its owner only, when the block ends well."""
    unfinished = file.with_name(file.name + ".part")
    try:
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            with tarfile.open(fileobj=out, mode="w") as tar:
                yield ArchiveWriter(tar)
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(file)
        _sync_folder(file.parent)
    finally:
        unfinished.unlink(missing_ok=True)


class Archive:
    """A backup that was verified."""

    def __init__(self, tar: tarfile.TarFile, manifest: Manifest) -> None:
        self._tar = tar
        self.manifest = manifest

    def part(self, stream: str, number: int) -> bytes:
        """One part of a stream's copy. Raises BackupUnusable."""
        return _read(self._tar, _part_name(stream, number))

    def extract_folder(self, entry: FolderEntry, to: Path) -> None:
        """Writes the files of a folder below `to`. Raises BackupUnusable."""
        parts = _PartReader(self, entry)
        try:
            with (
                io.BufferedReader(parts, PART_BYTES) as source,
                gzip.GzipFile(fileobj=source, mode="rb") as expanded,
                tarfile.open(fileobj=expanded, mode="r|") as tar,
            ):
                tar.extractall(to, filter="data")
        except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise BackupUnusable(f"The backup is damaged: its folder {entry.name} cannot be read ({error})") from error


class _PartReader(io.RawIOBase):
    """The parts of a folder, one behind the other."""

    def __init__(self, archive: Archive, entry: FolderEntry) -> None:
        self._archive = archive
        self._entry = entry
        self._number = 0
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and self._number < self._entry.parts:
            self._rest = self._archive.part(self._entry.name, self._number)
            self._number += 1
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def read_manifest(file: Path) -> Manifest:
    """What a backup says that it holds, without comparing checksums. Raises BackupUnusable."""
    with _tar(file) as tar:
        return _manifest(tar)


@contextmanager
def open_verified(file: Path) -> Iterator[Archive]:
    """Reads the whole backup once and compares every checksum before anybody may use it. Raises BackupUnusable."""
    with _tar(file) as tar:
        archive = Archive(tar, _manifest(tar))
        entries: list[StreamEntry | FolderEntry] = [*archive.manifest.streams, *archive.manifest.folders]
        for entry in entries:
            _verify(archive, entry)
        yield archive


@contextmanager
def _tar(file: Path) -> Iterator[tarfile.TarFile]:
    """Raises BackupUnusable for what is missing or no tar file."""
    try:
        with tarfile.open(file, mode="r:") as tar:
            yield tar
    except FileNotFoundError as error:
        raise BackupUnusable(f"There is no backup {file}") from error
    except tarfile.TarError as error:
        raise BackupUnusable(f"{file} is not a backup of Groundwork, or it is damaged or cut off: {error}") from error


def _manifest(tar: tarfile.TarFile) -> Manifest:
    if MANIFEST not in tar.getnames():
        raise BackupUnusable(
            f"{tar.name!s} has no manifest at its end: it was cut off, or is not a backup of Groundwork"
        )
    try:
        value = json.loads(_read(tar, MANIFEST))
        if value["format"] != FORMAT:
            raise BackupUnusable(
                f"{tar.name!s} has format {value['format']}; this Groundwork reads {FORMAT}. Use the version that made it"
            )
        streams = tuple(StreamEntry(**stream) for stream in value["streams"])
        keys = tuple(value.get("public_keys", ()))
        if keys:
            parse_public_keys(json.dumps({"keys": keys}))
        folders = tuple(FolderEntry(**folder) for folder in value.get("folders", ()))
        return Manifest(value["created_at"], streams, value["format"], keys, tuple(value.get("damage", ())), folders)
    except (ValueError, KeyError, TypeError) as error:
        raise BackupUnusable(f"{tar.name!s} has a damaged manifest") from error


def _verify(archive: Archive, stream: StreamEntry | FolderEntry) -> None:
    digest = hashlib.sha256()
    for number in range(stream.parts):
        digest.update(archive.part(stream.name, number))
    if digest.hexdigest() != stream.sha256:
        raise BackupUnusable(
            f"The backup is damaged: the bytes of {stream.name} do not have the checksum they were written with"
        )


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    try:
        member = tar.extractfile(name)
    except KeyError as error:
        raise BackupUnusable(f"The backup is damaged: {name} is missing from it") from error
    if member is None:
        raise BackupUnusable(f"The backup is damaged: {name} is not a file in it")
    return member.read()


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    member.mode = 0o600
    tar.addfile(member, io.BytesIO(data))


def _part_name(stream: str, number: int) -> str:
    return f"streams/{stream}/{number:06d}"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
