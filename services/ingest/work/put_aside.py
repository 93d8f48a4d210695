"""What is made of a document and put aside until it is needed: its chunks as the child wrote them, its vectors, and the vectors of
its active revision. A worker holds a window of each in memory, however large the document is."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from services.ingest.errors import BadVectors
from services.ingest.ports import Scratch, Vector, Vectors
from services.ingest.reading.models import ChunkFile

_WINDOW_BYTES = 4 * 1024 * 1024
"""Of chunks as they were put aside, that are handled together: a message to the index may have 16 MiB."""


_MEMORY_PER_STORED_BYTE = 4
"""A chunk in hand, as objects, takes some four times the bytes of its JSON; its vectors and requests come on top."""
_MEMORY_PER_CHUNK = 8 * 1024


def memory_bytes(chunks: ChunkFile, start: int, stop: int) -> int:
    """What the chunks from `start` to before `stop` take while they are in hand, with their vectors."""
    return chunks.size_bytes(start, stop) * _MEMORY_PER_STORED_BYTE + (stop - start) * _MEMORY_PER_CHUNK


def plan_windows(chunks: ChunkFile, max_chunks: int) -> Iterator[tuple[int, int]]:
    """First and last but one of each window of at most `max_chunks` chunks and a bound of bytes, or one chunk."""
    start = 0
    while start < len(chunks):
        stop = min(start + max_chunks, len(chunks))
        while stop > start + 1 and chunks.size_bytes(start, stop) > _WINDOW_BYTES:
            stop = start + (stop - start) // 2
        yield start, stop
        start = stop


class VectorRows:
    """The vectors of a document's chunks: float32 [n, dim], L2-normalised, by the chunks' order."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._row_bytes = 0

    async def write(self, start: int, vectors: Vectors) -> None:
        """Keeps the rows from `start` on. Raises BadVectors when they are not as long as the others."""
        row_bytes = vectors.shape[1] * vectors.itemsize
        if self._row_bytes not in (0, row_bytes):
            raise BadVectors("the model server returned vectors of different lengths")
        self._row_bytes = row_bytes
        await self._scratch.write(start * row_bytes, np.ascontiguousarray(vectors, dtype=np.float32).tobytes())

    async def read(self, start: int, stop: int) -> Vectors:
        data = await self._scratch.read(start * self._row_bytes, (stop - start) * self._row_bytes)
        return np.frombuffer(data, dtype=np.float32).reshape(stop - start, -1)


class KnownVectors:
    """The vectors of the active revision, by the hash of their text."""

    def __init__(self, scratch: Scratch) -> None:
        self._rows = VectorRows(scratch)
        self._parts: list[np.ndarray] = []
        self._count = 0
        self._hashes = np.zeros(0, dtype="S64")
        self._order = np.zeros(0, dtype=np.intp)

    async def add(self, hashes: Sequence[str], vectors: Vectors) -> None:
        await self._rows.write(self._count, vectors)
        self._count += len(hashes)
        self._parts.append(np.array(hashes, dtype="S64"))

    def complete(self) -> None:
        """All have been added: `find` may be called."""
        if self._parts:
            hashes = np.concatenate(self._parts)
            self._order = np.argsort(hashes)
            self._hashes, self._parts = hashes[self._order], []

    async def find(self, hashes: Sequence[str]) -> dict[str, Vector]:
        """Vectors of those that are known."""
        if not len(self._hashes):
            return {}
        wanted = np.array(hashes, dtype="S64")
        places = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        known = self._hashes[places] == wanted
        rows = {i: row for i, row in enumerate(self._order[places].tolist()) if known[i]}
        vectors = await self._vectors(sorted(set(rows.values())))
        return {hashes[i]: vectors[row] for i, row in rows.items()}

    async def _vectors(self, rows: Sequence[int]) -> dict[int, Vector]:
        """By row. Neighbours, as which most chunks have stayed, are read together."""
        found: dict[int, Vector] = {}
        for _, run in itertools.groupby(enumerate(rows), key=lambda each: each[1] - each[0]):
            numbers = [row for _, row in run]
            found.update(zip(numbers, await self._rows.read(numbers[0], numbers[-1] + 1), strict=True))
        return found
