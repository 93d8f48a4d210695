"""The probes see a loop that stands still."""

import asyncio
import time

from bench.retrieval.stalls import _OWN, _probing


async def test_blocked_loop_shows_as_the_longest_lag() -> None:
    async with asyncio.timeout(60), _probing({}) as times_ms:
        while len(times_ms[_OWN]) < 3:
            await asyncio.sleep(0.01)
        time.sleep(0.15)  # noqa: ASYNC251 - what must not happen
        before = len(times_ms[_OWN])
        while len(times_ms[_OWN]) == before:
            await asyncio.sleep(0)
    assert max(times_ms[_OWN]) > 100


async def test_slow_answer_is_measured_and_a_cut_off_one_is_not() -> None:
    asked = asyncio.Event()

    async def answers_once() -> None:
        if asked.is_set():
            await asyncio.Event().wait()
        await asyncio.sleep(0.02)
        asked.set()

    async with asyncio.timeout(60), _probing({"slow": answers_once}) as times_ms:
        while not times_ms["slow"]:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
    assert len(times_ms["slow"]) == 1
    assert times_ms["slow"][0] >= 20
