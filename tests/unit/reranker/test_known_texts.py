"""What is found again, and that nobody waits for the disk."""

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import numpy as np
import pytest

from services.reranker.embedding.embedder import Embedding
from services.reranker.embedding.preparation import Preparation
from services.reranker.models import TextKind, TextVectors
from services.reranker.reranking import known_texts
from services.reranker.reranking.known_texts import Found, KnownTexts
from services.reranker.reranking.late_interaction import Reranking
from services.reranker.reranking.passage_cache import TextCache, stand_in_key, text_key
from tests.unit.reranker.conftest import RunBatcher
from tests.unit.reranker.fakes import FakeEncoder, FakeStore, WordTokenizer

PASSAGES = ["red lamp", "blue moon over paris", "green lamp"]
HASHES = [hashlib.sha256(passage.encode()).hexdigest() for passage in PASSAGES]
TITLED = [f"guide\n{passage}" for passage in PASSAGES]
TITLED_HASHES = [hashlib.sha256(passage.encode()).hexdigest() for passage in TITLED]
ENTRY = TextVectors(np.ones((4, 2), np.uint8), np.ones(2, np.float32))


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not a slow disk."""
    monkeypatch.setattr(known_texts, "READ_TIMEOUT_S", 20.0)


@pytest.fixture
def _impatience(monkeypatch: pytest.MonkeyPatch, _patience: None) -> None:
    monkeypatch.setattr(known_texts, "READ_TIMEOUT_S", 0.05)


@pytest.fixture
def run_known(executor: Executor) -> Callable[..., AbstractAsyncContextManager[KnownTexts]]:
    @asynccontextmanager
    async def run(store: FakeStore, cache_bytes: int = 100_000) -> AsyncIterator[KnownTexts]:
        known = KnownTexts(TextCache(cache_bytes), store, executor)
        task = asyncio.create_task(known.run())
        try:
            yield known
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return run


RunKnown = Callable[..., AbstractAsyncContextManager[KnownTexts]]


async def test_what_was_kept_while_embedding_is_reranked_without_the_model(
    run_batcher: RunBatcher, run_known: RunKnown, executor: Executor
) -> None:
    encoder, store = FakeEncoder(), FakeStore()
    tokenizer = WordTokenizer()
    async with run_batcher(encoder) as batcher:
        async with run_known(store) as known:
            embedding = Embedding(Preparation(tokenizer, executor), batcher, known=known)
            await embedding.embed(PASSAGES, TextKind.PASSAGE, 20.0, keep_token_vectors=True)
        async with run_known(store) as known:  # another process
            preparation = Preparation(tokenizer, executor)
            await Embedding(preparation, batcher, known=known).embed(["lamp"], TextKind.QUERY, 20.0)
            encoder.batches.clear()
            reranking = Reranking(preparation, batcher, known, executor)
            longer = ["a title\n" + passage for passage in PASSAGES]
            scores = await reranking.rerank("lamp", longer, 20.0, content_hashes=HASHES)
    assert encoder.batches == []
    assert scores.index(min(scores)) == 1


async def test_what_was_kept_before_an_interruption_is_not_embedded_again(
    run_batcher: RunBatcher, run_known: RunKnown, executor: Executor
) -> None:
    encoder, store = FakeEncoder(), FakeStore()
    async with run_batcher(encoder) as batcher:
        async with run_known(store) as known:
            embedding = Embedding(Preparation(WordTokenizer(), executor), batcher, known=known)
            whole = await embedding.embed(PASSAGES, TextKind.PASSAGE, 20.0)
            await embedding.embed(PASSAGES[:2], TextKind.PASSAGE, 20.0, keep_token_vectors=True)
        async with run_known(store) as known:  # another process
            encoder.batches.clear()
            embedding = Embedding(Preparation(WordTokenizer(), executor), batcher, known=known)
            again = await embedding.embed(PASSAGES, TextKind.PASSAGE, 20.0, keep_token_vectors=True)
            assert sum(len(batch) for batch in encoder.batches) == 1
            encoder.batches.clear()
            await embedding.embed(PASSAGES, TextKind.PASSAGE, 20.0, keep_token_vectors=True)
            assert encoder.batches == []
    np.testing.assert_allclose(again.vectors, whole.vectors, rtol=1e-6)
    assert again.token_counts == whole.token_counts


async def test_passages_not_kept_are_read_and_kept_under_their_hash(
    run_batcher: RunBatcher, run_known: RunKnown, executor: Executor
) -> None:
    encoder, store = FakeEncoder(), FakeStore()
    async with run_batcher(encoder) as batcher, run_known(store) as known:
        reranking = Reranking(Preparation(WordTokenizer(), executor), batcher, known, executor)
        await reranking.rerank("lamp", [*PASSAGES, "a sentence"], 20.0, content_hashes=[*HASHES, ""])
        assert sum(len(batch) for batch in encoder.batches) == 5
        assert await asyncio.to_thread(store.kept.wait, 20)
    kept = {stand_in_key(text_key(passage)) for passage in PASSAGES}
    assert store.entries.keys() == kept, "the sentence and the query are not"


@pytest.mark.parametrize("content_hashes", [TITLED_HASHES, []], ids=["by content hash", "by their own text"])
async def test_what_was_made_while_reranking_is_never_an_embedding(
    run_batcher: RunBatcher, run_known: RunKnown, executor: Executor, content_hashes: list[str]
) -> None:
    encoder, store, preparation = FakeEncoder(), FakeStore(), Preparation(WordTokenizer(), executor)
    async with run_batcher(encoder) as batcher:
        right = await Embedding(preparation, batcher).embed(TITLED, TextKind.PASSAGE, 20.0)
        async with run_known(store) as known:
            reranking = Reranking(preparation, batcher, known, executor)
            await reranking.rerank(
                TITLED[0], PASSAGES if content_hashes else TITLED, 20.0, content_hashes=content_hashes
            )
            embedding = Embedding(preparation, batcher, known=known)
            encoder.batches.clear()
            in_memory = await embedding.embed(TITLED, TextKind.PASSAGE, 20.0, keep_token_vectors=True)
        assert sum(len(batch) for batch in encoder.batches) == len(TITLED), "each text is read by Embed itself"
        async with run_known(store) as known:  # another process
            embedding = Embedding(preparation, batcher, known=known)
            from_disk = await embedding.embed(TITLED, TextKind.PASSAGE, 20.0, keep_token_vectors=True)
    np.testing.assert_allclose(in_memory.vectors, right.vectors, rtol=1e-6)
    np.testing.assert_allclose(from_disk.vectors, right.vectors, rtol=1e-6)


async def test_an_embedded_text_is_scored_with_rather_than_what_stood_in_for_it(
    run_batcher: RunBatcher, run_known: RunKnown, executor: Executor
) -> None:
    store, preparation = FakeStore(), Preparation(WordTokenizer(), executor)
    async with run_batcher(FakeEncoder()) as batcher:
        async with run_known(store) as known:
            reranking = Reranking(preparation, batcher, known, executor)
            without_titles = await reranking.rerank("guide", PASSAGES, 20.0, content_hashes=TITLED_HASHES)
            embedding = Embedding(preparation, batcher, known=known)
            await embedding.embed(TITLED, TextKind.PASSAGE, 20.0, keep_token_vectors=True)
        async with run_known(store) as known:  # another process
            reranking = Reranking(preparation, batcher, known, executor)
            with_titles = await reranking.rerank("guide", PASSAGES, 20.0, content_hashes=TITLED_HASHES)
    assert all(after > before for before, after in zip(without_titles, with_titles, strict=True))


async def test_texts_that_nobody_asked_to_keep_are_not(
    run_batcher: RunBatcher, run_known: RunKnown, executor: Executor
) -> None:
    store = FakeStore()
    async with run_batcher(FakeEncoder()) as batcher, run_known(store) as known:
        embedding = Embedding(Preparation(WordTokenizer(), executor), batcher, known=known)
        await embedding.embed(PASSAGES, TextKind.PASSAGE, 20.0)
        await embedding.embed(["lamp"], TextKind.QUERY, 20.0, keep_token_vectors=True)
    assert store.entries == {}


class StuckStore(FakeStore):
    """A disk that does not answer until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()
        self.writes = threading.Semaphore(0)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, TextVectors]:
        self.free.wait(20)
        return super().get(keys)

    def put(self, entries: Mapping[bytes, TextVectors]) -> None:
        self.writes.release()
        self.free.wait(20)
        super().put(entries)


@pytest.mark.usefixtures("_impatience")
async def test_disk_that_does_not_answer_is_not_waited_for(run_known: RunKnown) -> None:
    store = StuckStore()
    store.entries[b"k"] = ENTRY
    async with run_known(store) as known:
        assert await known.find([b"k"]) == Found({}, was_disk_read=False)
        store.free.set()
        found = await _found_at_last(known, b"k")
    assert found.vectors == {b"k": ENTRY}


async def _found_at_last(known: KnownTexts, key: bytes) -> Found:
    """What is found once the disk answers in time, however slow the machine is."""
    while not (found := await known.find([key])).was_disk_read:
        pass
    return found


@pytest.mark.usefixtures("_impatience")
async def test_what_was_read_because_the_disk_was_slow_is_not_kept(
    run_batcher: RunBatcher, run_known: RunKnown, executor: Executor
) -> None:
    store = StuckStore()
    embedded = {text_key(text): ENTRY for text in TITLED}
    store.entries |= embedded
    async with run_batcher(FakeEncoder()) as batcher, run_known(store) as known:
        reranking = Reranking(Preparation(WordTokenizer(), executor), batcher, known, executor)
        assert len(await reranking.rerank("lamp", PASSAGES, 20.0, content_hashes=TITLED_HASHES)) == len(PASSAGES)
        store.free.set()
    assert store.entries == embedded


async def test_disk_that_is_too_slow_loses_entries_and_what_waits_stays_bounded(run_known: RunKnown) -> None:
    store = StuckStore()
    large = TextVectors(np.ones((100_000, 96), np.uint8), np.ones(2, np.float32))
    async with run_known(store) as known:
        known.keep(b"first", large)
        assert await asyncio.to_thread(store.writes.acquire, timeout=60)
        for n in range(10):
            known.keep(b"%d" % n, large)
        assert (await known.find([b"0"])).vectors.keys() == {b"0"}, "what waits is known already"
        store.free.set()
    assert store.entries.keys() == {b"first", b"0", b"1", b"2"}


async def test_what_is_found_on_the_disk_is_in_memory_the_next_time(run_known: RunKnown) -> None:
    store = FakeStore()
    store.entries[b"k"] = ENTRY
    async with run_known(store) as known:
        await known.find([b"k"])
        store.entries.clear()
        assert (await known.find([b"k"])).vectors.keys() == {b"k"}


async def test_what_is_forgotten_is_found_nowhere_even_if_it_was_on_its_way_to_the_disk(run_known: RunKnown) -> None:
    gone, stays = text_key("gone"), text_key("stays")
    store = StuckStore()
    async with run_known(store) as known:
        known.keep(gone, ENTRY)
        assert await asyncio.to_thread(store.writes.acquire, timeout=60)
        known.keep(stand_in_key(gone), ENTRY)
        known.keep(stays, ENTRY)
        for key in (gone, stand_in_key(gone), stays):
            known.remember(key, ENTRY)
        forgetting = asyncio.create_task(known.forget([gone]))
        store.free.set()
        await forgetting
        assert (await known.find([gone, stays], stand_ins=True)).vectors.keys() == {stays}
    assert store.entries.keys() == {stays}


async def test_unused_entries_are_collected_until_there_are_none(run_known: RunKnown) -> None:
    class OldStore(FakeStore):
        counts = iter((256, 256, 7, 0))
        done = threading.Event()

        def collect(self) -> int:
            count = next(self.counts)
            if not count:
                self.done.set()
            return count

    store = OldStore()
    async with run_known(store):
        assert await asyncio.to_thread(store.done.wait, 20)
