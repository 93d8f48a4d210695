"""Whose job comes next. Tenants take turns, so that ten thousand jobs of one do not delay another's; and none may fill all places,
so that whoever comes later finds one."""

from collections import Counter
from collections.abc import Callable, Iterable

_ASKED_AGAIN_AFTER_S = (0.01, 0.05, 0.25, 1.0)
"""A server's clock is not ours: a job may come back a moment later than it was to."""
_SHARE = 5 / 8
"""Of the places that others leave, a tenant may have so much: of 64 the first has 40, the next 15, and some are always left."""


class Turns:
    """Tenants who may have jobs, and how many of each are in hand. `clock` gives seconds."""

    def __init__(self, places: int, clock: Callable[[], float]) -> None:
        self._places = places
        self._clock = clock
        self._due: dict[str, None] = {}
        """In the order of their turns."""
        self._later: dict[str, float] = {}
        """When a tenant is to be asked again."""
        self._retries: dict[str, int] = {}
        """Of tenants whose job was to come back and has not yet: how often they were asked."""
        self._in_hand: Counter[str] = Counter()

    @property
    def in_hand(self) -> int:
        """Jobs of all tenants."""
        return self._in_hand.total()

    def may_have(self, tenants: Iterable[str]) -> None:
        """These have jobs in the queue, which may be waiting, resting or in somebody's hands."""
        for tenant in tenants:
            self._make_due(tenant)

    def comes_back(self, tenant: str, delay_s: float) -> None:
        """A job of the tenant is to come back after so many seconds."""
        self._retries[tenant] = 0
        self._ask_later(tenant, delay_s)

    def next(self) -> str | None:
        """The tenant to ask for a job; None when none is due or each of them has its share."""
        self._wake()
        for tenant in self._due:
            if self._has_room(tenant):
                del self._due[tenant]
                return tenant
        return None

    def took(self, tenant: str) -> None:
        """A job of the tenant is in hand; there may be more."""
        self._in_hand[tenant] += 1
        self._make_due(tenant)

    def nothing(self, tenant: str) -> None:
        """The tenant had no job to give. Unless one was to come back by now, it is not asked again before something is heard."""
        tried = self._retries.get(tenant)
        if tried is None or tenant in self._later:
            return
        if tried < len(_ASKED_AGAIN_AFTER_S):
            self._retries[tenant] = tried + 1
            self._ask_later(tenant, _ASKED_AGAIN_AFTER_S[tried])
        else:
            del self._retries[tenant]

    def done(self, tenant: str) -> None:
        """A job of the tenant is no longer in hand."""
        self._in_hand[tenant] -= 1
        if not self._in_hand[tenant]:
            del self._in_hand[tenant]

    def wait_s(self, longest_s: float) -> float:
        """Seconds until a tenant becomes due of itself, at most `longest_s`."""
        return min([longest_s, *(max(0.0, at - self._clock()) for at in self._later.values())])

    def _ask_later(self, tenant: str, delay_s: float) -> None:
        at = self._clock() + delay_s
        self._later[tenant] = min(at, self._later.get(tenant, at))

    def _make_due(self, tenant: str) -> None:
        self._due.setdefault(tenant)

    def _wake(self) -> None:
        now = self._clock()
        for tenant in [tenant for tenant, at in self._later.items() if at <= now]:
            del self._later[tenant]
            self._make_due(tenant)

    def _has_room(self, tenant: str) -> bool:
        held = self._in_hand[tenant]
        left_by_others = self._places - (self.in_hand - held)
        return held < max(1, int(left_by_others * _SHARE))
