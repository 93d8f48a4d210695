"""Unpacks the rich text in messages of Outlook: [MS-OXRTFCP], an LZ77 whose dictionary is full of RTF before it begins."""

import struct
import zlib

_HEADER = struct.Struct("<II4sI")
_CRC_AT = 4  # the packed size counts what stands behind it
_DICTIONARY = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor MS Sans Serif"
    b"SymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
_RING_BYTES = 4096
_SHORTEST_COPY = 2


def unpacked_rtf(packed: bytes) -> bytes:
    """The rich text. It is at most nine times as long as `packed`. Raises ValueError where it is damaged."""
    if len(packed) < _HEADER.size:
        raise ValueError("no header")
    size, raw_size, kind, crc = _HEADER.unpack_from(packed)
    content = packed[_HEADER.size : size + _CRC_AT]
    if kind == b"MELA":  # not packed at all
        return content[:raw_size]
    if kind != b"LZFu" or _crc(content) != crc:
        raise ValueError("not packed as it says, or changed on its way")
    return _unpacked(content)


def _crc(content: bytes) -> int:
    """That of ZIP, but begun with zero and not inverted."""
    return zlib.crc32(content, 0xFFFFFFFF) ^ 0xFFFFFFFF


def _unpacked(content: bytes) -> bytes:
    """All up to the mark of the end, or of what there is. The ring of 4096 bytes is the end of `out`."""
    out = bytearray(_DICTIONARY)
    at, end = 0, len(content)
    while at < end:
        control, at = content[at], at + 1
        for bit in range(8):
            if not control >> bit & 1:
                out += content[at : at + 1]
                at += 1
                continue
            if at + 1 >= end:
                return bytes(out[len(_DICTIONARY) :])
            reference, at = content[at] << 8 | content[at + 1], at + 2
            back = (len(out) - (reference >> 4)) % _RING_BYTES
            if not back:
                return bytes(out[len(_DICTIONARY) :])
            _copy(out, len(out) - back, (reference & 15) + _SHORTEST_COPY)
    return bytes(out[len(_DICTIONARY) :])


def _copy(out: bytearray, start: int, count: int) -> None:
    """One byte after the other, since a copy may reach into itself."""
    for place in range(start, start + count):
        out.append(out[place] if place >= 0 else 0)
