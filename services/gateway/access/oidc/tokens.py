"""What a token of an issuer says: a JSON Web Token (RFC 7519) whose signature, issuer, audience and times are checked, and who its
caller is here."""

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from kit.access.principal import Principal
from kit.errors import Unauthenticated
from services.gateway.access.oidc.issuers import Issuer, Issuers, values_at
from services.gateway.access.oidc.key_sets import KeySets

LONGEST_LIFE_S = 86_400.0
"""A token that was issued longer ago is refused, whatever it says of itself: so long logouts are remembered."""
_REMEMBERED = 10_000
_LONGEST_TOKEN = 16_384
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"


class TokenRefused(Unauthenticated):
    """The token is not one that lets anybody in: it is no token, or of another issuer, for others, forged, or of nobody here."""

    reason = "TOKEN_INVALID"


class TokenOver(Unauthenticated):
    """The token's time is over."""

    reason = "TOKEN_EXPIRED"


@dataclass(frozen=True)
class Verified:
    """A good token."""

    issuer: Issuer
    principal: Principal
    claims: Mapping[str, Any]
    key: jwt.PyJWK
    """That verified it."""

    @property
    def ends_at(self) -> float:
        """Seconds since the epoch."""
        return min(float(self.claims["exp"]), float(self.claims["iat"]) + LONGEST_LIFE_S) + self.issuer.clock_skew_s


class TokenReader:
    """Reads tokens. A good one is remembered until it ends or its key or issuer goes, since a signature costs 0.1 ms. `now` is the
    time of day in seconds since the epoch."""

    def __init__(self, issuers: Issuers, key_sets: KeySets, now: Callable[[], float] = time.time) -> None:
        self._issuers = issuers
        self._key_sets = key_sets
        self._now = now
        self._good: OrderedDict[bytes, Verified] = OrderedDict()

    async def read(self, token: str) -> Verified:
        """Whom the token lets in. Raises TokenRefused, TokenOver, IssuerSilent."""
        digest = hashlib.sha256(token.encode()).digest()
        known = self._good.get(digest)
        if known is None or not await self._still_holds(known):
            self._good.pop(digest, None)
            known = await self._verified(token)
            self._good[digest] = known
            if len(self._good) > _REMEMBERED:
                self._good.popitem(last=False)
        if self._now() >= known.ends_at:
            raise TokenOver("the token has expired; get a new one from its issuer")
        return known

    async def read_logout(self, token: str) -> tuple[Issuer, Mapping[str, Any]]:
        """Who is logged out by a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.4): the issuer, and claims of
        which `sid` or `sub` says who. Raises TokenRefused, TokenOver, IssuerSilent."""
        issuer, _, claims = await self._checked(token)
        events = claims.get("events")
        if not isinstance(events, Mapping) or LOGOUT_EVENT not in events or "nonce" in claims:
            raise TokenRefused("this is no logout token")
        if not any(isinstance(claims.get(name), str) for name in ("sid", "sub")):
            raise TokenRefused("the logout token says neither which session (sid) nor who (sub)")
        return issuer, claims

    async def read_login(self, issuer: Issuer, id_token: str, nonce: str) -> Verified:
        """Who has logged in at `issuer`, as it says in the token that it gave to the console (OpenID Connect Core 1.0, section
        3.1.3.7). Raises TokenRefused, TokenOver, IssuerSilent."""
        verified = await self._verified(id_token, of_console=True)
        if verified.issuer is not issuer or not hmac.compare_digest(str(verified.claims.get("nonce")), nonce):
            raise TokenRefused("the token is of another login; begin anew")
        return verified

    async def _still_holds(self, known: Verified) -> bool:
        if self._issuers.all().get(known.issuer.issuer) is not known.issuer:
            return False
        return await self._key_sets.find(known.issuer, known.key.key_id or "") is known.key

    async def _verified(self, token: str, *, of_console: bool = False) -> Verified:
        issuer, key, claims = await self._checked(token, of_console=of_console)
        if "events" in claims:
            raise TokenRefused("this is a token about an event, which lets nobody in")
        for path, value in issuer.require.items():
            if claims.get(path) != value and value not in values_at(claims, path):
                raise TokenRefused(f"the token lets nobody in here: its claim {path!r} is not {value!r}")
        return Verified(issuer, _principal(issuer, claims), claims, key)

    async def _checked(self, token: str, *, of_console: bool = False) -> tuple[Issuer, jwt.PyJWK, Mapping[str, Any]]:
        header, said = _unverified(token)
        issuer = self._issuers.all().get(str(said.get("iss")))
        if issuer is None:
            raise TokenRefused("the token is of an issuer that is not known here; the operator lists those that are")
        kid = header.get("kid")
        if not isinstance(kid, str) or "crit" in header:
            raise TokenRefused("the token's head names no key (kid), or what is not known here (crit)")
        audiences = [issuer.client_id] if of_console else list(issuer.audiences)
        key = await self._key_sets.find(issuer, kid)
        if key is None:
            raise TokenRefused("the token is signed with a key that its issuer does not have")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=list(issuer.algorithms),
                audience=audiences,
                issuer=issuer.issuer,
                leeway=issuer.clock_skew_s,
                options={"require": ["exp", "iat"]},
            )
        except jwt.ExpiredSignatureError:
            raise TokenOver("the token has expired; get a new one from its issuer") from None
        except jwt.InvalidAudienceError:
            raise TokenRefused(
                f"the token is for others; ask its issuer for one for {' or '.join(issuer.audiences)}"
            ) from None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
            raise TokenRefused(f"the token is not good: {str(error)[:200]}") from None
        return issuer, key, claims


def looks_like_token(text: str) -> bool:
    """Whether it has the form of a signed JSON Web Token, which no API key has."""
    return text.count(".") == 2 and text.startswith("ey")


def _unverified(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Head and claims, as anybody could have written them."""
    if len(token) > _LONGEST_TOKEN:
        raise TokenRefused(f"the token is longer than {_LONGEST_TOKEN} characters")
    try:
        parts = jwt.decode_complete(token, options={"verify_signature": False})
        return parts["header"], parts["payload"]
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise TokenRefused("this is no JSON Web Token that can be read") from None


def _principal(issuer: Issuer, claims: Mapping[str, Any]) -> Principal:
    """Raises TokenRefused for somebody who cannot be anybody here."""
    subject = claims.get(issuer.subject_claim)
    if not isinstance(subject, str) or not subject:
        raise TokenRefused(f"the token does not say who it is for: its claim {issuer.subject_claim!r} is no text")
    tenant: str | None = issuer.tenant
    if issuer.tenant_claim:
        tenant = next(
            (issuer.tenants[each] for each in values_at(claims, issuer.tenant_claim) if each in issuer.tenants), None
        )
    if tenant is None:
        raise TokenRefused(f"the token's claim {issuer.tenant_claim!r} names nobody who is known here")
    try:
        return issuer.principal(tenant, issuer.subject_prefix + subject, issuer.names_in(claims))
    except Unauthenticated as error:
        raise TokenRefused(f"the token's caller cannot be one here: {error.message}") from None
