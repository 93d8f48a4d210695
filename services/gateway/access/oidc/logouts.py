"""Who was logged out at an issuer (OpenID Connect Back-Channel Logout 1.0), the same at every gateway: tokens of theirs that were
given before let nobody in any more, and end the streams that they opened. Remembered for as long as such a token could live."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from kit.jetstream import Entry, Nats
from kit.stores.followed_settings import FollowedSettings
from services.gateway.access.oidc.issuers import Issuer
from services.gateway.access.oidc.tokens import LONGEST_LIFE_S, Verified
from services.gateway.state import OIDC_LOGOUTS

_PRUNED_EVERY = 1000


class Logouts:
    """`now` is the time of day in seconds since the epoch."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`open` makes it."""
        self._now = now
        self._at: dict[str, float] = {}
        self.settings: FollowedSettings

    @classmethod
    async def open(cls, nats: Nats, now: Callable[[], float]) -> "Logouts":
        """With what is stored in force. Raises Unavailable."""
        logouts = cls(now)
        logouts.settings = await FollowedSettings.open(
            nats, OIDC_LOGOUTS.name, logouts._apply, ttl_s=OIDC_LOGOUTS.kept_for_s
        )
        return logouts

    async def note(self, issuer: Issuer, claims: Mapping[str, Any]) -> None:
        """Somebody was logged out, as a logout token says: of one session, or of all. Returns when this gateway knows. Raises
        Unavailable."""
        name = "sid" if isinstance(claims.get("sid"), str) else "sub"
        at = json.dumps({"at": float(claims["iat"])}).encode()
        await self.settings.put(_key(issuer, name, claims[name]), at)

    def has_ended(self, verified: Verified) -> bool:
        """Whether the token's session, or all of its caller's when it was given, were logged out."""
        claims, issuer = verified.claims, verified.issuer
        if isinstance(claims.get("sid"), str) and _key(issuer, "sid", claims["sid"]) in self._at:
            return True
        if not isinstance(claims.get("sub"), str):
            return False
        return float(claims["iat"]) <= self._at.get(_key(issuer, "sub", claims["sub"]), float("-inf"))

    async def wait_for(self, verified: Verified) -> None:
        """Returns once the token's session was logged out."""
        await self.settings.wait_for(lambda: self.has_ended(verified))

    async def _apply(self, entry: Entry) -> None:
        if entry.value is None:
            self._at.pop(entry.key, None)
            return
        self._at[entry.key] = float(json.loads(entry.value)["at"])
        if len(self._at) % _PRUNED_EVERY == 0:
            oldest = self._now() - 2 * LONGEST_LIFE_S
            self._at = {key: at for key, at in self._at.items() if at > oldest}


def _key(issuer: Issuer, name: str, value: str) -> str:
    """No name of a person is stored."""
    return hashlib.sha256("\n".join((issuer.issuer, name, value)).encode()).hexdigest()
