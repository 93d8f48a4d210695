"""Slots that are shared fairly. A plain semaphore serves whoever came first: a book that asks for a hundred slots at once keeps a
note waiting for all of them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class FairSlots:
    """At most `limit` holders at once, at most `per_group` of one group. A slot that falls free goes to the groups in turn, however
    many of each are waiting."""

    def __init__(self, limit: int, per_group: int) -> None:
        self._free = limit
        self._per_group = per_group
        self._held: dict[Hashable, int] = {}
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}
        """Groups in the order of their turns."""

    @asynccontextmanager
    async def hold(self, group: Hashable) -> AsyncIterator[None]:
        """Waits for a slot and holds it for the block."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group, deque()).append(turn)
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back(group)  # it was handed out in the same moment
            else:
                self._leave(group, turn)
            raise
        try:
            yield
        finally:
            self._give_back(group)

    def _hand_out(self) -> None:
        while self._free and (group := self._next()) is not None:
            turns = self._waiting.pop(group)
            turn = turns.popleft()
            if turns:
                self._waiting[group] = turns  # behind all others
            self._free -= 1
            self._held[group] = self._held.get(group, 0) + 1
            turn.set_result(None)

    def _next(self) -> Hashable | None:
        return next((group for group in self._waiting if self._held.get(group, 0) < self._per_group), None)

    def _give_back(self, group: Hashable) -> None:
        self._free += 1
        self._held[group] -= 1
        if not self._held[group]:
            del self._held[group]
        self._hand_out()

    def _leave(self, group: Hashable, turn: asyncio.Future[None]) -> None:
        turns = self._waiting[group]
        turns.remove(turn)
        if not turns:
            del self._waiting[group]
