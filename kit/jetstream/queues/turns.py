"""Whose job comes next. Tenants take turns, so that ten thousand jobs of one delay no other; and none may fill all places, so
that a tenant that comes later finds one. A tenant has two lanes, which take turns as well: what a person waits for does not stand
behind a bulk import."""

from collections import Counter
from collections.abc import Callable, Iterable

_ASKED_AGAIN_AFTER_S = (0.01, 0.05, 0.25, 1.0)
"""A server's clock is not ours: a job may come back a moment later than it was to."""
_SHARE = 5 / 8
"""Of the places that others leave, a tenant may have so much: of 64 the first has 40, the next 15, and some are always left."""
_BESIDE_BULK = 1 / 8
"""Of all places, a tenant's ordinary lane may have so much beyond the tenant's share, while its bulk lane fills that share."""
_BULK = "=bulk"
"""Ends the name of a bulk lane. A tenant's name holds no such sign."""


def bulk_lane(tenant: str) -> str:
    """The lane of the tenant's jobs that come in thousands. Its ordinary lane has the tenant's name."""
    return f"{tenant}{_BULK}"


class Turns:
    """Lanes that may have jobs, and how many of each are in hand. A lane is a tenant, or what `bulk_lane` names. `clock` gives
    seconds."""

    def __init__(self, places: int, clock: Callable[[], float]) -> None:
        self._places = places
        self._clock = clock
        self._due: dict[str, dict[str, None]] = {}
        """Tenants and their lanes, both in the order of their turns."""
        self._later: dict[str, float] = {}
        """When a lane is to be asked again."""
        self._retries: dict[str, int] = {}
        """Of lanes whose job was to come back and has not yet: how often they were asked."""
        self._in_hand: Counter[str] = Counter()

    @property
    def in_hand(self) -> int:
        """Jobs of all lanes."""
        return self._in_hand.total()

    def may_have(self, lanes: Iterable[str]) -> None:
        """These have jobs in the queue, which may be waiting, resting or in somebody's hands."""
        for lane in lanes:
            self._make_due(lane)

    def comes_back(self, lane: str, delay_s: float) -> None:
        """A job of the lane is to come back after so many seconds."""
        self._retries[lane] = 0
        self._ask_later(lane, delay_s)

    def next(self) -> str | None:
        """The lane to ask for a job; None when none is due or each of them has its share."""
        self._wake()
        for tenant, lanes in self._due.items():
            for lane in lanes:
                if self._has_room(tenant, lane):
                    del lanes[lane]
                    if not lanes:
                        del self._due[tenant]
                    return lane
        return None

    def took(self, lane: str) -> None:
        """A job of the lane is in hand; there may be more."""
        self._in_hand[lane] += 1
        tenant = _tenant_of(lane)
        lanes = self._due.pop(tenant, {})
        self._due[tenant] = {**lanes, lane: None}  # behind all other tenants, and behind its own other lane

    def nothing(self, lane: str) -> None:
        """The lane had no job to give. Unless one was to come back by now, it is not asked again before something is heard."""
        tried = self._retries.get(lane)
        if tried is None or lane in self._later:
            return
        if tried < len(_ASKED_AGAIN_AFTER_S):
            self._retries[lane] = tried + 1
            self._ask_later(lane, _ASKED_AGAIN_AFTER_S[tried])
        else:
            del self._retries[lane]

    def done(self, lane: str) -> None:
        """A job of the lane is no longer in hand."""
        self._in_hand[lane] -= 1
        if not self._in_hand[lane]:
            del self._in_hand[lane]

    def wait_s(self, longest_s: float) -> float:
        """Seconds until a lane becomes due of itself, at most `longest_s`."""
        return min([longest_s, *(max(0.0, at - self._clock()) for at in self._later.values())])

    def _ask_later(self, lane: str, delay_s: float) -> None:
        at = self._clock() + delay_s
        self._later[lane] = min(at, self._later.get(lane, at))

    def _make_due(self, lane: str) -> None:
        self._due.setdefault(_tenant_of(lane), {}).setdefault(lane)

    def _wake(self) -> None:
        now = self._clock()
        for lane in [lane for lane, at in self._later.items() if at <= now]:
            del self._later[lane]
            self._make_due(lane)

    def _has_room(self, tenant: str, lane: str) -> bool:
        in_bulk = self._in_hand[bulk_lane(tenant)]
        held = self._in_hand[tenant] + in_bulk
        left_by_others = self._places - (self.in_hand - held)
        if held < max(1, int(left_by_others * _SHARE)):
            return True
        return lane == tenant and in_bulk > 0 and self._in_hand[tenant] < max(1, int(self._places * _BESIDE_BULK))


def _tenant_of(lane: str) -> str:
    return lane.removesuffix(_BULK)
