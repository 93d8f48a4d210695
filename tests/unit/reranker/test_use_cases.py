"""Embedding and reranking over the fakes."""

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from services.reranker.embedding import Embedding
from services.reranker.errors import TextCountOutOfRange, TextEmpty
from services.reranker.known_texts import KnownTexts
from services.reranker.models import EncodedText, Lane, TextKind, TextVectors
from services.reranker.passage_cache import PassageCache
from services.reranker.pooling import reduce_hidden, text_vectors, token_projection
from services.reranker.preparation import Preparation
from services.reranker.reranking import Reranking, score
from tests.unit.reranker.conftest import RunBatcher
from tests.unit.reranker.fakes import DIMENSION, LIMITS, FakeEncoder, GatedEncoder, WordTokenizer

PROJECTION_CORNER = [[0.003503610, -0.002584612, -0.036088068], [-0.085904069, -0.056683335, -0.050739958]]


def memory(max_bytes: int, executor: Executor) -> KnownTexts:
    """Known texts that nothing keeps on a disk."""
    return KnownTexts(PassageCache(max_bytes), None, executor)


def vectors_of(rng: np.random.Generator, tokens: int) -> TextVectors:
    """A text of `tokens` random token vectors."""
    pooled = rng.normal(size=DIMENSION).astype(np.float32)
    return TextVectors(rng.integers(-40, 40, (tokens, DIMENSION)).astype(np.int8), pooled / np.linalg.norm(pooled))


async def test_vectors_are_unit_length_and_token_counts_stop_at_the_window(
    run_batcher: RunBatcher, executor: Executor
) -> None:
    async with run_batcher(FakeEncoder()) as batcher:
        embedding = Embedding(Preparation(WordTokenizer(), executor), batcher)
        found = await embedding.embed(["one two", "word " * 100], TextKind.PASSAGE, 20.0)
    assert found.vectors.shape == (2, DIMENSION)
    assert found.vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=1), 1.0, rtol=1e-5)
    assert found.token_counts == [4, 16]


@pytest.mark.parametrize("blank", ["", "   ", "\n\t"])
async def test_blank_text_is_refused_by_its_position(run_batcher: RunBatcher, executor: Executor, blank: str) -> None:
    async with run_batcher(FakeEncoder()) as batcher:
        embedding = Embedding(Preparation(WordTokenizer(), executor), batcher)
        with pytest.raises(TextEmpty, match=r"texts\[1\] is empty"):
            await embedding.embed(["one", blank], TextKind.PASSAGE, 20.0)


@pytest.mark.parametrize("count", [0, 1025])
async def test_number_of_texts_is_bounded(run_batcher: RunBatcher, executor: Executor, count: int) -> None:
    async with run_batcher(FakeEncoder()) as batcher:
        embedding = Embedding(Preparation(WordTokenizer(), executor), batcher)
        with pytest.raises(TextCountOutOfRange, match=f"{count} texts; send 1 to 1024"):
            await embedding.embed(["one"] * count, TextKind.PASSAGE, 20.0)


async def test_huge_text_is_cut_before_it_is_tokenized(executor: Executor) -> None:
    tokenizer = WordTokenizer()
    await Preparation(tokenizer, executor).token_ids(["a" * 1_000_000], TextKind.PASSAGE)
    assert tokenizer.longest == 64 * tokenizer.window_tokens


async def test_a_question_does_not_wait_for_a_thread_and_long_texts_do_not_hold_up_the_loop() -> None:
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    preparation = Preparation(WordTokenizer(), closed)
    assert len(await preparation.token_ids(["who repaired the pump?"], TextKind.QUERY)) == 1
    with pytest.raises(RuntimeError, match="shutdown"):
        await preparation.token_ids(["who repaired the pump? " * 10], TextKind.PASSAGE)


async def test_passage_with_the_words_of_the_query_scores_highest(run_batcher: RunBatcher, executor: Executor) -> None:
    async with run_batcher(FakeEncoder()) as batcher:
        reranking = Reranking(Preparation(WordTokenizer(), executor), batcher, memory(10_000, executor), executor)
        passages = ["blue moon over paris", "red green lamp", "red lamp"]
        scores = await reranking.rerank("red lamp", passages, 20.0)
    assert sorted(range(3), key=lambda n: -scores[n]) == [2, 1, 0]
    assert scores[2] == pytest.approx(1.0, abs=0.01)
    assert all(-1.0 <= value <= 1.0 for value in scores)


async def test_similarity_of_whole_texts_counts_only_where_no_search_has_counted_it(
    run_batcher: RunBatcher, executor: Executor
) -> None:
    async with run_batcher(FakeEncoder()) as batcher:
        reranking = Reranking(Preparation(WordTokenizer(), executor), batcher, memory(10_000, executor), executor)
        passages = ["red lamp and many other words", "red lamp"]
        alone = await reranking.rerank("red lamp", passages, 20.0)
        ranked = await reranking.rerank("red lamp", passages, 20.0, candidates_are_ranked=True)
    assert alone[1] > alone[0]
    assert ranked == [pytest.approx(1.0, abs=0.01)] * 2


async def test_passages_met_before_are_not_encoded_again_and_score_the_same(
    run_batcher: RunBatcher, executor: Executor
) -> None:
    encoder = FakeEncoder()
    passages = ["red lamp", "blue moon", "red lamp"]
    async with run_batcher(encoder) as batcher:
        reranking = Reranking(Preparation(WordTokenizer(), executor), batcher, memory(10_000, executor), executor)
        first = await reranking.rerank("red", passages, 20.0)
        texts = sum(len(batch) for batch in encoder.batches)
        second = await reranking.rerank("red", passages, 20.0)
    assert texts == 3
    assert sum(len(batch) for batch in encoder.batches) == texts, "the query neither"
    assert first == second
    assert first[0] == first[2]


async def test_passages_encoded_before_the_deadline_are_not_encoded_again(
    run_batcher: RunBatcher, executor: Executor
) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder, replace(LIMITS, max_texts=1)) as batcher:
        reranking = Reranking(Preparation(WordTokenizer(), executor), batcher, memory(10_000, executor), executor)
        first = asyncio.create_task(reranking.rerank("red", ["green lamp by night", "blue moon"], 20.0))
        for _ in ("the query", "the longer passage"):
            await encoder.next_batch()
            encoder.release()
        await encoder.next_batch()
        first.cancel()
        encoder.release()
        await asyncio.gather(first, return_exceptions=True)
        encoder.release(10)
        await reranking.rerank("red", ["green lamp by night", "blue moon"], 20.0)
    assert [batch.shape[1] for batch in encoder.batches].count(8) == 1


async def test_blank_query_and_blank_passage_are_refused(run_batcher: RunBatcher, executor: Executor) -> None:
    async with run_batcher(FakeEncoder()) as batcher:
        reranking = Reranking(Preparation(WordTokenizer(), executor), batcher, memory(0, executor), executor)
        with pytest.raises(TextEmpty, match="query_text"):
            await reranking.rerank(" ", ["one"], 20.0)
        with pytest.raises(TextEmpty, match=r"passages\[0\]"):
            await reranking.rerank("one", [""], 20.0)


def test_text_of_special_tokens_only_still_has_a_score() -> None:
    even = 1 / np.sqrt(DIMENSION)
    tokens = np.full((2, DIMENSION), round(127 * even), np.int8)
    bare = text_vectors(EncodedText(np.full(DIMENSION, even, np.float32), tokens))
    assert score(bare, [bare], 0.5) == [pytest.approx(1.0, abs=0.01)]


def test_score_of_a_passage_does_not_depend_on_those_beside_it() -> None:
    rng = np.random.default_rng(3)
    query, *passages = (vectors_of(rng, tokens) for tokens in (5, *rng.integers(1, 40, 100)))
    together = score(query, passages, 0.5)
    assert together == pytest.approx([score(query, [passage], 0.5)[0] for passage in passages], abs=1e-6)
    expected = [np.max(query.tokens.astype(float) @ each.tokens.T / 127**2, axis=1).mean() for each in passages]
    assert score(query, passages, 1.0) == pytest.approx(expected, abs=1e-5)


def test_pooling_a_zero_text_gives_no_nan() -> None:
    zero = np.zeros((1, 3, DIMENSION), dtype=np.float32)
    encoded = reduce_hidden(zero, np.zeros((1, 3), np.int64), np.eye(DIMENSION, dtype=np.float32))
    assert not np.isnan(encoded.pooled).any()
    assert not encoded.token_vectors.any()


def test_projection_is_orthonormal_and_never_another() -> None:
    projection = token_projection(384)
    np.testing.assert_allclose(projection.T @ projection, np.eye(96), atol=1e-5)
    # Stored vectors are projected with it: a change needs another VECTOR_FORMAT.
    np.testing.assert_allclose(projection[:2, :3], PROJECTION_CORNER, atol=1e-6)


def test_cache_drops_the_least_recently_used_first_and_keeps_its_bound() -> None:
    entry = TextVectors(np.ones((4, 2), np.int8), np.ones(2, np.float32))
    cache = PassageCache(2 * entry.size_bytes)
    cache.put(b"a", entry)
    cache.put(b"b", entry)
    assert cache.get(b"a") is entry
    cache.put(b"c", entry)
    assert (cache.get(b"a"), cache.get(b"b"), cache.get(b"c")) == (entry, None, entry)
    assert cache.size_bytes == 2 * entry.size_bytes


def test_cache_of_no_bytes_keeps_nothing() -> None:
    cache = PassageCache(0)
    cache.put(b"a", TextVectors(np.ones((4, 2), np.int8), np.ones(2, np.float32)))
    assert cache.get(b"a") is None


def test_queries_come_before_reranking_and_passages() -> None:
    assert sorted(Lane) == [Lane.QUERY, Lane.RERANK, Lane.PASSAGE]
