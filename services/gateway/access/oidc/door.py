"""Lets in who shows a token of an issuer that the operator lists."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from kit.errors import Unauthenticated
from kit.jetstream import Nats
from services.gateway.access.auth import FIRST_KEYS_S, Admission
from services.gateway.access.key_ring import ApiKeysUnknown
from services.gateway.access.oidc.issuers import Issuers
from services.gateway.access.oidc.key_sets import KeySets
from services.gateway.access.oidc.logouts import Logouts
from services.gateway.access.oidc.tokens import TokenOver, TokenReader, Verified

_RECHECK_S = 5.0
"""How often who waits for the end of a token looks at the clock again: it may have been set."""


class TokenRevoked(Unauthenticated):
    """The caller was logged out at the issuer."""

    reason = "TOKEN_REVOKED"


class TokenDoor:
    """The issuers' tokens at this gateway. `now` is the time of day in seconds since the epoch, `clock` counts seconds."""

    def __init__(
        self, issuers: Issuers, *, now: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuers = issuers
        self._now = now
        self._key_sets = KeySets(clock)
        self._reader = TokenReader(issuers, self._key_sets, now)
        self._logouts: Logouts | None = None
        self._knows_logouts = asyncio.Event()

    @property
    def issuers(self) -> list[str]:
        """As they name themselves."""
        return sorted(self._issuers.all())

    async def admit(self, token: str) -> Admission:
        """Raises TokenRefused, TokenOver, TokenRevoked, IssuerSilent, ApiKeysUnknown."""
        verified = await self._reader.read(token)
        logouts = await self._known_logouts()
        if logouts.has_ended(verified):
            raise _revoked()
        return Admission(
            verified.principal, issuer=verified.issuer.issuer, ended=lambda: self._ended(verified, logouts)
        )

    async def log_out(self, logout_token: str) -> None:
        """Ends what the token names, at all gateways. Raises TokenRefused, TokenOver, IssuerSilent, Unavailable."""
        issuer, claims = await self._reader.read_logout(logout_token)
        logouts = await self._known_logouts()
        await logouts.note(issuer, claims)

    async def run(self, nats: Nats) -> None:
        """Follows the logouts until cancelled. The issuers' keys are fetched beside, so that nobody waits for them."""
        async with asyncio.TaskGroup() as group:
            for issuer in self._issuers.all().values():
                group.create_task(self._key_sets.read_first(issuer))
            self._logouts = await Logouts.open(nats, self._now)
            self._knows_logouts.set()
            group.create_task(self._logouts.settings.follow())

    async def _known_logouts(self) -> Logouts:
        """A gateway that has just started lets a request wait for them, as for its keys."""
        if self._logouts is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_KEYS_S):
                    await self._knows_logouts.wait()
        if self._logouts is None:
            raise ApiKeysUnknown("it is not known yet who was logged out; try again in a few seconds")
        return self._logouts

    async def _ended(self, verified: Verified, logouts: Logouts) -> Unauthenticated:
        while (left_s := verified.ends_at - self._now()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, _RECHECK_S)):
                    await logouts.wait_for(verified)
                    return _revoked()
        return TokenOver("the token has expired; get a new one from its issuer, and go on with that")


def _revoked() -> TokenRevoked:
    return TokenRevoked("you were logged out where the token is from; log in again")
