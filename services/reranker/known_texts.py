"""Token vectors of texts met before: in memory, and behind it on the disk. What is written goes behind a queue: no answer waits for
the disk, and a disk that is slower than the model loses entries, not requests."""

import asyncio
from collections.abc import Iterable
from concurrent.futures import Executor

from services.reranker import metrics
from services.reranker.models import TextVectors
from services.reranker.passage_cache import PassageCache
from services.reranker.ports import PassageStore

_READ_TIMEOUT_S = 0.25
"""A disk that takes longer than a dozen passages take to read again is as good as none. 30 passages take 1 to 3 ms."""
_REST_S = 0.3
"""Between two writes: what is kept meanwhile shares a transaction."""
_MAX_QUEUED_BYTES = 32 * 1024 * 1024
"""1500 passages of 200 tokens: the largest request and a half."""


class KnownTexts:
    """Finds and keeps token vectors by the sha256 of their text. For one event loop. Spawn `run()` once: it writes.

    `executor` is where the store is called; `store` is None where nothing is to outlive the process.
    """

    def __init__(self, cache: PassageCache, store: PassageStore | None, executor: Executor) -> None:
        self._cache = cache
        self._store = store
        self._executor = executor
        self._queued: dict[bytes, TextVectors] = {}
        self._queued_bytes = 0
        self._arrival = asyncio.Event()
        self._writing: asyncio.Future[None] | None = None

    async def find(self, keys: Iterable[bytes]) -> dict[bytes, TextVectors]:
        """Those that are known."""
        wanted = set(keys)
        found = {key: vectors for key in wanted if (vectors := self._in_memory(key)) is not None}
        missing = list(wanted - found.keys())
        if self._store is not None and missing:
            stored = await self._in_store(self._store, missing)
            metrics.PASSAGE_STORE.labels("hit").inc(len(stored))
            metrics.PASSAGE_STORE.labels("miss").inc(len(missing) - len(stored))
            for key, vectors in stored.items():
                self._cache.put(key, vectors)
            found |= stored
        return found

    def remember(self, key: bytes, vectors: TextVectors) -> None:
        """In memory, for a while."""
        self._cache.put(key, vectors)

    def keep(self, key: bytes, vectors: TextVectors) -> None:
        """On the disk, soon; not at all when too much waits for it already."""
        if self._store is None or key in self._queued:
            return
        if self._queued_bytes + vectors.size_bytes > _MAX_QUEUED_BYTES:
            metrics.PASSAGE_STORE.labels("dropped").inc()
            return
        self._queued[key] = vectors
        self._queued_bytes += vectors.size_bytes
        self._arrival.set()

    async def run(self) -> None:
        """Writes what is to be kept until cancelled, and then what is left."""
        try:
            while True:
                await self._arrival.wait()
                await self._write()
                await asyncio.sleep(_REST_S)
        finally:
            if self._writing is not None:
                await self._writing
            await self._write()

    async def _in_store(self, store: PassageStore, keys: list[bytes]) -> dict[bytes, TextVectors]:
        try:
            async with asyncio.timeout(_READ_TIMEOUT_S):
                return await asyncio.get_running_loop().run_in_executor(self._executor, store.get, keys)
        except TimeoutError:
            return {}

    async def _write(self) -> None:
        self._arrival.clear()
        batch, self._queued, self._queued_bytes = self._queued, {}, 0
        if batch and self._store is not None:
            self._writing = asyncio.get_running_loop().run_in_executor(self._executor, self._store.put, batch)
            await asyncio.shield(self._writing)  # cancelling would lose a batch that has no thread yet

    def _in_memory(self, key: bytes) -> TextVectors | None:
        return self._queued.get(key) or self._cache.get(key)
