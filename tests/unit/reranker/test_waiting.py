"""What holds for every order of arrivals."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from services.reranker.pooling import mean_pool
from services.reranker.waiting import Request, WaitingTexts
from tests.unit.reranker.fakes import LIMITS, ids

REQUESTS = st.lists(st.lists(st.integers(1, 80), min_size=1, max_size=12), min_size=1, max_size=6)


@given(REQUESTS, st.data())
def test_every_text_is_taken_once_unless_its_request_is_discarded(
    requests: list[list[int]], data: st.DataObject
) -> None:
    loop = asyncio.new_event_loop()
    try:
        waiting = WaitingTexts(LIMITS)
        known = []
        for lengths in requests:
            request = Request(mean_pool, loop.create_future(), 0.0)
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
