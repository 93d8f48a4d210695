"""Guests of the installation (bucket `GUESTS`): in memory at each gateway, which follows the bucket. A guest's record outlives the
guest's stay until all that the guest made is removed, and a second look has found nothing."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace

from kit.access.principal import INGEST, QUERY, Principal
from kit.errors import Aborted, AlreadyExists, ResourceExhausted, Unauthenticated, Unavailable
from kit.jetstream import Entry, KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from kit.stores.followed_bucket import FollowedBucket
from services.gateway.access.auth import GUEST, GUEST_COOKIE
from services.gateway.access.guests.puzzles import ProofRefused
from services.gateway.state import GUESTS

_HOUR_S = 3600.0


class GuestGone(Unauthenticated):
    """The guest's stay is over, or never began."""

    reason = "GUEST_GONE"


class TooManyGuests(ResourceExhausted):
    """All places for guests are taken."""

    reason = "TOO_MANY_GUESTS"


class GuestsStale(Unavailable):
    """This gateway has not heard lately which guests have left."""

    reason = "GUESTS_STALE"


@dataclass(frozen=True)
class Guest:
    """A guest. Times are seconds since the epoch."""

    guest_id: str
    secret: str
    """SHA-256 of the secret in the guest's cookie."""
    origin: str
    """A keyed digest of the address, by which guests of one address are counted; empty behind a proxy."""
    made_at: float
    ends_at: float
    swept_at: float = 0.0
    """When all that the guest made was removed last; 0 before."""
    tenant_id: str = ""
    """Of the guest, whatever tenant guests have now. Empty in records of version 0.1.0."""

    def principal(self, tenant_id: str) -> Principal:
        """Who the guest is; `tenant_id` is the tenant of guests whose record names none."""
        return Principal(
            self.tenant_id or tenant_id, f"guest-{self.guest_id}", frozenset({QUERY, INGEST}), groups=frozenset({GUEST})
        )


class Guests(FollowedBucket[Guest | None]):
    """All guests. `open` makes it; `now` is the time of day in seconds since the epoch."""

    def __init__(
        self, bucket: KeyValue, now: Callable[[], float], *, staleness_s: float, clock: Callable[[], float]
    ) -> None:
        super().__init__(bucket, _decoded, _stale, staleness_s=staleness_s, clock=clock)
        self._now = now

    @classmethod
    async def open(
        cls, nats: Nats, now: Callable[[], float], *, staleness_s: float, clock: Callable[[], float]
    ) -> "Guests":
        """Raises Unavailable."""
        return cls(await KeyValue.open(nats, GUESTS.name), now, staleness_s=staleness_s, clock=clock)

    def find(self, cookie: str) -> Guest:
        """The guest whose cookie is shown. Raises GuestGone, GuestsStale."""
        self.require_fresh()
        guest_id, _, secret = cookie.removeprefix(GUEST_COOKIE).partition(".")
        guest = self._records.get(guest_id)
        known = guest.secret if guest else ""
        if not hmac.compare_digest(known, _digest(secret)) or guest is None or not self.is_here(guest):
            raise GuestGone("your stay as a guest is over; begin another one, or sign in")
        return guest

    def is_here(self, guest: Guest) -> bool:
        """Whether the guest's stay lasts."""
        return self._now() < guest.ends_at

    def has_place(self, guest: Guest, hours: float) -> bool:
        """Whether the guest takes a place. A guest who leaves early frees none: else one person had any number of budgets."""
        return self._now() < max(guest.ends_at, guest.made_at + hours * _HOUR_S)

    def counts(self, origin: str, hours: float) -> tuple[int, int]:
        """How many places guests of an address take, and how many all guests. Raises GuestsStale."""
        self.require_fresh()
        placed = [guest for guest in self._records.values() if guest is not None and self.has_place(guest, hours)]
        return sum(bool(origin) and guest.origin == origin for guest in placed), len(placed)

    async def begin(self, guest_id: str, origin: str, hours: float, tenant_id: str) -> tuple[str, Guest]:
        """Keeps a new guest; returns the value of the cookie, and the guest. Raises Unavailable, ProofRefused for a used id."""
        secret, now = secrets.token_urlsafe(32), self._now()
        guest = Guest(guest_id, _digest(secret), origin, now, now + hours * _HOUR_S, tenant_id=tenant_id)
        try:
            written = await self._bucket.create(guest_id, encode(guest))
        except AlreadyExists as error:
            raise ProofRefused("this challenge was used; get another one") from error
        await self.wait_written(written)
        return f"{GUEST_COOKIE}{guest_id}.{secret}", guest

    async def leave(self, guest: Guest) -> None:
        """Ends a guest's stay now, at all gateways. Harmless when repeated. Raises Unavailable."""
        await self._change(guest, replace(guest, ends_at=min(guest.ends_at, self._now())))

    async def note_swept(self, guest: Guest) -> None:
        """What the guest made is removed; it is looked for again later. Raises Unavailable."""
        await self._change(guest, replace(guest, swept_at=self._now()))

    async def forget(self, guest: Guest) -> None:
        """Nothing of the guest is left. Raises Unavailable."""
        await self._bucket.purge(guest.guest_id)

    def gone(self) -> Sequence[Guest]:
        """Guests whose stay is over, and who are not forgotten. Raises GuestsStale."""
        self.require_fresh()
        return [guest for guest in self._records.values() if guest is not None and not self.is_here(guest)]

    async def wait_gone(self, guest: Guest) -> None:
        """Returns once the record of a guest says that the stay is over, by a change of it; not when its time ends."""

        def is_gone() -> bool:
            known = self._records.get(guest.guest_id)
            return known is None or known.ends_at < guest.ends_at

        async with self._progress:
            await self._progress.wait_for(is_gone)

    async def _change(self, guest: Guest, changed: Guest) -> None:
        entry = await self._bucket.get(guest.guest_id)
        if entry is None or _decoded(entry) != guest:
            return  # somebody else has changed it, or it is gone
        try:
            await self.wait_written(await self._bucket.update(guest.guest_id, encode(changed), entry.revision))
        except Aborted:
            return


def encode(guest: Guest) -> bytes:
    """As it is stored."""
    return json.dumps(asdict(guest)).encode()


def decode(data: bytes) -> Guest:
    """Raises one of UNREADABLE."""
    stored = json.loads(data)
    known = {each.name: stored[each.name] for each in fields(Guest) if each.name != "tenant_id"}
    return Guest(**known, tenant_id=stored.get("tenant_id", ""))


def _decoded(entry: Entry) -> Guest | None:
    """None for what cannot be read: it is named in the log."""
    try:
        return decode(entry.value or b"")
    except UNREADABLE as error:
        set_aside(GUESTS.name, entry.key, error)
        return None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _stale(staleness_s: float) -> GuestsStale:
    return GuestsStale(
        f"for over {staleness_s:g} s this gateway has not heard which guests have left, so it lets none in; it goes on by itself "
        "once the message store (NATS) answers again",
        retry_after_s=2.0,
    )
