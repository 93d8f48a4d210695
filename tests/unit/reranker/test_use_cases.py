"""Embedding and reranking over the fakes."""

from concurrent.futures import Executor

import numpy as np
import pytest

from services.reranker.embedding import Embedding
from services.reranker.errors import TextCountOutOfRange, TextEmpty
from services.reranker.models import Lane, TextKind, TextVectors
from services.reranker.passage_cache import PassageCache
from services.reranker.pooling import mean_pool, text_vectors
from services.reranker.preparation import Preparation
from services.reranker.reranking import Reranking, score
from tests.unit.reranker.conftest import RunBatcher
from tests.unit.reranker.fakes import DIMENSION, FakeEncoder, WordTokenizer


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
    await Preparation(tokenizer, executor).token_ids(["a" * 1_000_000])
    assert tokenizer.longest == 64 * tokenizer.window_tokens


async def test_passage_with_the_words_of_the_query_scores_highest(run_batcher: RunBatcher, executor: Executor) -> None:
    async with run_batcher(FakeEncoder()) as batcher:
        reranking = Reranking(Preparation(WordTokenizer(), executor), batcher, PassageCache(10_000), executor)
        passages = ["blue moon over paris", "red green lamp", "red lamp"]
        scores = await reranking.rerank("red lamp", passages, 20.0)
    assert sorted(range(3), key=lambda n: -scores[n]) == [2, 1, 0]
    assert scores[2] == pytest.approx(1.0, abs=0.01)
    assert all(-1.0 <= value <= 1.0 for value in scores)


async def test_passages_met_before_are_not_encoded_again_and_score_the_same(
    run_batcher: RunBatcher, executor: Executor
) -> None:
    encoder = FakeEncoder()
    passages = ["red lamp", "blue moon", "red lamp"]
    async with run_batcher(encoder) as batcher:
        reranking = Reranking(Preparation(WordTokenizer(), executor), batcher, PassageCache(10_000), executor)
        first = await reranking.rerank("red", passages, 20.0)
        texts = sum(len(batch) for batch in encoder.batches)
        second = await reranking.rerank("red", passages, 20.0)
    assert texts == 3
    assert sum(len(batch) for batch in encoder.batches) == texts + 1
    assert first == second
    assert first[0] == first[2]


async def test_blank_query_and_blank_passage_are_refused(run_batcher: RunBatcher, executor: Executor) -> None:
    async with run_batcher(FakeEncoder()) as batcher:
        reranking = Reranking(Preparation(WordTokenizer(), executor), batcher, PassageCache(0), executor)
        with pytest.raises(TextEmpty, match="query_text"):
            await reranking.rerank(" ", ["one"], 20.0)
        with pytest.raises(TextEmpty, match=r"passages\[0\]"):
            await reranking.rerank("one", [""], 20.0)


def test_text_of_special_tokens_only_still_has_a_score() -> None:
    bare = text_vectors(np.ones((2, DIMENSION), dtype=np.float32))
    assert score(bare, [bare]) == [pytest.approx(1.0, abs=0.01)]


def test_pooling_a_zero_text_gives_no_nan() -> None:
    assert not np.isnan(mean_pool(np.zeros((3, DIMENSION), dtype=np.float32))).any()


def test_cache_drops_the_least_recently_used_first_and_keeps_its_bound() -> None:
    entry = TextVectors(np.ones((4, 2), dtype=np.float16), np.ones(2, dtype=np.float32))
    cache = PassageCache(2 * entry.size_bytes)
    cache.put(b"a", entry)
    cache.put(b"b", entry)
    assert cache.get(b"a") is entry
    cache.put(b"c", entry)
    assert (cache.get(b"a"), cache.get(b"b"), cache.get(b"c")) == (entry, None, entry)
    assert cache.size_bytes == 2 * entry.size_bytes


def test_cache_of_no_bytes_keeps_nothing() -> None:
    cache = PassageCache(0)
    cache.put(b"a", TextVectors(np.ones((4, 2), dtype=np.float16), np.ones(2, dtype=np.float32)))
    assert cache.get(b"a") is None


def test_queries_come_before_reranking_and_passages() -> None:
    assert sorted(Lane) == [Lane.QUERY, Lane.RERANK, Lane.PASSAGE]
