"""Joins deltas that come fast: one log entry a token would be waste."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from enum import Enum, auto

from kit.llm import Delta, ReasoningDelta, TextDelta

FLUSH_AFTER_S = 0.05
FLUSH_AFTER_PIECES = 40
"""Tokens are written together for at most this long or this many."""
_QUEUED_DELTAS = 1000


class _Mark(Enum):
    NOTHING_YET = auto()
    END = auto()


_Item = Delta | Exception | _Mark


async def coalesced(deltas: AsyncGenerator[Delta, None], clock: Callable[[], float]) -> AsyncGenerator[Delta, None]:
    """The same deltas in the same order, with neighbouring pieces of text (or of thinking) joined. The first goes out at once:
    nobody waits longer for it than the model makes them."""
    arrived: asyncio.Queue[_Item] = asyncio.Queue(maxsize=_QUEUED_DELTAS)
    reader = asyncio.create_task(_pump(deltas, arrived))
    waiting: list[TextDelta | ReasoningDelta] = []
    flush_at = clock()
    try:
        while True:
            item = await _next(arrived, flush_at - clock() if waiting else None)
            is_piece = isinstance(item, TextDelta | ReasoningDelta)
            if waiting and item is not _Mark.NOTHING_YET and type(item) is not type(waiting[0]):
                yield _joined(waiting)
                waiting.clear()
                flush_at = clock() + FLUSH_AFTER_S
            if isinstance(item, TextDelta | ReasoningDelta):
                waiting.append(item)
            if waiting and (clock() >= flush_at or len(waiting) >= FLUSH_AFTER_PIECES):
                yield _joined(waiting)
                waiting.clear()
                flush_at = clock() + FLUSH_AFTER_S
            if isinstance(item, Exception):
                raise item
            if item is _Mark.END:
                return
            if not is_piece and not isinstance(item, _Mark):
                yield item
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


def _joined(pieces: list[TextDelta | ReasoningDelta]) -> Delta:
    return type(pieces[0])("".join(piece.text for piece in pieces))


async def _next(arrived: "asyncio.Queue[_Item]", within_s: float | None) -> _Item:
    try:
        async with asyncio.timeout(within_s):
            return await arrived.get()
    except TimeoutError:
        return _Mark.NOTHING_YET


async def _pump(deltas: AsyncGenerator[Delta, None], arrived: "asyncio.Queue[_Item]") -> None:
    try:
        async with aclosing(deltas) as stream:
            async for delta in stream:
                await arrived.put(delta)
    except Exception as error:
        await arrived.put(error)
    else:
        await arrived.put(_Mark.END)
