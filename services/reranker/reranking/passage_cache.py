"""Texts that were encoded a moment ago. A follow-up question meets most of the passages of the question before it, and a question
is embedded before its passages are scored."""

from collections import OrderedDict
from hashlib import sha256
from typing import Generic, TypeVar

from services.reranker.judging.reading import ReadText
from services.reranker.models import QueryVectors, TextVectors

Vectors = TypeVar("Vectors", TextVectors, QueryVectors, ReadText)


def text_key(text: str) -> bytes:
    """Key of an embedded passage: the sha256 of its text, in 32 bytes, which a chunk carries as its content hash."""
    return sha256(text.encode()).digest()


def stand_in_key(content_hash: bytes) -> bytes:
    """Key of what Rerank makes of a passage whose embedded text it does not have. The passage may lack the title that stands in
    front of the embedded text, so the key must never be one of an embedding: those have 32 bytes."""
    return content_hash + b"r"


def query_key(query_text: str) -> bytes:
    """Key of a query, which a model may read with another instruction than a passage of the same words."""
    return text_key(query_text) + b"q"


class TextCache(Generic[Vectors]):
    """Least recently used out, bounded in bytes. 0 bytes switches it off. For one event loop: it takes no lock."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, Vectors] = OrderedDict()
        self.size_bytes = 0

    def get(self, key: bytes) -> Vectors | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: bytes, vectors: Vectors) -> None:
        """Keeps `vectors` unless they alone are larger than the bound."""
        if key in self._entries or vectors.size_bytes > self._max_bytes:
            return
        self._entries[key] = vectors
        self.size_bytes += vectors.size_bytes
        while self.size_bytes > self._max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self.size_bytes -= oldest.size_bytes

    def clear(self) -> None:
        """Drops everything."""
        self._entries.clear()
        self.size_bytes = 0

    def forget(self, key: bytes) -> None:
        """Drops what is there."""
        if (vectors := self._entries.pop(key, None)) is not None:
            self.size_bytes -= vectors.size_bytes
