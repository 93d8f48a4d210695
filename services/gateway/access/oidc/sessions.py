"""Logins of people by their browser (`OIDC_SESSIONS`): one key for each. A gateway remembers a login for a few seconds and reads it
again then, or when it is shown a secret that it does not know: another gateway may have rotated it. That a login has ended is a
logout, which all gateways follow."""

import json
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from kit import deadline
from kit.access.principal import Principal
from kit.errors import Aborted, Unauthenticated, Unavailable
from kit.jetstream import KeyValue, Nats
from kit.records import UNREADABLE
from services.gateway.access.oidc.issuers import Issuer, Issuers
from services.gateway.access.oidc.rotation import SECRET_LENGTH, SecretPlace, Secrets, decode_secrets, digest_of
from services.gateway.access.oidc.tokens import Verified
from services.gateway.serving.cookies import NewCookie
from services.gateway.state import OIDC_SESSIONS

_REMEMBERED = 10_000
_READ_AGAIN_S = 5.0
_ANSWERED_WITHIN_S = 10.0
"""An answer that begins later does not set the cookie: the browser may have a newer one by then."""
_STORE_WITHIN_S = 1.0
"""Longest wait for the store about a login that is remembered. Then it is not asked for _READ_AGAIN_S."""
_TRIES = 5
_COOKIE = re.compile(rf"(?:(?P<id>[0-9a-f]{{64}})\.)?(?P<secret>[-_A-Za-z0-9]{{{SECRET_LENGTH}}})")
_HOUR_S = 3600.0


class SessionOver(Unauthenticated):
    """The login has ended, or never was."""

    reason = "SESSION_OVER"


class SessionReused(Unauthenticated):
    """The cookie was replaced long ago: somebody has a copy of it."""

    reason = "SESSION_REUSED"


@dataclass(frozen=True)
class Session:
    """A login."""

    session_id: str
    """Digest of the first secret."""
    issuer: str
    tenant_id: str
    subject: str
    names: Sequence[str]
    """Groups, roles and scopes at the issuer."""
    claims: Mapping[str, Any]
    """`sub`, `sid` and `iat` of its token, by which a logout names it."""
    ends_at: float
    """Seconds since the epoch."""
    secrets: Secrets

    def principal(self, issuer: Issuer) -> Principal:
        """Who it is, with what the operator lets their groups do now."""
        return issuer.principal(self.tenant_id, self.subject, self.names)


@dataclass(frozen=True)
class Stored:
    """A login as it was read."""

    session: Session
    revision: int
    read_at: float


@dataclass(frozen=True)
class Shown:
    """A login whose cookie is shown."""

    stored: Stored
    issuer: Issuer
    secret: str = field(repr=False)

    @property
    def session(self) -> Session:
        """The login."""
        return self.stored.session


class Sessions:
    """`now` is the time of day in seconds since the epoch."""

    def __init__(self, bucket: KeyValue, issuers: Issuers, now: Callable[[], float]) -> None:
        self._bucket = bucket
        self._issuers = issuers
        self._now = now
        self._known: OrderedDict[str, Stored] = OrderedDict()
        self._silent_at = float("-inf")
        """When the store did not answer last."""

    @classmethod
    async def open(cls, nats: Nats, issuers: Issuers, now: Callable[[], float]) -> "Sessions":
        """Raises Unavailable."""
        return cls(await KeyValue.open(nats, OIDC_SESSIONS.name, ttl_s=OIDC_SESSIONS.kept_for_s), issuers, now)

    async def begin(self, verified: Verified) -> tuple[str, Session]:
        """Keeps a login; the value of its cookie, and what it is. Raises Unavailable."""
        secret, now = secrets.token_urlsafe(32), self._now()
        claims = {name: verified.claims[name] for name in ("sub", "sid", "iat") if name in verified.claims}
        session = Session(
            digest_of(secret),
            verified.issuer.issuer,
            verified.principal.tenant_id,
            verified.principal.subject,
            verified.issuer.names_in(verified.claims),
            claims,
            now + verified.issuer.session_hours * _HOUR_S,
            Secrets(digest_of(secret), now),
        )
        self._remember(session, await self._bucket.put(session.session_id, encode(session)))
        return secret, session

    async def find(self, cookie: str) -> Shown:
        """The login whose cookie is shown, and its issuer as it is listed now. Raises SessionOver, Unavailable."""
        matched = _COOKIE.fullmatch(cookie)
        if matched is None:
            raise _over()
        secret = matched["secret"]
        stored = await self._read(matched["id"] or digest_of(secret), digest_of(secret))
        session = stored.session if stored else None
        issuer = self._issuers.all().get(session.issuer) if session else None
        if stored is None or session is None or issuer is None or self._now() >= session.ends_at:
            raise _over()
        if session.secrets.place_of(digest_of(secret), self._now()) is SecretPlace.UNKNOWN:
            raise _over()
        return Shown(stored, issuer, secret)

    async def rotate(self, shown: Shown) -> Callable[[], NewCookie | None]:
        """Notes that a login is used; what its browser's cookie becomes, which is asked when an answer begins: None to leave it.
        Raises SessionOver, SessionReused. While the store is silent nothing is rotated."""
        used_at, stored = self._now(), shown.stored
        for _ in range(_TRIES):
            known = stored.session.secrets
            if known.place_of(digest_of(shown.secret), used_at) is SecretPlace.REUSED:
                raise SessionReused("an old cookie of your login was shown, perhaps by a copy of it; log in again")
            if (changed := known.after(shown.secret, used_at)) == known:
                break
            session = replace(stored.session, secrets=changed)
            try:
                stored = await self._write(session, stored.revision)
            except Unavailable:
                break
        next_secret = stored.session.secrets.next_of(shown.secret, used_at)
        if not next_secret:
            return lambda: None
        session = stored.session
        cookie = NewCookie(f"{session.session_id}.{next_secret}", int(session.ends_at - used_at))
        return lambda: cookie if self._now() < used_at + _ANSWERED_WITHIN_S else None

    async def _read(self, session_id: str, digest: str) -> Stored | None:
        """As remembered, or else as stored. Raises Unavailable."""
        known, now = self._known.get(session_id), self._now()
        if known is None:
            return await self._read_stored(session_id)
        place = known.session.secrets.place_of(digest, now)
        if abs(now - known.read_at) < _READ_AGAIN_S and place in {SecretPlace.CURRENT, SecretPlace.PREVIOUS}:
            return known
        try:
            with self._promptly():
                return await self._read_stored(session_id)
        except Unavailable:
            if place is SecretPlace.UNKNOWN:
                raise
            return known  # for as long as this gateway knows who was logged out

    async def _write(self, session: Session, revision: int) -> Stored:
        """Writes a login, or reads it where another request has changed it. Raises Unavailable."""
        with self._promptly():
            try:
                written = await self._bucket.update(session.session_id, encode(session), revision)
            except Aborted:
                stored = await self._read_stored(session.session_id)
                if stored is None:
                    raise _over() from None
                return stored
        return self._remember(session, written)

    @contextmanager
    def _promptly(self) -> Iterator[None]:
        """Asks the store. Raises Unavailable, at once where it was silent a moment ago."""
        if abs(self._now() - self._silent_at) < _READ_AGAIN_S:
            raise Unavailable("the message store does not answer; try again in a few seconds")
        try:
            with deadline.within(_STORE_WITHIN_S):
                yield
        except Unavailable:
            self._silent_at = self._now()
            raise

    async def _read_stored(self, session_id: str) -> Stored | None:
        entry = await self._bucket.get(session_id)
        if entry is None or entry.value is None:
            return None
        try:
            session = decode(entry.value)
        except UNREADABLE:  # a newer version's: the person logs in again
            return None
        return self._remember(session, entry.revision)

    def _remember(self, session: Session, revision: int) -> Stored:
        stored = Stored(session, revision, self._now())
        known = self._known.get(session.session_id)
        if known is not None and known.revision > revision:  # read before what another request has written
            return known
        self._known[session.session_id] = stored
        self._known.move_to_end(session.session_id)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return stored


def encode(session: Session) -> bytes:
    """As it is stored."""
    return json.dumps(asdict(session)).encode()


def decode(data: bytes) -> Session:
    """Raises one of UNREADABLE."""
    stored = json.loads(data)
    known = {each.name: stored[each.name] for each in fields(Session) if each.name != "secrets"}
    # Version 0.1.0 had no rotation.
    kept = decode_secrets(stored["secrets"]) if "secrets" in stored else Secrets(known["session_id"], 0.0)
    return Session(**known, secrets=kept)


def _over() -> SessionOver:
    return SessionOver("your login is over; log in again")
