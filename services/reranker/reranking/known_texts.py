"""Token vectors of texts met before: in memory, and behind it on the disk. What is written goes behind a queue: no answer waits for
the disk, and a disk that is slower than the model loses entries, not requests."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from services.reranker import metrics
from services.reranker.models import QueryVectors, TextVectors
from services.reranker.ports import PassageStore
from services.reranker.reranking.passage_cache import TextCache, stand_in_key

READ_TIMEOUT_S = 0.25
"""A disk that takes longer than a dozen passages take to read again is as good as none. 30 passages take 1 to 3 ms."""
_MAX_QUERY_BYTES = 16 * 1024 * 1024
"""Five hundred questions of twenty tokens: each is asked for once more, a moment after it was embedded."""
_REST_S = 0.3
"""Between two writes: what is kept meanwhile shares a transaction."""
_COLLECT_INTERVAL_S = 3600.0
_MAX_QUEUED_BYTES = 32 * 1024 * 1024
"""1500 passages of 200 tokens: the largest request and a half."""


@dataclass(frozen=True)
class Found:
    """What is known of the texts that were asked for."""

    vectors: dict[bytes, TextVectors]
    was_disk_read: bool
    """False: the disk did not answer in time, so that what is missing here may be there."""


class KnownTexts:
    """Finds and keeps token vectors by a key of their text. For one event loop. Spawn `run()` once: it writes.

    `executor` is where the store is called; `store` is None where nothing is to outlive the process.
    """

    def __init__(self, cache: TextCache[TextVectors], store: PassageStore | None, executor: Executor) -> None:
        self._cache = cache
        self.queries: TextCache[QueryVectors] = TextCache(_MAX_QUERY_BYTES)
        self._store = store
        self._executor = executor
        self._queued: dict[bytes, TextVectors] = {}
        self._queued_bytes = 0
        self._arrival = asyncio.Event()
        self._writing: asyncio.Future[None] | None = None

    async def find(self, keys: Iterable[bytes], *, stand_ins: bool = False) -> Found:
        """Those that are known. With `stand_ins`, what Rerank made of a passage is taken where its embedded text is not known;
        it comes under the key that was asked for."""
        forms = (_itself, stand_in_key) if stand_ins else (_itself,)
        wanted = set(keys)
        found = {key: vectors for key in wanted if (vectors := self._in_memory(key, forms)) is not None}
        metrics.PASSAGE_CACHE.labels("hit").inc(len(found))
        metrics.PASSAGE_CACHE.labels("miss").inc(len(wanted) - len(found))
        missing = list(wanted - found.keys())
        if self._store is None or not missing:
            return Found(found, was_disk_read=True)
        stored = await self._in_store(self._store, [form(key) for key in missing for form in forms])
        if stored is None:
            metrics.PASSAGE_STORE.labels("slow").inc(len(missing))
            return Found(found, was_disk_read=False)
        for key, vectors in stored.items():
            self._cache.put(key, vectors)
        on_disk = {key: stored[form(key)] for key in missing for form in reversed(forms) if form(key) in stored}
        metrics.PASSAGE_STORE.labels("hit").inc(len(on_disk))
        metrics.PASSAGE_STORE.labels("miss").inc(len(missing) - len(on_disk))
        return Found(found | on_disk, was_disk_read=True)

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

    async def forget(self, content_hashes: Sequence[bytes]) -> None:
        """Removes what is known of these texts, in memory and on the disk. What is being computed for a request now may be kept
        after that. Raises PassageStoreUnavailable."""
        keys = [form(content_hash) for content_hash in content_hashes for form in (_itself, stand_in_key)]
        for key in keys:
            self._cache.forget(key)
            if (vectors := self._queued.pop(key, None)) is not None:
                self._queued_bytes -= vectors.size_bytes
        if self._store is None:
            return
        if self._writing is not None:
            await asyncio.wait([self._writing])  # what is on its way to the disk must not arrive later
        await asyncio.get_running_loop().run_in_executor(self._executor, self._store.forget, keys)

    async def run(self) -> None:
        """Writes what is to be kept until cancelled, and then what is left; collects what nobody uses any more."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write_until_cancelled())
            if self._store is not None:
                group.create_task(self._collect_until_cancelled(self._store))

    async def _collect_until_cancelled(self, store: PassageStore) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while count := await loop.run_in_executor(self._executor, store.collect):
                metrics.PASSAGE_STORE.labels("collected").inc(count)
            await asyncio.sleep(_COLLECT_INTERVAL_S)

    async def _write_until_cancelled(self) -> None:
        try:
            while True:
                await self._arrival.wait()
                await self._write()
                await asyncio.sleep(_REST_S)
        finally:
            if self._writing is not None:
                await self._writing
            await self._write()

    async def _in_store(self, store: PassageStore, keys: list[bytes]) -> dict[bytes, TextVectors] | None:
        """None when the disk does not answer in time."""
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                return await asyncio.get_running_loop().run_in_executor(self._executor, store.get, keys)
        except TimeoutError:
            return None

    async def _write(self) -> None:
        self._arrival.clear()
        batch, self._queued, self._queued_bytes = self._queued, {}, 0
        if batch and self._store is not None:
            self._writing = asyncio.get_running_loop().run_in_executor(self._executor, self._store.put, batch)
            await asyncio.shield(self._writing)  # cancelling would lose a batch that has no thread yet

    def _in_memory(self, key: bytes, forms: Sequence[Callable[[bytes], bytes]]) -> TextVectors | None:
        for form in forms:
            if (vectors := self._queued.get(form(key)) or self._cache.get(form(key))) is not None:
                return vectors
        return None


def _itself(key: bytes) -> bytes:
    return key
