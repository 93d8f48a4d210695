"""Who was logged out at an issuer (OpenID Connect Back-Channel Logout 1.0), the same at every gateway: tokens of theirs that were
given before let nobody in any more, and end the streams that they opened. Remembered for as long as such a token could live."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from kit.jetstream import Entry, Nats
from kit.stores.followed_settings import FollowedSettings
from services.gateway.access.oidc.issuers import Issuer
from services.gateway.access.oidc.tokens import LONGEST_LIFE_S
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
        await self.settings.put(_key(issuer, name, claims[name]), encode(float(claims["iat"])))

    async def end_session(self, issuer: Issuer, session_id: str) -> None:
        """Somebody logged out here. Returns when this gateway knows. Raises Unavailable."""
        await self.settings.put(_key(issuer, "session", session_id), encode(self._now()))

    def has_ended(self, issuer: Issuer, claims: Mapping[str, Any], session_id: str = "") -> bool:
        """Whether what was given to somebody with these claims is good for nothing any more: its session, or all of theirs when it
        was given, were logged out."""
        if session_id and _key(issuer, "session", session_id) in self._at:
            return True
        if isinstance(claims.get("sid"), str) and _key(issuer, "sid", claims["sid"]) in self._at:
            return True
        if not isinstance(claims.get("sub"), str):
            return False
        return float(claims["iat"]) <= self._at.get(_key(issuer, "sub", claims["sub"]), float("-inf"))

    async def wait_for(self, holds: Callable[[], bool]) -> None:
        """Returns once `holds` is true; it is asked after each logout."""
        await self.settings.wait_for(holds)

    async def _apply(self, entry: Entry) -> None:
        if entry.value is None:
            self._at.pop(entry.key, None)
            return
        self._at[entry.key] = decode(entry.value)
        if len(self._at) % _PRUNED_EVERY == 0:
            oldest = self._now() - 2 * LONGEST_LIFE_S
            self._at = {key: at for key, at in self._at.items() if at > oldest}


def encode(at: float) -> bytes:
    """A logout, by when it was: what was given later is good."""
    return json.dumps({"at": at}).encode()


def decode(data: bytes) -> float:
    """Raises one of UNREADABLE."""
    return float(json.loads(data)["at"])


def _key(issuer: Issuer, name: str, value: str) -> str:
    """No name of a person is stored."""
    return hashlib.sha256("\n".join((issuer.issuer, name, value)).encode()).hexdigest()
