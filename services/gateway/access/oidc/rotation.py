"""Rotation of the secret in a login's cookie. A copied cookie is good until its owner's browser has shown the next secret; a copy
that is shown later is noticed. A copy that is used all the time is not: it gets each next secret as a tab of that browser does.

A request that shows the current secret after ROTATED_EVERY_S is answered with the pending one. The pending secret becomes the
current one when it is shown for the first time, so a lost answer costs nothing. It is derived from the current secret and a random
seed of the record: every gateway gives all tabs the same one, and the store still holds digests only. The secret before the current
one stays good for GRACE_S, since requests may be under way. A secret older than that ends the login: somebody has a copy."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any

ROTATED_EVERY_S = 600.0
GRACE_S = 120.0
"""Longer than a browser takes to write a cookie to its disk, and than a request waits for a connection or clocks differ."""
SECRET_LENGTH = 43
"""Of 256 bits, as `secrets.token_urlsafe` writes them."""
_SHORTENED = 16
"""Hex digits kept of an old secret's digest: a login has up to 144 of them, and nobody comes upon 64 bits by chance."""


class SecretPlace(Enum):
    """Which secret of a login is shown."""

    CURRENT = "current"
    PENDING = "pending"
    PREVIOUS = "previous"
    """Replaced less than GRACE_S ago."""
    REUSED = "reused"
    """Replaced before that."""
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Secrets:
    """The secrets of a login, as digests."""

    current: str
    since: float
    """When `current` was shown for the first time, in seconds since the epoch."""
    pending: str = ""
    seed: str = ""
    """Makes the pending secret from the current one; empty while none is pending."""
    previous: str = ""
    older: Sequence[str] = ()
    """Shortened."""

    def place_of(self, digest: str, now: float) -> SecretPlace:
        """Which secret has this digest."""
        if hmac.compare_digest(digest, self.current):
            return SecretPlace.CURRENT
        if hmac.compare_digest(digest, self.pending):
            return SecretPlace.PENDING
        if hmac.compare_digest(digest, self.previous):
            return SecretPlace.PREVIOUS if now < self.since + GRACE_S else SecretPlace.REUSED
        return SecretPlace.REUSED if digest[:_SHORTENED] in self.older else SecretPlace.UNKNOWN

    def after(self, secret: str, now: float) -> "Secrets":
        """What they are once this secret was shown."""
        place = self.place_of(digest_of(secret), now)
        if place is SecretPlace.PENDING:
            older = (*self.older, self.previous[:_SHORTENED]) if self.previous else self.older
            return Secrets(self.pending, now, previous=self.current, older=older)
        if place is SecretPlace.CURRENT and not self.pending and now >= self.since + ROTATED_EVERY_S:
            seed = secrets.token_urlsafe(32)
            return replace(self, seed=seed, pending=digest_of(derive(secret, seed)))
        return self

    def next_of(self, secret: str, now: float) -> str:
        """The pending secret, for a browser that shows the current one; empty where it keeps what it has."""
        is_replaced = bool(self.seed) and self.place_of(digest_of(secret), now) is SecretPlace.CURRENT
        return derive(secret, self.seed) if is_replaced else ""


def derive(secret: str, seed: str) -> str:
    """The secret that follows another one."""
    derived = hmac.digest(secret.encode(), seed.encode(), "sha256")
    return base64.urlsafe_b64encode(derived).decode().rstrip("=")


def digest_of(secret: str) -> str:
    """The store and its backups hold no secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def decode_secrets(stored: Mapping[str, Any]) -> Secrets:
    """Raises one of UNREADABLE."""
    return Secrets(**{each.name: stored[each.name] for each in fields(Secrets)})
