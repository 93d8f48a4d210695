"""Texts that were encoded a moment ago. A follow-up question meets most of the passages of the question before it, and a question
is embedded before its passages are scored."""

from collections import OrderedDict
from hashlib import sha256

from services.reranker import metrics
from services.reranker.models import TextVectors


def text_key(text: str) -> bytes:
    """sha256 of the text, in 32 bytes: what a chunk carries as its content hash, and no document text."""
    return sha256(text.encode()).digest()


class PassageCache:
    """Least recently used out, bounded in bytes. 0 bytes switches it off. For one event loop: it takes no lock."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, TextVectors] = OrderedDict()
        self.size_bytes = 0

    def get(self, key: bytes) -> TextVectors | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        metrics.PASSAGE_CACHE.labels("miss" if found is None else "hit").inc()
        return found

    def put(self, key: bytes, vectors: TextVectors) -> None:
        """Keeps `vectors` unless they alone are larger than the bound."""
        if key in self._entries or vectors.size_bytes > self._max_bytes:
            return
        self._entries[key] = vectors
        self.size_bytes += vectors.size_bytes
        while self.size_bytes > self._max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self.size_bytes -= oldest.size_bytes
