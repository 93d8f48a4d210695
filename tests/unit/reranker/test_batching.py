"""Batching over an encoder whose batches the test starts and ends."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from kit.errors import Code
from services.reranker.batching.batching import LARGEST_PATIENCE, Batcher
from services.reranker.embedding.pooling import pooled
from services.reranker.errors import DeviceMemoryExhausted, EncoderFailed, QueueFull, RequestExpired, ShuttingDown
from services.reranker.models import Encoded, Int64, Lane
from tests.unit.reranker.conftest import RunBatcher
from tests.unit.reranker.fakes import LIMITS, FakeEncoder, GatedEncoder, ids

ONE_TEXT_A_BATCH = replace(LIMITS, max_texts=1)


async def settled() -> None:
    """Lets tasks that were just created reach their first real wait."""
    for _ in range(3):
        await asyncio.sleep(0)


def embed(batcher: Batcher, lane: Lane, *tokens: int, length: int = 4) -> "asyncio.Task[list[object]]":
    texts = [ids(token, length=length) for token in tokens]
    return asyncio.create_task(batcher.submit(texts, pooled, lane, 20.0))


async def test_each_stream_works_on_a_batch_of_its_own(run_batcher: RunBatcher) -> None:
    encoder = GatedEncoder(streams=2)
    async with run_batcher(encoder) as batcher:
        first, second = embed(batcher, Lane.PASSAGE, 10), embed(batcher, Lane.PASSAGE, 11)
        assert sorted([await encoder.next_batch(), await encoder.next_batch()]) == [[10], [11]]
        third = embed(batcher, Lane.QUERY, 12)
        encoder.release()
        assert await encoder.next_batch() == [12]
        encoder.release(2)
        await asyncio.gather(first, second, third)


async def test_free_streams_share_a_lone_request(run_batcher: RunBatcher) -> None:
    encoder = GatedEncoder(streams=2)
    async with run_batcher(encoder) as batcher:
        await settled()
        request = embed(batcher, Lane.RERANK, 10, 11, 12, 13)
        assert sorted([len(await encoder.next_batch()), len(await encoder.next_batch())]) == [2, 2]
        encoder.release(2)
        assert len(await request) == 4


async def test_results_keep_the_order_of_the_texts_when_batches_are_sorted_by_length(run_batcher: RunBatcher) -> None:
    encoder = FakeEncoder()
    texts = [ids(number, length=length) for number, length in enumerate((3, 40, 7, 1, 22, 40, 9, 2, 60, 5), start=10)]
    async with run_batcher(encoder) as batcher:
        together = await batcher.submit(texts, pooled, Lane.PASSAGE, 20.0)
        alone = [(await batcher.submit([text], pooled, Lane.PASSAGE, 20.0))[0] for text in texts]
    np.testing.assert_allclose(np.stack(together), np.stack(alone), rtol=1e-5)


async def test_batches_stay_within_the_token_budget_and_pad_little(run_batcher: RunBatcher) -> None:
    encoder = FakeEncoder()
    lengths = [1 + (7 * n) % 60 for n in range(200)]
    async with run_batcher(encoder) as batcher:
        await batcher.submit([ids(5, length=length) for length in lengths], pooled, Lane.PASSAGE, 20.0)
    assert all(batch.size <= LIMITS.max_tokens and len(batch) <= LIMITS.max_texts for batch in encoder.batches)
    assert sum(batch.size for batch in encoder.batches) < 1.25 * sum(lengths)


async def test_text_longer_than_the_budget_gets_a_batch_of_its_own(run_batcher: RunBatcher) -> None:
    encoder = FakeEncoder()
    async with run_batcher(encoder) as batcher:
        await batcher.submit([ids(5, length=100), ids(6, length=100)], pooled, Lane.PASSAGE, 20.0)
    assert [len(batch) for batch in encoder.batches] == [1, 1]


async def test_callers_that_arrive_while_the_model_works_share_the_next_batch(run_batcher: RunBatcher) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder) as batcher:
        first = embed(batcher, Lane.QUERY, 10)
        assert await encoder.next_batch() == [10]
        others = [embed(batcher, Lane.QUERY, token) for token in (11, 12, 13)]
        await settled()
        encoder.release(2)
        assert sorted(await encoder.next_batch()) == [11, 12, 13]
        await asyncio.gather(first, *others)


async def test_query_waits_for_one_batch_of_a_long_passage_job_only(run_batcher: RunBatcher) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder) as batcher:
        job = embed(batcher, Lane.PASSAGE, *range(100, 400), length=32)
        await encoder.next_batch()
        query = embed(batcher, Lane.QUERY, 10)
        await settled()
        encoder.release()
        assert await encoder.next_batch() == [10]
        encoder.release()
        await query
        assert not job.done()
        job.cancel()
        encoder.release()


async def test_reranking_goes_before_passages_and_after_queries(run_batcher: RunBatcher) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder) as batcher:
        first = embed(batcher, Lane.PASSAGE, 99)
        await encoder.next_batch()
        later = [
            embed(batcher, lane, token) for lane, token in ((Lane.PASSAGE, 30), (Lane.RERANK, 20), (Lane.QUERY, 10))
        ]
        await settled()
        encoder.release(4)
        assert [await encoder.next_batch() for _ in later] == [[10], [20], [30]]
        await asyncio.gather(first, *later)


async def test_passages_get_a_batch_though_queries_keep_waiting(run_batcher: RunBatcher) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder, ONE_TEXT_A_BATCH) as batcher:
        work = [embed(batcher, Lane.QUERY, *range(10, 30))]
        await encoder.next_batch()
        work.append(embed(batcher, Lane.PASSAGE, 99))
        await settled()
        encoder.release(21)
        order = [(await encoder.next_batch())[0] for _ in range(20)]
        assert order.index(99) == LARGEST_PATIENCE
        await asyncio.gather(*work)


async def test_small_passage_job_is_not_held_up_by_a_large_one(run_batcher: RunBatcher) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder, ONE_TEXT_A_BATCH) as batcher:
        large = embed(batcher, Lane.PASSAGE, *range(100, 120), length=32)
        await encoder.next_batch()
        small = embed(batcher, Lane.PASSAGE, 10, length=4)
        await settled()
        encoder.release(21)
        assert [10] in [await encoder.next_batch() for _ in range(2)]
        await asyncio.gather(large, small)


async def test_texts_of_a_cancelled_caller_never_reach_the_model(run_batcher: RunBatcher) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder) as batcher:
        first = embed(batcher, Lane.PASSAGE, 10)
        await encoder.next_batch()
        abandoned = embed(batcher, Lane.PASSAGE, *range(50, 60))
        await settled()
        abandoned.cancel()
        last = embed(batcher, Lane.PASSAGE, 11)
        await settled()
        encoder.release(2)
        await asyncio.gather(first, last)
    assert encoder.seen() == {10, 11}


async def test_texts_of_a_caller_whose_deadline_passed_never_reach_the_model(run_batcher: RunBatcher) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder) as batcher:
        first = embed(batcher, Lane.PASSAGE, 10)
        await encoder.next_batch()
        with pytest.raises(RequestExpired, match="deadline passed before the model had read 1 texts"):
            await batcher.submit([ids(50)], pooled, Lane.QUERY, 0.01)
        encoder.release()
        await first
    assert encoder.seen() == {10}


async def test_full_lane_refuses_with_a_time_to_come_back_and_other_lanes_stay_open(run_batcher: RunBatcher) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder, replace(LIMITS, max_queued_tokens=64)) as batcher:
        first = embed(batcher, Lane.PASSAGE, 10, length=64)
        await encoder.next_batch()
        second = embed(batcher, Lane.PASSAGE, 11, length=48)
        await settled()
        with pytest.raises(QueueFull) as refused:
            await batcher.submit([ids(12, length=32)], pooled, Lane.PASSAGE, 20.0)
        assert refused.value.code is Code.RESOURCE_EXHAUSTED
        assert refused.value.retry_after_s is not None
        assert refused.value.retry_after_s > 0
        query = embed(batcher, Lane.QUERY, 13)
        await settled()
        encoder.release(3)
        await asyncio.gather(first, second, query)
    assert encoder.seen() == {10, 11, 13}


async def test_largest_request_is_taken_by_an_empty_lane(run_batcher: RunBatcher) -> None:
    async with run_batcher(FakeEncoder(), replace(LIMITS, max_queued_tokens=8)) as batcher:
        assert len(await batcher.submit([ids(5, length=64)] * 20, pooled, Lane.PASSAGE, 20.0)) == 20


async def test_batch_that_the_runtime_refuses_fails_its_callers_and_no_others(run_batcher: RunBatcher) -> None:
    encoder = FakeEncoder()
    async with run_batcher(encoder) as batcher:
        encoder.error = EncoderFailed("out of memory")
        with pytest.raises(EncoderFailed, match="out of memory"):
            await batcher.submit([ids(5)], pooled, Lane.QUERY, 20.0)
        encoder.error = None
        assert len(await batcher.submit([ids(6)], pooled, Lane.QUERY, 20.0)) == 1


async def test_shutdown_tells_those_who_wait_and_those_who_come_later(run_batcher: RunBatcher) -> None:
    encoder = GatedEncoder()
    async with run_batcher(encoder) as batcher:
        in_hand = embed(batcher, Lane.PASSAGE, 10)
        await encoder.next_batch()
        waiting = embed(batcher, Lane.PASSAGE, 11)
        await settled()
        # Once it has begun to shut down. The second, for a batch that begins as the first ends.
        asyncio.get_running_loop().call_soon(encoder.release, 2)
    outcomes = await asyncio.gather(in_hand, waiting, return_exceptions=True)
    assert isinstance(outcomes[1], ShuttingDown)
    with pytest.raises(ShuttingDown):
        await batcher.submit([ids(12)], pooled, Lane.QUERY, 20.0)


class SmallMemory(FakeEncoder):
    """Holds two texts at a time."""

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Encoded:
        hidden = super().encode(input_ids, attention_mask)
        if len(input_ids) > 2:
            raise DeviceMemoryExhausted("out of memory")
        return hidden


async def test_batch_that_exceeds_the_memory_is_computed_in_halves_and_later_ones_are_smaller(
    run_batcher: RunBatcher,
) -> None:
    encoder = SmallMemory()
    texts = [ids(token, length=8) for token in range(10, 18)]
    async with run_batcher(encoder) as batcher:
        first = await batcher.submit(texts, pooled, Lane.PASSAGE, 20.0)
        tried = len(encoder.batches)
        second = await batcher.submit(texts, pooled, Lane.PASSAGE, 20.0)
    np.testing.assert_allclose(np.stack(first), np.stack(second), rtol=1e-5)
    assert [len(batch) for batch in encoder.batches[:tried]] == [8, 4, 2, 2, 4, 2, 2]
    assert all(len(batch) <= 2 for batch in encoder.batches[tried:])


async def test_text_that_exceeds_the_memory_alone_fails_its_caller(run_batcher: RunBatcher) -> None:
    encoder = FakeEncoder()
    encoder.error = DeviceMemoryExhausted("out of memory")
    async with run_batcher(encoder) as batcher:
        with pytest.raises(DeviceMemoryExhausted):
            await batcher.submit([ids(5), ids(6)], pooled, Lane.PASSAGE, 20.0)


async def test_lane_with_a_model_of_its_own_is_computed_by_it(run_batcher: RunBatcher) -> None:
    embedder, scorer = FakeEncoder(), FakeEncoder()
    batcher = Batcher(embedder, LIMITS, others={Lane.RERANK: scorer})
    task = asyncio.create_task(batcher.run())
    await batcher.submit([ids(5)], pooled, Lane.QUERY, 20.0)
    await batcher.submit([ids(6)], pooled, Lane.RERANK, 20.0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (embedder.seen(), scorer.seen()) == ({5}, {6})


async def test_batch_holds_texts_for_one_encoder_and_all_are_read(run_batcher: RunBatcher) -> None:
    usual, other = FakeEncoder(), FakeEncoder()
    async with run_batcher(usual) as batcher, asyncio.TaskGroup() as group:
        for token in range(10, 30):
            encoder = other if token % 2 else None
            group.create_task(batcher.submit([ids(token, length=4)], pooled, Lane.PASSAGE, 20.0, encoder=encoder))
    assert usual.seen() == set(range(10, 30, 2))
    assert other.seen() == set(range(11, 30, 2))


@pytest.mark.parametrize(
    ("lane", "tokens", "length", "width"),
    [(Lane.QUERY, 1, 17, 20), (Lane.QUERY, 2, 17, 32), (Lane.QUERY, 1, 33, 48), (Lane.PASSAGE, 1, 17, 32)],
)
async def test_short_query_that_is_computed_alone_is_padded_little(
    run_batcher: RunBatcher, lane: Lane, tokens: int, length: int, width: int
) -> None:
    encoder = FakeEncoder()
    limits = replace(LIMITS, max_tokens=512, pad_to_multiple=16, pad_lone_query_to=4)
    async with run_batcher(encoder, limits) as batcher:
        await embed(batcher, lane, *range(10, 10 + tokens), length=length)
    assert [batch.shape for batch in encoder.batches] == [(tokens, width)]
