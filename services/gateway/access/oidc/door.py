"""Lets in who shows a token of an issuer that the operator lists, or the cookie of a login there."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from kit.access.principal import Principal
from kit.errors import Unauthenticated
from kit.jetstream import Nats
from services.gateway.access.auth import FIRST_KEYS_S, Admission
from services.gateway.access.key_ring import ApiKeysUnknown
from services.gateway.access.oidc.issuers import Issuer, Issuers
from services.gateway.access.oidc.key_sets import KeySets
from services.gateway.access.oidc.login import Logins
from services.gateway.access.oidc.logouts import Logouts
from services.gateway.access.oidc.sessions import Session, SessionOver, SessionReused, Sessions
from services.gateway.access.oidc.tokens import TokenOver, TokenReader, Verified

_RECHECK_S = 5.0
"""How often the clock is read again while a token's end is awaited: it may have been set."""


class TokenRevoked(Unauthenticated):
    """The caller was logged out at the issuer."""

    reason = "TOKEN_REVOKED"


class IssuerDoor:
    """The issuers' people and services at this gateway. `now` is the time of day in seconds since the epoch, `clock` counts
    seconds."""

    def __init__(
        self, issuers: Issuers, *, now: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuers = issuers
        self._now = now
        self._key_sets = KeySets(clock)
        self._reader = TokenReader(issuers, self._key_sets, now)
        self.logins = Logins(issuers, self._reader)
        self.note_reuse: Callable[[Principal, str, str], None] = lambda _who, _issuer, _address: None
        """Records that an old cookie was shown: its owner, its issuer and the address that it came from."""
        self._kept: tuple[Logouts, Sessions] | None = None
        self._is_known = asyncio.Event()

    @property
    def issuers(self) -> list[str]:
        """As they name themselves."""
        return sorted(self._issuers.all())

    async def admit_token(self, token: str) -> Admission:
        """Raises TokenRefused, TokenOver, TokenRevoked, IssuerSilent, ApiKeysUnknown."""
        verified = await self._reader.read(token)
        logouts, _ = await self._known()
        over = TokenOver("the token has expired; get a new one from its issuer, and go on with that")
        until = _Until(logouts, verified.issuer, verified.claims, verified.ends_at, over)
        return self._admitted(
            Admission(verified.principal, issuer=verified.issuer.issuer, given_at=float(verified.claims["iat"])), until
        )

    async def admit_session(self, cookie: str, address: str) -> Admission:
        """Finds the login of a cookie and rotates the cookie. An old cookie ends the login at all gateways. Once the login is over,
        no answer sets its cookie again. Raises SessionOver, SessionReused, TokenRevoked, Unavailable."""
        logouts, sessions = await self._known()
        shown = await sessions.find(cookie)
        session, issuer = shown.session, shown.issuer
        over = SessionOver("your login is over; log in again")
        until = _Until(logouts, issuer, session.claims, session.ends_at, over, session.session_id)
        principal, given_at = session.principal(issuer), float(session.claims["iat"])
        admission = Admission(principal, issuer=issuer.issuer, session=session, given_at=given_at)
        admission = self._admitted(admission, until)
        try:
            next_cookie = await sessions.rotate(shown)
        except SessionReused:
            await logouts.end_session(issuer, session.session_id)
            self.note_reuse(principal, issuer.issuer, address)
            raise
        return replace(admission, next_cookie=lambda: None if until.is_logged_out() else next_cookie())

    async def begin_session(self, verified: Verified) -> tuple[str, Session]:
        """The secret of a new login's cookie, and the login. Raises ApiKeysUnknown, Unavailable."""
        _, sessions = await self._known()
        return await sessions.begin(verified)

    async def end_session(self, session: Session) -> None:
        """Ends a login at all gateways. Raises ApiKeysUnknown, Unavailable."""
        logouts, _ = await self._known()
        if (issuer := self._issuers.all().get(session.issuer)) is not None:
            await logouts.end_session(issuer, session.session_id)

    async def log_out(self, logout_token: str) -> None:
        """Ends what the token names, at all gateways. Raises TokenRefused, TokenOver, IssuerSilent, Unavailable."""
        issuer, claims = await self._reader.read_logout(logout_token)
        logouts, _ = await self._known()
        await logouts.note(issuer, claims)

    async def run(self, nats: Nats) -> None:
        """Follows the logouts until cancelled. The issuers' keys are fetched beside, so that nobody waits for them."""
        async with asyncio.TaskGroup() as group:
            for issuer in self._issuers.all().values():
                group.create_task(self._key_sets.read_first(issuer))
            logouts = await Logouts.open(nats, self._now)
            self._kept = logouts, await Sessions.open(nats, self._issuers, self._now)
            self._is_known.set()
            group.create_task(logouts.settings.follow())

    async def _known(self) -> tuple[Logouts, Sessions]:
        """A gateway that has just started lets a request wait for them, as for its keys."""
        if self._kept is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_KEYS_S):
                    await self._is_known.wait()
        if self._kept is None:
            raise ApiKeysUnknown("it is not known yet who was logged out; try again in a few seconds")
        return self._kept

    def _admitted(self, admission: Admission, until: "_Until") -> Admission:
        """Raises TokenRevoked."""
        if until.is_logged_out():
            raise _revoked()
        return replace(admission, ended=lambda: until.ended(self._now))


@dataclass(frozen=True)
class _Until:
    """When what somebody showed is good no more."""

    logouts: Logouts
    issuer: Issuer
    claims: Mapping[str, Any]
    ends_at: float
    over: Unauthenticated
    """The reason, once its time is over."""
    session_id: str = ""

    def is_logged_out(self) -> bool:
        return self.logouts.has_ended(self.issuer, self.claims, self.session_id)

    async def ended(self, now: Callable[[], float]) -> Unauthenticated:
        """Returns the reason once there is one."""
        while (left_s := self.ends_at - now()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, _RECHECK_S)):
                    await self.logouts.wait_for(self.is_logged_out)
                    return _revoked()
        return self.over


def _revoked() -> TokenRevoked:
    return TokenRevoked("you were logged out; log in again")
