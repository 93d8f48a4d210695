"""Fakes for the model server's ports: an encoder whose batches a test sees start and lets end, and a word tokenizer."""

import asyncio
import threading
from collections.abc import Mapping, Sequence

import numpy as np

from services.reranker.embedding.pooling import reduce_hidden
from services.reranker.errors import EncoderFailed
from services.reranker.models import (
    BatchLimits,
    Encoded,
    Float32,
    Int64,
    TextVectors,
    TokenIds,
    TokenizerDefinition,
    TokenizerForm,
)

DIMENSION = 64
CLS, SEP = 1, 2
LIMITS = BatchLimits(max_tokens=64, max_texts=8, pad_to_multiple=4, max_queued_tokens=4096)


def ids(*tokens: int, length: int = 0) -> TokenIds:
    """A text of these tokens, repeated up to `length`."""
    return np.resize(np.array(tokens, dtype=np.int64), length or len(tokens))


class FakeEncoder:
    """Each token id has a fixed random vector; nothing depends on neighbours or padding."""

    def __init__(self, streams: int = 1, dimension: int = DIMENSION) -> None:
        self.streams, self.dimension = streams, dimension
        self.batches: list[Int64] = []
        self.error: Exception | None = None
        self._table = np.random.default_rng(7).normal(size=(1000, dimension)).astype(np.float32)

    @property
    def runtime(self) -> str:
        return "fake/cpu"

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Encoded:
        if input_ids.ndim != 2 or input_ids.shape != attention_mask.shape:
            raise EncoderFailed(f"a batch of shape {input_ids.shape} with a mask of shape {attention_mask.shape}")
        self.batches.append(input_ids)
        if self.error is not None:
            raise self.error
        return reduce_hidden(self._table[input_ids % 1000], attention_mask, np.eye(self.dimension, dtype=np.float32))

    def seen(self) -> set[int]:
        """First token of each text that reached the model."""
        return {int(row[0]) for batch in self.batches for row in batch}


class GatedEncoder(FakeEncoder):
    """A fake whose batches start under the test's eyes and end when it says so."""

    def __init__(self, streams: int = 1) -> None:
        super().__init__(streams)
        self.started: asyncio.Queue[list[int]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._permits = threading.Semaphore(0)

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Encoded:
        self._loop.call_soon_threadsafe(self.started.put_nowait, [int(row[0]) for row in input_ids])
        if not self._permits.acquire(timeout=60):
            raise TimeoutError("the test never let this batch end")
        return super().encode(input_ids, attention_mask)

    async def next_batch(self) -> list[int]:
        """First token of each text of the batch that starts next."""
        async with asyncio.timeout(60):
            return await self.started.get()

    def release(self, batches: int = 1) -> None:
        self._permits.release(batches)


class WordTokenizer:
    """One token per word, between [CLS] and [SEP], cut to the window."""

    window_tokens = 16
    definition = TokenizerDefinition(TokenizerForm.HUGGING_FACE, b'{"fake": true}')

    def __init__(self) -> None:
        self._vocabulary: dict[str, int] = {}
        self.longest = 0

    def tokenize(self, texts: Sequence[str]) -> list[TokenIds]:
        self.longest = max(self.longest, *(len(text) for text in texts))
        return [self._ids(text.lower().split()) for text in texts]

    def rarities(self, ids: TokenIds) -> Float32:
        return np.ones(len(ids), np.float32)

    def _ids(self, words: list[str]) -> TokenIds:
        numbers = [self._vocabulary.setdefault(word, len(self._vocabulary) + 3) for word in words]
        return np.array([CLS, *numbers[: self.window_tokens - 2], SEP], dtype=np.int64)


class FakeStore:
    """PassageStore in memory. `kept` is set by each write."""

    def __init__(self) -> None:
        self.entries: dict[bytes, TextVectors] = {}
        self.kept = threading.Event()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, TextVectors]:
        return {key: self.entries[key] for key in keys if key in self.entries}

    def put(self, entries: Mapping[bytes, TextVectors]) -> None:
        self.entries |= entries
        self.kept.set()

    def forget(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self.entries.pop(key, None)

    def collect(self) -> int:
        return 0
