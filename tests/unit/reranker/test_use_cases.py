"""Embedding and reranking over the fakes."""

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from services.reranker.embedding.embedder import Embedding
from services.reranker.embedding.pooling import (
    normalised,
    packed,
    query_vectors,
    reduce_hidden,
    rotation,
    text_vectors,
    token_scale,
    unpacked,
)
from services.reranker.embedding.preparation import Preparation
from services.reranker.errors import RequestExpired, TextCountOutOfRange, TextEmpty
from services.reranker.models import EncodedText, Float32, Lane, TextKind, TextVectors, TokenIds
from services.reranker.reranking.known_texts import KnownTexts
from services.reranker.reranking.late_interaction import Reranking, score
from services.reranker.reranking.passage_cache import TextCache
from tests.unit.reranker.conftest import RunBatcher
from tests.unit.reranker.fakes import DIMENSION, LIMITS, FakeEncoder, GatedEncoder, WordTokenizer

ROTATION_CORNER = [[-0.035971362, 0.047074232, 0.044976208], [0.073439188, 0.093686953, 0.053454217]]


def memory(max_bytes: int, executor: Executor) -> KnownTexts:
    """Known texts that nothing keeps on a disk."""
    return KnownTexts(TextCache(max_bytes), None, executor)


def encoded_text(rng: np.random.Generator, tokens: int) -> EncodedText:
    """A text of `tokens` random token vectors between two others."""
    vectors = normalised(rng.normal(size=(tokens + 2, DIMENSION))) * token_scale(DIMENSION)
    pooled = normalised(rng.normal(size=(1, DIMENSION)))[0]
    return EncodedText(pooled, np.rint(vectors).astype(np.int8), np.arange(tokens + 2))


def alike(ids: TokenIds) -> Float32:
    return np.ones(len(ids), np.float32)


def cosines(left: Float32, right: Float32) -> Float32:
    return np.sum(normalised(left) * normalised(right), axis=1)


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
    assert scores[2] == pytest.approx(1.0, abs=0.1)
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
    assert ranked == [pytest.approx(1.0, abs=0.1)] * 2


async def test_of_ranked_passages_with_the_same_words_the_one_that_has_them_together_scores_higher(
    run_batcher: RunBatcher, executor: Executor
) -> None:
    apart, together = (
        "red is one of many small old things here the lamp",
        "the red lamp is one of many small old things here",
    )
    passages = [apart, together, "a blue moon"]
    async with run_batcher(FakeEncoder()) as batcher:
        reranking = Reranking(Preparation(WordTokenizer(), executor), batcher, memory(10_000, executor), executor)
        alone = await reranking.rerank("red lamp", passages, 20.0)
        ranked = await reranking.rerank("red lamp", passages, 20.0, candidates_are_ranked=True)
    assert alone[0] == pytest.approx(alone[1])
    assert ranked[1] > ranked[0] + 0.1 > ranked[2]


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
    assert first[0] == pytest.approx(first[2], abs=1e-6)


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
    text = replace(encoded_text(np.random.default_rng(1), 0), pooled=np.full(DIMENSION, 1 / 8, np.float32))
    (found,) = score(query_vectors(text, alike), [text_vectors(text)], 0.5)
    assert found == pytest.approx(1.0, abs=0.1)


def test_score_of_a_passage_does_not_depend_on_those_beside_it() -> None:
    rng = np.random.default_rng(3)
    query = query_vectors(encoded_text(rng, 5), alike)
    texts = [encoded_text(rng, tokens) for tokens in rng.integers(1, 40, 100)]
    passages = [text_vectors(text) for text in texts]
    together = score(query, passages, 0.5)
    assert together == pytest.approx([score(query, [passage], 0.5)[0] for passage in passages], abs=1e-6)
    exact = [
        np.max(query.tokens @ text.token_vectors[1:-1].T / token_scale(DIMENSION), axis=1).mean() for text in texts
    ]
    assert score(query, passages, 1.0) == pytest.approx(exact, abs=0.1)


def test_rare_token_of_a_query_counts_more() -> None:
    rng = np.random.default_rng(5)
    both = encoded_text(rng, 2)
    first, second = (replace(both, token_vectors=both.token_vectors[[0, place, -1]]) for place in (1, 2))
    passages = [text_vectors(first), text_vectors(second)]
    even = score(query_vectors(both, alike), passages, 1.0)
    assert even[0] == pytest.approx(even[1], abs=0.1)
    weighted = score(query_vectors(both, lambda ids: np.where(ids == 2, 9.0, 1.0).astype(np.float32)), passages, 1.0)
    assert weighted[1] > even[1] + 0.2
    assert weighted[0] < even[0] - 0.2


def test_two_bits_a_number_keep_angles() -> None:
    rng = np.random.default_rng(7)
    vectors = normalised(rng.normal(size=(500, 384)))
    kept = unpacked(packed(np.rint(vectors * token_scale(384)).astype(np.int8))) / np.sqrt(384)
    assert kept.shape == vectors.shape
    assert cosines(kept, vectors).min() > 0.92
    others = normalised(vectors + 0.03 * rng.normal(size=vectors.shape))
    np.testing.assert_allclose(np.sum(kept * others, axis=1), np.sum(vectors * others, axis=1), atol=0.08)
    assert np.mean(np.sum(kept * vectors, axis=1)) == pytest.approx(1.0, abs=0.01)


def test_pooling_a_zero_text_gives_no_nan() -> None:
    zero = np.zeros((1, 3, DIMENSION), dtype=np.float32)
    encoded = reduce_hidden(zero, np.zeros((1, 3), np.int64), np.eye(DIMENSION, dtype=np.float32))
    assert not np.isnan(encoded.pooled).any()
    assert not encoded.token_vectors.any()


def test_rotation_is_orthonormal_and_never_another() -> None:
    turned = rotation(384)
    np.testing.assert_allclose(turned.T @ turned, np.eye(384), atol=1e-5)
    # Stored vectors are turned by it: a change needs another VECTOR_FORMAT.
    np.testing.assert_allclose(turned[:2, :3], ROTATION_CORNER, atol=1e-6)


def test_cache_drops_the_least_recently_used_first_and_keeps_its_bound() -> None:
    entry = TextVectors(np.ones((4, 2), np.uint8), np.ones(2, np.float32))
    cache = TextCache(2 * entry.size_bytes)
    cache.put(b"a", entry)
    cache.put(b"b", entry)
    assert cache.get(b"a") is entry
    cache.put(b"c", entry)
    assert (cache.get(b"a"), cache.get(b"b"), cache.get(b"c")) == (entry, None, entry)
    assert cache.size_bytes == 2 * entry.size_bytes


def test_cache_of_no_bytes_keeps_nothing() -> None:
    cache = TextCache(0)
    cache.put(b"a", TextVectors(np.ones((4, 2), np.uint8), np.ones(2, np.float32)))
    assert cache.get(b"a") is None


def test_queries_come_before_reranking_and_passages() -> None:
    assert sorted(Lane) == [Lane.QUERY, Lane.RERANK, Lane.PASSAGE]


async def test_query_is_read_once_for_all_who_ask_meanwhile_and_a_moment_later(
    run_batcher: RunBatcher, executor: Executor
) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder, LIMITS) as batcher:
        embedding = Embedding(Preparation(WordTokenizer(), executor), batcher, memory(10_000, executor))
        first = asyncio.create_task(embedding.embed(["where is the ferry"], TextKind.QUERY, 20.0))
        await encoder.next_batch()
        second = asyncio.create_task(embedding.embed(["where is the ferry", "lamp"], TextKind.QUERY, 20.0))
        late = await asyncio.gather(
            embedding.embed(["where is the ferry"], TextKind.QUERY, 0.001), return_exceptions=True
        )
        assert isinstance(late[0], RequestExpired), "a caller that waits for another's query keeps to its own deadline"
        encoder.release(10)
        ours, theirs = await asyncio.gather(first, second)
        again = await embedding.embed(["where is the ferry"], TextKind.QUERY, 20.0)
    np.testing.assert_array_equal(ours.vectors[0], theirs.vectors[0])
    np.testing.assert_array_equal(ours.vectors, again.vectors)
    assert sum(len(batch) for batch in encoder.batches) == 2


async def test_query_of_a_caller_that_gave_up_is_read_for_those_who_waited_for_it(
    run_batcher: RunBatcher, executor: Executor
) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder, LIMITS) as batcher:
        embedding = Embedding(Preparation(WordTokenizer(), executor), batcher, memory(10_000, executor))
        first = asyncio.create_task(embedding.embed(["ferry"], TextKind.QUERY, 20.0))
        await encoder.next_batch()
        second = asyncio.create_task(embedding.embed(["ferry"], TextKind.QUERY, 20.0))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        encoder.release(10)
        assert (await second).vectors.shape == (1, DIMENSION)
