"""What holds for every order of arrivals."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from services.reranker.batching.waiting import Request, WaitingTexts
from services.reranker.embedding.pooling import pooled
from tests.unit.reranker.fakes import LIMITS, ids

REQUESTS = st.lists(st.lists(st.integers(1, 80), min_size=1, max_size=12), min_size=1, max_size=6)


@given(REQUESTS, st.booleans(), st.data())
def test_every_text_is_taken_once_unless_its_request_is_discarded(
    requests: list[list[int]], in_bulk: bool, data: st.DataObject
) -> None:
    loop = asyncio.new_event_loop()
    try:
        waiting = WaitingTexts(LIMITS, in_bulk=in_bulk)
        known = []
        for lengths in requests:
            request = Request(pooled, loop.create_future(), 0.0)
            waiting.add(request, [ids(1, length=length) for length in lengths])
            known.append(request)
        dropped = data.draw(st.sampled_from([*known, None]))
        if dropped is not None:
            dropped.future.cancel()
        taken = []
        while batch := waiting.take():
            width = max(item.width for item in batch)
            assert len(batch) == 1 or width * len(batch) <= LIMITS.max_tokens
            taken += [(id(item.request), item.position) for item in batch]
        expected = {(id(r), n) for r, t in zip(known, requests, strict=True) if r is not dropped for n in range(len(t))}
        assert len(taken) == len(set(taken))
        assert set(taken) == expected
        assert waiting.tokens == 0
        assert not waiting
    finally:
        loop.close()


def test_bulk_is_swept_from_long_to_short_and_what_arrives_meanwhile_waits_for_the_next_sweep() -> None:
    loop = asyncio.new_event_loop()
    try:
        waiting = WaitingTexts(LIMITS, in_bulk=True)
        waiting.add(Request(pooled, loop.create_future(), 0.0), [ids(1, length=n) for n in (60, 40, 20) * 2])
        widths = []
        for arriving in ([60, 60], [], [], [], [], [], []):
            widths.append([item.width for item in waiting.take()])
            if arriving:
                waiting.add(Request(pooled, loop.create_future(), 0.0), [ids(1, length=n) for n in arriving])
        assert widths == [[60], [60], [40], [40], [20, 20], [60], [60]]
    finally:
        loop.close()
