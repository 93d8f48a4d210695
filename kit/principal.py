"""Who is asking. The gateway verifies a caller once and names them in a short-lived signed token; every service behind it
verifies that token and trusts nothing else. The principal of the request in hand travels in a context variable, so that
outgoing calls carry it on without being told."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import jwt

from kit.errors import Unauthenticated

TOKEN_METADATA_KEY = "authorization"  # noqa: S105 - a header name
_ALGORITHM = "HS256"
_AUDIENCE = "groundwork-internal"
_MAX_REMEMBERED = 10_000

_current: ContextVar["Principal | None"] = ContextVar("principal", default=None)


@dataclass(frozen=True)
class Principal:
    """A verified caller. All data belongs to a tenant; a subject is one user or key within it."""

    tenant_id: str
    subject: str
    scopes: frozenset[str] = frozenset()


def current_principal() -> Principal:
    """The principal of the request in hand. Raises Unauthenticated outside of one."""
    principal = _current.get()
    if principal is None:
        raise Unauthenticated("this call carries no principal; call through the gateway", reason="NO_PRINCIPAL")
    return principal


@contextmanager
def use_principal(principal: Principal) -> Iterator[None]:
    """Acts as `principal` within the block: for queue consumers and background work."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)


def set_principal(principal: Principal) -> None:
    """Acts as `principal` for the rest of the current task: for the server interceptor, whose task is the request."""
    _current.set(principal)


class TokenSigner:
    """Signs and verifies principal tokens (JWT, HS256) with a secret that all services share.

    A token lives `lifetime_s`; the signer reuses one for half of that time, because signing per call would be waste.
    """

    def __init__(self, secret: str, *, lifetime_s: float = 300.0, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._cache: dict[Principal, tuple[float, str]] = {}
        self._verified: dict[str, tuple[float, Principal]] = {}

    def sign(self, principal: Principal) -> str:
        now = self._clock()
        cached = self._cache.get(principal)
        if cached and now < cached[0]:
            return cached[1]
        if len(self._cache) >= _MAX_REMEMBERED:
            self._cache.clear()
        claims = {
            "aud": _AUDIENCE,
            "tenant": principal.tenant_id,
            "sub": principal.subject,
            "scopes": sorted(principal.scopes),
            "exp": now + self._lifetime_s,
        }
        token = jwt.encode(claims, self._secret, algorithm=_ALGORITHM)
        self._cache[principal] = (now + self._lifetime_s / 2, token)
        return token

    def verify(self, token: str) -> Principal:
        """Raises Unauthenticated when the token is missing, forged or expired.

        A token comes with every call of its lifetime: it is remembered until it expires, since checking costs 0.1 ms.
        """
        expires_at, known = self._verified.get(token, (0.0, None))
        if known and self._clock() < expires_at:
            return known
        try:
            claims = jwt.decode(
                token, self._secret, algorithms=[_ALGORITHM], audience=_AUDIENCE, options={"require": ["exp"]}
            )
            principal = Principal(claims["tenant"], claims["sub"], frozenset(claims["scopes"]))
        except (jwt.PyJWTError, KeyError, TypeError) as error:
            raise Unauthenticated(
                "the caller's token is not valid; check that all services share one GROUNDWORK_AUTH_SECRET",
                reason="BAD_TOKEN",
            ) from error
        if len(self._verified) >= _MAX_REMEMBERED:
            self._verified.clear()
        self._verified[token] = (float(claims["exp"]), principal)
        return principal
