"""Logins of people by their browser (`OIDC_SESSIONS`): one key for each, by the digest of the secret in the browser's cookie. Read
from the message store when a gateway sees a cookie for the first time, and remembered; that a login has ended is a logout, which
all gateways follow."""

import hashlib
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from kit.access.principal import Principal
from kit.errors import Unauthenticated
from kit.jetstream import KeyValue, Nats
from kit.records import UNREADABLE
from services.gateway.access.oidc.issuers import Issuer, Issuers
from services.gateway.access.oidc.tokens import Verified
from services.gateway.state import OIDC_SESSIONS

_REMEMBERED = 10_000
_SECRET_LENGTH = 43
"""Of 256 random bits, as `secrets.token_urlsafe` writes them."""
_HOUR_S = 3600.0


class SessionOver(Unauthenticated):
    """The login has ended, or never was."""

    reason = "SESSION_OVER"


@dataclass(frozen=True)
class Session:
    """A login."""

    session_id: str
    """Digest of the cookie's secret."""
    issuer: str
    tenant_id: str
    subject: str
    names: Sequence[str]
    """Groups, roles and scopes at the issuer."""
    claims: Mapping[str, Any]
    """`sub`, `sid` and `iat` of its token, by which a logout names it."""
    ends_at: float
    """Seconds since the epoch."""

    def principal(self, issuer: Issuer) -> Principal:
        """Who it is, with what the operator lets their groups do now."""
        return issuer.principal(self.tenant_id, self.subject, self.names)


class Sessions:
    """`now` is the time of day in seconds since the epoch."""

    def __init__(self, bucket: KeyValue, issuers: Issuers, now: Callable[[], float]) -> None:
        self._bucket = bucket
        self._issuers = issuers
        self._now = now
        self._known: OrderedDict[str, Session] = OrderedDict()

    @classmethod
    async def open(cls, nats: Nats, issuers: Issuers, now: Callable[[], float]) -> "Sessions":
        """Raises Unavailable."""
        return cls(await KeyValue.open(nats, OIDC_SESSIONS.name, ttl_s=OIDC_SESSIONS.kept_for_s), issuers, now)

    async def begin(self, verified: Verified) -> tuple[str, Session]:
        """Keeps a login; the secret of its cookie, and what it is. Raises Unavailable."""
        secret = secrets.token_urlsafe(32)
        claims = {name: verified.claims[name] for name in ("sub", "sid", "iat") if name in verified.claims}
        session = Session(
            session_id_of(secret),
            verified.issuer.issuer,
            verified.principal.tenant_id,
            verified.principal.subject,
            verified.issuer.names_in(verified.claims),
            claims,
            self._now() + verified.issuer.session_hours * _HOUR_S,
        )
        await self._bucket.put(session.session_id, encode(session))
        return secret, session

    async def find(self, secret: str) -> tuple[Session, Issuer]:
        """The login whose cookie is shown, and its issuer as it is listed now. Raises SessionOver, Unavailable."""
        session = await self._read(session_id_of(secret)) if len(secret) == _SECRET_LENGTH else None
        issuer = self._issuers.all().get(session.issuer) if session else None
        if session is None or issuer is None or self._now() >= session.ends_at:
            raise SessionOver("your login is over; log in again")
        return session, issuer

    async def _read(self, session_id: str) -> Session | None:
        if (known := self._known.get(session_id)) is not None:
            return known
        entry = await self._bucket.get(session_id)
        if entry is None or entry.value is None:
            return None
        try:
            session = decode(entry.value)
        except UNREADABLE:  # a newer version's: the person logs in again
            return None
        self._known[session_id] = session
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return session


def encode(session: Session) -> bytes:
    """As it is stored."""
    return json.dumps(asdict(session)).encode()


def decode(data: bytes) -> Session:
    """Raises one of UNREADABLE."""
    stored = json.loads(data)
    return Session(**{each.name: stored[each.name] for each in fields(Session)})


def session_id_of(secret: str) -> str:
    """The store and its backups hold no secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
