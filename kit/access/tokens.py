"""Principal tokens: JSON Web Tokens signed with Ed25519.

A service that has a signing key names the principal itself, in a token for the room it calls; one that has none (it only answers)
passes on the token of the request in hand. A token says whom it is for (`aud`), lives five minutes, and its key's public half says
which calls it is good for. A queued job, which may wait for days, carries a token of another kind: it does not expire, and is good
for that job alone.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import jwt

from kit.access.keys import KeySource, PublicKey, SigningKey
from kit.access.principal import Principal, ReceivedToken
from kit.errors import FailedPrecondition, PermissionDenied, Unauthenticated

TOKEN_METADATA_KEY = "authorization"  # noqa: S105 - a header name
_ALGORITHM = "EdDSA"
_JOBS = "jobs"
_MAX_REMEMBERED = 10_000


class TokenExpired(Unauthenticated):
    """By the verifier's clock. When clocks are set, those of two processes may be apart for a moment."""

    reason = "TOKEN_EXPIRED"
    is_of_stale_token = True


class TokenSigner:
    """Makes the tokens of outgoing calls and jobs. Without a key it passes received tokens on.

    A token lives `lifetime_s`; the signer uses one again for half of that time, because signing per call would be waste.
    """

    def __init__(
        self,
        keys: KeySource[SigningKey] | None,
        *,
        lifetime_s: float = 300.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._signed: dict[tuple[Principal, tuple[str, ...]], tuple[float, str]] = {}
        self._signed_with: SigningKey | None = None

    def sign(self, principal: Principal, *rooms: str) -> str:
        """A token in the name of `principal` for calls of `rooms`: the one that is called, and those that it passes it on to.

        Raises Unauthenticated where there is neither a key nor a received token that is still alive.
        """
        if self._keys is None:
            return self._received(principal)
        key, now = self._key(self._keys), self._clock()
        until, token = self._signed.get((principal, rooms), (0.0, ""))
        if now < until:
            return token
        token = _encode(key, principal, {"aud": rooms, "exp": now + self._lifetime_s})
        _remember(self._signed, (principal, rooms), (now + self._lifetime_s / 2, token))
        return token

    def sign_job(self, principal: Principal, queue: str, subject: str, job_id: str, data: bytes) -> str:
        """A token in the name of `principal` for this one job. It does not expire: the job may wait for days."""
        if self._keys is None:
            raise FailedPrecondition(
                "this service has no signing key, so it cannot queue jobs; set GROUNDWORK_AUTH_SIGNING_KEY_FILE",
                reason="NO_SIGNING_KEY",
            )
        return _encode(self._key(self._keys), principal, {"aud": _JOBS, "job": _digest(queue, subject, job_id, data)})

    def _key(self, keys: KeySource[SigningKey]) -> SigningKey:
        key = keys.current()
        if key is not self._signed_with:
            self._signed_with = key
            self._signed.clear()
        return key

    def _received(self, principal: Principal) -> str:
        received = principal.received
        if received is None:
            raise Unauthenticated(
                "this service has no signing key and can act only for a caller whose token it holds",
                reason="NO_PRINCIPAL",
            )
        if received.expires_at <= self._clock():
            raise Unauthenticated("the caller's token has expired meanwhile; ask again", reason="TOKEN_EXPIRED")
        return received.token


class TokenVerifier:
    """Verifies the tokens of incoming calls and jobs.

    A token comes with every call of its lifetime: that it is good for a call is remembered until it expires or a key changes, since
    checking it costs 0.1 ms.
    """

    def __init__(self, keys: KeySource[Mapping[str, PublicKey]], *, clock: Callable[[], float] = time.time) -> None:
        self._keys = keys
        self._clock = clock
        self._verified: dict[tuple[str, str], Principal] = {}
        self._verified_with: Mapping[str, PublicKey] | None = None

    def verify(self, token: str, method: str) -> Principal:
        """Who calls `method` ("/groundwork.retriever.v1.RetrieverService/Search").

        Raises Unauthenticated when the token is missing, forged, expired (TokenExpired) or for another service, PermissionDenied
        when its key does not sign for this method.
        """
        keys = self._keys.current()
        if keys is not self._verified_with:
            self._verified_with = keys
            self._verified.clear()
        known = self._verified.get((token, method))
        if known and known.received and self._clock() < known.received.expires_at:
            return known
        room, name = call_of(method)
        claims = self._claims(token, room, name, ["exp"])
        expires_at = claims["exp"]
        if not isinstance(expires_at, int | float) or expires_at <= self._clock():
            raise TokenExpired("the caller's token has expired; ask again")
        principal = _principal(claims, ReceivedToken(token, expires_at))
        _remember(self._verified, (token, method), principal)
        return principal

    def verify_job(
        self, token: str, queue: str, subject: str, job_id: str, data: bytes, *, kind: str = ""
    ) -> Principal:
        """Who queued the job. Raises Unauthenticated when the token is missing, forged or another job's, PermissionDenied when its
        key does not sign for this queue, or for this kind of job in it ("jobs/FORGET.thread")."""
        claims = self._claims(token, _JOBS, f"{queue}.{kind}" if kind else queue, ["job"])
        if claims["job"] != _digest(queue, subject, job_id, data):
            raise Unauthenticated("the token belongs to another job", reason="BAD_TOKEN")
        return _principal(claims, None)

    def _claims(self, token: str, room: str, name: str, required: list[str]) -> dict[str, Any]:
        if not token:
            raise _bad_token("there is none")
        try:
            key = self._public_key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[_ALGORITHM],
                audience=room,
                options={"require": ["aud", "sub", *required], "verify_exp": False},  # by our own clock
            )
        except jwt.PyJWTError as error:
            raise _bad_token(str(error)) from error
        if not key.allows(room, name):
            raise PermissionDenied(f"key {key.kid} does not sign for {room}/{name}", reason="CALL_NOT_ALLOWED")
        return claims

    def _public_key(self, kid: str) -> PublicKey:
        key = self._keys.current().get(kid)
        if key is None:
            raise _bad_token(f"no public key has the id {kid!r}")
        return key


def call_of(method: str) -> tuple[str, str]:
    """The room and the name of a gRPC method: "/groundwork.retriever.v1.RetrieverService/Search" is ("retriever", "Search")."""
    service, _, name = method.lstrip("/").partition("/")
    package = service.split(".")
    return (package[1] if package[0] == "groundwork" and len(package) > 1 else service), name


def _encode(key: SigningKey, principal: Principal, claims: dict[str, Any]) -> str:
    who: dict[str, Any] = {"tenant": principal.tenant_id, "sub": principal.subject, "scopes": sorted(principal.scopes)}
    if principal.groups:
        who["groups"] = sorted(principal.groups)
    if principal.key_id:
        who["key"] = principal.key_id
    return jwt.encode(who | claims, key.key, algorithm=_ALGORITHM, headers={"kid": key.kid})


def _principal(claims: dict[str, Any], received: ReceivedToken | None) -> Principal:
    try:
        groups = frozenset(claims.get("groups", ()))
        scopes, key_id = frozenset(claims["scopes"]), str(claims.get("key", ""))
        return Principal(claims["tenant"], claims["sub"], scopes, received, groups=groups, key_id=key_id)
    except (KeyError, TypeError) as error:
        raise _bad_token(f"a claim is missing or of another type: {error}") from error


def _digest(*parts: str | bytes) -> str:
    """Of the parts and of where one ends."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _remember(memory: dict[Any, Any], key: Any, value: Any) -> None:
    if len(memory) >= _MAX_REMEMBERED:
        memory.clear()
    memory[key] = value


def _bad_token(problem: str) -> Unauthenticated:
    return Unauthenticated(
        f"the caller's token is not valid ({problem}); check that the caller's signing key is among GROUNDWORK_AUTH_PUBLIC_KEYS",
        reason="BAD_TOKEN",
    )
