"""Writes small messages of Outlook for tests: a compound file ([MS-CFB]) of properties ([MS-OXMSG])."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

_SECTOR, _MINI_SECTOR, _CUTOFF = 512, 64, 4096
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_STORAGE, _STREAM, _ROOT = 1, 2, 5
_UNICODE, _BINARY, _TIME = 0x001F, 0x0102, 0x0040
_1601_TO_1970_S = 11_644_473_600


@dataclass
class _Entry:
    name: str
    kind: int
    data: bytes = b""
    children: list["_Entry"] = field(default_factory=list)
    left: int = _FREE
    right: int = _FREE
    child: int = _FREE
    start: int = 0


def msg_of(
    texts: Mapping[int, str],
    *,
    binary: Mapping[int, bytes] | None = None,
    sent_s: int = 0,
    attachments: Mapping[str, bytes] | None = None,
) -> bytes:
    """A message with these properties; `sent_s` in seconds since 1970; attachments by name, of which those in .txt say that they
    are texts."""
    root = _storage("Root Entry", 32, texts, binary or {}, sent_s)
    root.kind = _ROOT
    for number, (name, data) in enumerate((attachments or {}).items()):
        kind = "text/plain" if name.endswith(".txt") else "application/octet-stream"
        root.children.append(
            _storage(f"__attach_version1.0_#{number:08X}", 8, {0x3707: name, 0x370E: kind}, {0x3701: data}, 0)
        )
    return _compound_file(root)


def _storage(
    name: str, header_bytes: int, texts: Mapping[int, str], binary: Mapping[int, bytes], sent_s: int
) -> _Entry:
    entry = _Entry(name, _STORAGE)
    properties = bytes(header_bytes)
    for kind, values in ((_UNICODE, {key: text.encode("utf-16-le") for key, text in texts.items()}), (_BINARY, binary)):
        for key, data in values.items():
            entry.children.append(_Entry(f"__substg1.0_{key:04X}{kind:04X}", _STREAM, data))
            properties += struct.pack("<HHIII", kind, key, 6, len(data) + 2 * (kind == _UNICODE), 0)
    if sent_s:
        properties += struct.pack("<HHIQ", _TIME, 0x0039, 6, (sent_s + _1601_TO_1970_S) * 10_000_000)
    entry.children.append(_Entry("__properties_version1.0", _STREAM, properties))
    return entry


def _compound_file(root: _Entry) -> bytes:
    entries = _numbered(root)
    mini, mini_table = b"", []
    body, table = [], []

    def take(data: bytes, sectors: list[int], size: int) -> int:
        start, count = len(sectors), max(1, -(-len(data) // size))
        sectors.extend([*range(start + 1, start + count), _END])
        return start

    for entry in entries:
        if entry.kind == _STREAM and len(entry.data) < _CUTOFF:
            entry.start = take(entry.data, mini_table, _MINI_SECTOR)
            mini += entry.data.ljust(_MINI_SECTOR * (len(mini_table) - entry.start), b"\0")
    root.data = mini
    for entry in entries:
        if entry is root or (entry.kind == _STREAM and len(entry.data) >= _CUTOFF):
            entry.start = take(entry.data, table, _SECTOR)
            body.append(entry.data.ljust(_SECTOR * (len(table) - entry.start), b"\0"))
    directory = b"".join(map(_written, entries))
    mini_fat = struct.pack(f"<{len(mini_table)}I", *mini_table)
    starts = []
    for data, padding in ((directory, b"\0"), (mini_fat, b"\xff")):
        starts.append(take(data, table, _SECTOR))
        body.append(data.ljust(_SECTOR * (len(table) - starts[-1]), padding))
    fat_start, fat_count = len(table), -(-(len(table) + 1) // (_SECTOR // 4 - 1))
    table.extend([_FAT] * fat_count)
    fat = struct.pack(f"<{len(table)}I", *table).ljust(_SECTOR * fat_count, b"\xff")
    header = struct.pack(
        "<8s16xHHHHH6xIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6, 0, fat_count, starts[0], 0, _CUTOFF,
        starts[1], -(-len(mini_fat) // _SECTOR), _END, 0,
    )  # fmt: skip
    places = [*range(fat_start, fat_start + fat_count)]
    return header + struct.pack("<109I", *places, *[_FREE] * (109 - fat_count)) + b"".join(body) + fat


def _numbered(root: _Entry) -> list[_Entry]:
    """All entries. The children of each are a chain to the right, which is a tree too."""
    entries = [root]
    for entry in entries:
        for number, child in enumerate(entry.children, len(entries)):
            if child is entry.children[0]:
                entry.child = number
            child.right = number + 1 if child is not entry.children[-1] else _FREE
        entries.extend(entry.children)
    return entries


def _written(entry: _Entry) -> bytes:
    name = entry.name.encode("utf-16-le")
    size = 0 if entry.kind == _STORAGE else len(entry.data)
    return struct.pack(
        "<64sHBBIII16x4x16xIQ",
        name,
        len(name) + 2,
        entry.kind,
        1,
        entry.left,
        entry.right,
        entry.child,
        entry.start,
        size,
    )
