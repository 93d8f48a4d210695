"""Shares of what is scarce. A plain semaphore serves whoever came first: a book that asks for a hundred shares at once keeps a note
waiting for all of them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class _Turn:
    size: int
    given: "asyncio.Future[None]"


class FairShares:
    """At most `limit` in use at once, at most `per_group` of it by one group. What falls free goes to the groups in turn, however
    much of each is waiting."""

    def __init__(self, limit: int, per_group: int) -> None:
        self._free = limit
        self._per_group = per_group
        self._held: dict[Hashable, int] = {}
        self._waiting: dict[Hashable, deque[_Turn]] = {}
        """Groups in the order of their turns."""

    @asynccontextmanager
    async def hold(self, group: Hashable, size: int) -> AsyncIterator[None]:
        """Waits for `size`, or all that a group may have if that is less, and holds it for the block."""
        turn = _Turn(min(size, self._per_group), asyncio.get_running_loop().create_future())
        self._waiting.setdefault(group, deque()).append(turn)
        self._hand_out()
        try:
            await turn.given
        except asyncio.CancelledError:
            if turn.given.done() and not turn.given.cancelled():
                self._give_back(group, turn.size)  # it was handed out in the same moment
            else:
                self._leave(group, turn)
            raise
        try:
            yield
        finally:
            self._give_back(group, turn.size)

    def _hand_out(self) -> None:
        while (group := self._next()) is not None and self._waiting[group][0].size <= self._free:
            turns = self._waiting.pop(group)
            turn = turns.popleft()
            if turns:
                self._waiting[group] = turns  # behind all others
            self._free -= turn.size
            self._held[group] = self._held.get(group, 0) + turn.size
            turn.given.set_result(None)

    def _next(self) -> Hashable | None:
        """Whose turn it is: nobody is passed over for asking for much, only for having it."""
        return next(
            (
                group
                for group, turns in self._waiting.items()
                if self._held.get(group, 0) + turns[0].size <= self._per_group
            ),
            None,
        )

    def _give_back(self, group: Hashable, size: int) -> None:
        self._free += size
        self._held[group] -= size
        if not self._held[group]:
            del self._held[group]
        self._hand_out()

    def _leave(self, group: Hashable, turn: _Turn) -> None:
        turns = self._waiting[group]
        turns.remove(turn)
        if not turns:
            del self._waiting[group]
        self._hand_out()
