"""Whether the files of a tantivy index are what was written. Each ends with a checksum of itself, which tantivy (0.27) writes and
does not look at: a flipped bit makes it answer wrongly, or fail for some searches and not for others."""

import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

_META = "meta.json"
_MANAGED = ".managed.json"
_MAGIC = 1337
_TRAILER = struct.Struct("<II")
"""Length of the footer, which is JSON, and the magic number."""
_PIECE_BYTES = 1 << 20
_ATTEMPTS = 5
"""A merge removes files of segments that were in use a moment ago."""


def problem_of(folder: Path) -> str | None:
    """What is wrong with the committed files, for an operator; None when all are whole. Reads all of them."""
    for _ in range(_ATTEMPTS):
        try:
            return _problem(folder)
        except FileNotFoundError:
            continue
    return "files of its segments are missing"


def segments_with_removed(folder: Path) -> set[str]:
    """Ids of the committed segments that hold texts which were removed; none where meta.json cannot be read: it is damaged then."""
    try:
        segments: Any = json.loads((folder / _META).read_bytes())["segments"]
        return {segment["segment_id"] for segment in segments if segment["deletes"]}
    except (OSError, ValueError, TypeError, LookupError):
        return set()


def _problem(folder: Path) -> str | None:
    """Raises FileNotFoundError when a file that should be there is not."""
    if not (folder / _META).exists():
        return "meta.json is missing" if any(folder.glob("*.store")) else None
    try:
        meta: Any = json.loads((folder / _META).read_bytes())
        names = {name for segment in meta["segments"] for name in _names(segment)}
        listed = folder / _MANAGED  # the engine makes it again where it is missing
        managed = set(json.loads(listed.read_bytes())) if listed.exists() else {path.name for path in folder.iterdir()}
    except (ValueError, TypeError, LookupError) as error:
        return f"what lists its files cannot be read: {error}"
    broken = [name for name in sorted(names & managed) if not _is_whole(folder / name)]
    return f"{', '.join(broken)}: not what was written" if broken else None


def _names(segment: Any) -> list[str]:
    """Of the files that a segment may have."""
    segment_id = segment["segment_id"].replace("-", "")
    names = [f"{segment_id}.{kind}" for kind in ("idx", "pos", "term", "store", "fast", "fieldnorm")]
    return [*names, f"{segment_id}.{segment['deletes']['opstamp']}.del"] if segment["deletes"] else names


def _is_whole(path: Path) -> bool:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _TRAILER.size:
            return False
        file.seek(size - _TRAILER.size)
        footer_size, magic = _TRAILER.unpack(file.read(_TRAILER.size))
        body_size = size - _TRAILER.size - footer_size
        if magic != _MAGIC or body_size < 0:
            return False
        file.seek(body_size)
        try:
            expected = json.loads(file.read(footer_size))["crc"]
        except (ValueError, TypeError, LookupError):
            return False
        file.seek(0)
        checksum = 0
        while body_size:
            piece = file.read(min(_PIECE_BYTES, body_size))
            if not piece:
                return False
            checksum = zlib.crc32(piece, checksum)
            body_size -= len(piece)
    return bool(checksum == expected)
