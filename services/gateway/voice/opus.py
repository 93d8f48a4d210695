"""Opus in Ogg or WebM, as browsers record it, decoded while it comes: speech is found in samples."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from services.gateway.errors import SoundNotUnderstood
from services.gateway.voice.sound import DETECTED_RATE, seconds

OGG, WEBM = b"OggS", b"\x1a\x45\xdf\xa3"
"""The first bytes of a recording, by which its container is known."""
_FIRST_PAGE = 2
"""Flag of the Ogg page that begins a stream (RFC 3533, section 6)."""
_SLICE_BYTES = 512
"""The decoder takes under six seconds of sound at once."""
_LONGEST_S = 60.0
"""Of the sound in one message: packets of silence take two bytes, so a small message may hold hours."""
_LARGEST_BLOCK = 64 * 1024
"""Of one packet with its header: browsers write some hundred bytes."""
_SEGMENT, _CLUSTER, _BLOCK_GROUP = 0x18538067, 0x1F43B675, 0xA0
_BLOCK, _SIMPLE_BLOCK = 0xA1, 0xA3
"""Ids of WebM's elements (RFC 9559): those that hold others, and those that hold a packet. All others are skipped."""
_LACED = 0x06
_OPUS_HEAD = struct.pack("<8sBBHIHB", b"OpusHead", 1, 1, 312, 48_000, 0, 0)
_OPUS_TAGS = struct.pack("<8sII", b"OpusTags", 0, 0)
"""RFC 7845, section 5. Opus is decoded to one channel, whatever it has."""
_SAMPLES_A_PACKET = 960
"""At 48 kHz: 20 ms. Only a player that seeks needs the true count."""


class _OggReader(Protocol):
    def append_bytes(self, data: bytes) -> "np.ndarray[tuple[int], np.dtype[np.float32]]": ...


class OpusDecoder:
    """Decodes recordings that follow one another; each message of a client may begin a new one."""

    def __init__(self) -> None:
        self._ogg: _OggReader | None = None
        self._webm: WebmPackets | None = None
        self._pages = OggPages()

    def decode(self, data: bytes) -> bytes:
        """PCM of 16 bits at DETECTED_RATE, as far as packets are whole. Call it in a thread. Raises SoundNotUnderstood."""
        if is_start(data):
            self._begin(data)
        if self._ogg is None:
            raise SoundNotUnderstood("this is no Opus in Ogg or WebM; send a recording from its first byte on")
        pcm = bytearray()
        try:
            for pages in self._ogg_pages(data):
                samples = self._ogg.append_bytes(pages)
                pcm += (np.clip(samples, -1, 1) * 32_767).astype("<i2").tobytes()
                _check_length(pcm)
        except ValueError as error:
            self._ogg = None
            raise SoundNotUnderstood(f"this recording cannot be read: {error}; begin a new one") from error
        return bytes(pcm)

    def _ogg_pages(self, data: bytes) -> Iterator[bytes]:
        if self._webm is not None:
            yield from map(self._pages.page, self._webm.take(data))
        else:
            yield from (data[start : start + _SLICE_BYTES] for start in range(0, len(data), _SLICE_BYTES))

    def _begin(self, data: bytes) -> None:
        from sphn import OpusStreamReader  # noqa: PLC0415 - a library that gateways without sound do not need

        self._ogg = OpusStreamReader(DETECTED_RATE)
        self._webm = WebmPackets() if data.startswith(WEBM) else None
        if self._webm is not None:
            self._pages = OggPages()
            self._ogg.append_bytes(self._pages.page(_OPUS_HEAD, 0) + self._pages.page(_OPUS_TAGS, 0))


def _check_length(pcm: bytearray) -> None:
    if seconds(pcm) > _LONGEST_S:
        raise ValueError(f"a message holds over {_LONGEST_S:.0f} s of sound")


def is_start(data: bytes) -> bool:
    """Whether a recording begins with these bytes."""
    return data.startswith(WEBM) or (data.startswith(OGG) and len(data) > 5 and bool(data[5] & _FIRST_PAGE))


@dataclass
class OggPages:
    """Writes packets as Ogg pages, which the decoder reads (RFC 3533)."""

    written: int = 0
    position: int = 0

    def page(self, packet: bytes, samples: int = _SAMPLES_A_PACKET) -> bytes:
        """One packet as a page of its own. Raises ValueError for one that no page can hold."""
        lacing = bytes([255] * (len(packet) // 255) + [len(packet) % 255])
        if len(lacing) > 255:
            raise ValueError("a packet is too long")
        self.position += samples
        flags = 0 if self.written else _FIRST_PAGE
        header = struct.pack("<4sBBqIIIB", OGG, 0, flags, self.position, 1, self.written, 0, len(lacing)) + lacing
        self.written += 1
        page = header + packet
        return page[:22] + struct.pack("<I", _ogg_checksum(page)) + page[26:]


class WebmPackets:
    """Finds the packets of a WebM recording with one track, in bytes that come piece by piece."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipped = 0
        """Bytes of an element that are still to be thrown away."""

    def take(self, data: bytes) -> Iterator[bytes]:
        """The packets that are whole now. Raises ValueError for what is no WebM."""
        self._rest += data
        while True:
            thrown = min(self._skipped, len(self._rest))
            del self._rest[:thrown]
            self._skipped -= thrown
            head = _element_head(self._rest) if not self._skipped else None
            if head is None:
                return
            element, size, begins = head
            if element in (_SEGMENT, _CLUSTER, _BLOCK_GROUP):
                del self._rest[:begins]
            elif element not in (_BLOCK, _SIMPLE_BLOCK):
                del self._rest[:begins]
                self._skipped = size
            elif size > _LARGEST_BLOCK:
                raise ValueError("a block is too long")
            elif len(self._rest) < begins + size:
                return
            else:
                block = bytes(self._rest[begins : begins + size])
                del self._rest[: begins + size]
                yield _packet(block)


def _element_head(data: bytearray) -> tuple[int, int, int] | None:
    """Id and size of the element that begins here, and where its content does; None while that is not known."""
    if not data:
        return None
    id_length = _length(data[0], 4)
    if len(data) <= id_length:
        return None
    size_length = _length(data[id_length], 8)
    begins = id_length + size_length
    if len(data) < begins:
        return None
    size = int.from_bytes(data[id_length:begins], "big") & ((1 << 7 * size_length) - 1)
    return int.from_bytes(data[:id_length], "big"), size, begins


def _length(first: int, longest: int) -> int:
    """Of a number whose leading zero bits say how long it is (RFC 8794, section 4)."""
    length = 9 - first.bit_length()
    if length > longest:
        raise ValueError("an element has no id or no size")
    return length


def _packet(block: bytes) -> bytes:
    """The packet of a block: behind the number of its track, its time and its flags."""
    begins = _length(block[0] if block else 0, 8) + 3
    if len(block) <= begins or block[begins - 1] & _LACED:
        raise ValueError("a block holds no single packet")
    return block[begins:]


def _checksums() -> Iterator[int]:
    for byte in range(256):
        value = byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value & 0x80000000 else 0)) & 0xFFFFFFFF
        yield value


_CHECKSUMS = tuple(_checksums())


def _ogg_checksum(page: bytes) -> int:
    """CRC-32 as Ogg has it: with neither reflection nor inversion, so zlib's is another."""
    value = 0
    for byte in page:
        value = (value << 8 & 0xFFFFFFFF) ^ _CHECKSUMS[value >> 24 ^ byte]
    return value
