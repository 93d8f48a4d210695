"""Who may parse. Files are parsed in the order of their arrival, a few at once; but while large ones hold every place, small ones
go by on one place of their own: a scanned book takes an hour, and a note should not wait for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

SMALL_BYTES = 256 * 1024
"""Files up to this size are small: almost all of them are read within a second or a few."""


@dataclass(frozen=True, eq=False)
class _Waiter:
    small: bool
    turn: "asyncio.Future[bool]"
    """Resolves to whether the place is the express one."""


class ParserLanes:
    """`size` places for all files, and an express one for small files."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held = self._held_by_large = 0
        self._express_held = False
        self._waiting: list[_Waiter] = []

    @asynccontextmanager
    async def hold(self, size_bytes: int) -> AsyncIterator[None]:
        """Waits for a place for a file of that size and holds it for the block."""
        waiter = _Waiter(size_bytes <= SMALL_BYTES, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._hand_out()
        try:
            express = await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled():
                self._give_back(waiter, express=waiter.turn.result())
            else:
                self._waiting.remove(waiter)
            raise
        try:
            yield
        finally:
            self._give_back(waiter, express=express)

    def _hand_out(self) -> None:
        for waiter in list(self._waiting):
            if self._held < self._size:
                self._held += 1
                self._held_by_large += not waiter.small
                self._waiting.remove(waiter)
                waiter.turn.set_result(False)
            elif waiter.small and self._held_by_large >= self._size and not self._express_held:
                self._express_held = True
                self._waiting.remove(waiter)
                waiter.turn.set_result(True)

    def _give_back(self, waiter: _Waiter, *, express: bool) -> None:
        if express:
            self._express_held = False
        else:
            self._held -= 1
            self._held_by_large -= not waiter.small
        self._hand_out()
