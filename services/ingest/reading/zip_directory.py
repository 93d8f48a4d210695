"""The table of contents of a ZIP file, read without opening the archive: its kind shows in the names of its parts, and
whether it may be opened from how many there are. The layout is that of PKWARE's APPNOTE 6.3, sections 4.3.12 to 4.3.16."""

import struct
from dataclasses import dataclass
from typing import IO

_END = b"PK\x05\x06"
_END64_LOCATOR = b"PK\x06\x07"
_ENTRY = b"PK\x01\x02"
_ENTRY_BYTES, _END_BYTES, _END64_BYTES, _LOCATOR_BYTES = 46, 22, 56, 20
_MAX_END_BYTES = _LOCATOR_BYTES + _END_BYTES + 65_535  # with the longest comment
_MAX_READ_BYTES = 1024 * 1024


@dataclass(frozen=True)
class ZipDirectory:
    """What the end of the file claims about the rest."""

    entry_count: int
    size_bytes: int
    """Of the directory itself."""
    names: frozenset[str]
    """Of the entries in its first megabyte."""


def read_zip_directory(file: IO[bytes]) -> ZipDirectory | None:
    """The directory of an archive; None when its end is missing: the file was cut off."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _MAX_END_BYTES))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        return None
    end = size - len(tail) + at
    entries, directory_bytes = struct.unpack_from("<HI", tail, at + 10)
    if tail.startswith(_END64_LOCATOR, max(0, at - _LOCATOR_BYTES)):
        (end,) = struct.unpack_from("<Q", tail, at - _LOCATOR_BYTES + 8)
        file.seek(min(end, size))
        record = file.read(_END64_BYTES)
        if len(record) < _END64_BYTES:
            return None
        entries, directory_bytes = struct.unpack_from("<QQ", record, 32)
    file.seek(max(0, end - directory_bytes))
    return ZipDirectory(entries, directory_bytes, _names(file.read(min(directory_bytes, _MAX_READ_BYTES))))


def _names(directory: bytes) -> frozenset[str]:
    names = set()
    at = 0
    while directory.startswith(_ENTRY, at) and len(directory) - at >= _ENTRY_BYTES:
        name, extra, comment = struct.unpack_from("<HHH", directory, at + 28)
        names.add(directory[at + _ENTRY_BYTES : at + _ENTRY_BYTES + name].decode("utf-8", "replace"))
        at += _ENTRY_BYTES + name + extra + comment
    return frozenset(names)
