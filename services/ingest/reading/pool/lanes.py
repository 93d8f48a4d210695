"""Who may parse. A file that takes long must not keep the others waiting, of any tenant and any size: a scanned
book takes an hour, and a page made to be slow takes all the time it is given.

There are places to stay in, and one more for first turns. It opens when all others are held by files that take long: large ones,
and those that have had their turn, which is a few seconds. A file that has not had its turn may take it there, and gives the place
back after it: done, moved to a place to stay in, or to be read again from the beginning once there is one."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

SMALL_BYTES = 256 * 1024
"""Files up to this size are small: almost all of them are read within a second or a few."""

_Group = tuple[str, str]
"""Tenant, and whether its file is small, large, or in for the second time. Groups are served in turn, and each in the order of
arrival: so a tenant waits for the others' next file, not for all that they have, and a note not for all large files before it."""


@dataclass(eq=False)
class Place:
    """What a file holds while it is read."""

    lanes: "ParserLanes"
    group: _Group
    turn: "asyncio.Future[None]" = field(repr=False)
    may_stay: bool = False
    is_slow: bool = False

    def end_turn(self) -> bool:
        """Says that the file has had its turn. False when it has to leave, for a place to stay in."""
        return self.lanes.end_turn(self)


class ParserLanes:
    """`size` places to stay in, and one for first turns."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._staying: set[Place] = set()
        self._first_turn: Place | None = None
        self._waiting: dict[_Group, deque[Place]] = {}
        """Groups in the order of their turns."""

    @asynccontextmanager
    async def hold(self, tenant_id: str, size_bytes: int, *, had_turn: bool = False) -> AsyncIterator[Place]:
        """Waits for a place and holds it for the block. `had_turn` is for a file that comes again because its turn was over."""
        kind = "again" if had_turn else "small" if size_bytes <= SMALL_BYTES else "large"
        place = Place(self, (tenant_id, kind), asyncio.get_running_loop().create_future(), is_slow=kind != "small")
        self._waiting.setdefault(place.group, deque()).append(place)
        self._hand_out()
        try:
            await place.turn
        except asyncio.CancelledError:
            self._leave(place)
            raise
        try:
            yield place
        finally:
            self._leave(place)

    def end_turn(self, place: Place) -> bool:
        """See Place."""
        place.is_slow = True
        if place is self._first_turn and len(self._staying) < self._size:
            self._first_turn, place.may_stay = None, True
            self._staying.add(place)
        self._hand_out()
        return place.may_stay

    def _hand_out(self) -> None:
        while self._waiting:
            if len(self._staying) < self._size:
                place = self._next(tuple(self._waiting))
                place.may_stay = True
                self._staying.add(place)
            elif self._first_turn is None and all(held.is_slow for held in self._staying):
                groups = tuple(group for group in self._waiting if group[1] != "again")
                if not groups:
                    return
                place = self._first_turn = self._next(groups)
            else:
                return
            if place.turn.cancelled():  # who waited was stopped in the same moment, and has not left yet
                self._staying.discard(place)
                if place is self._first_turn:
                    self._first_turn = None
                continue
            place.turn.set_result(None)

    def _next(self, groups: tuple[_Group, ...]) -> Place:
        """The first of the group whose turn it is, which then goes behind all others."""
        group = groups[0]
        places = self._waiting.pop(group)
        place = places.popleft()
        if places:
            self._waiting[group] = places
        return place

    def _leave(self, place: Place) -> None:
        if place is self._first_turn:
            self._first_turn = None
        elif place in self._staying:
            self._staying.remove(place)
        elif place in (waiting := self._waiting.get(place.group, deque())):
            waiting.remove(place)
            if not waiting:
                del self._waiting[place.group]
        self._hand_out()
