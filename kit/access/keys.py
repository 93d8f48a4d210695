"""Keys of principal tokens: Ed25519, as JSON Web Keys (RFC 8037), each with an id.

A private key lies with the one service that signs with it; the public ones lie with all, in a JSON Web Key Set. There each has the
list of calls that its tokens are good for (`calls`: "retriever/Search", "ingest/*"): that list, which the holder of a private key
cannot change, is what a stolen key can do. Files are looked at again while a service runs, so that keys change without a stop.
"""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from jwt.algorithms import OKPAlgorithm

from kit.errors import FailedPrecondition
from kit.file_source import FileSource

KeysT = TypeVar("KeysT")
Jwk = dict[str, Any]


class UnusableKey(ValueError):
    """A text is not the key or key set that it should be."""


@dataclass(frozen=True)
class SigningKey:
    """A private key and its id."""

    kid: str
    key: Ed25519PrivateKey


@dataclass(frozen=True)
class PublicKey:
    """What verifies the tokens of one signing key, and the calls that these are good for."""

    kid: str
    key: Ed25519PublicKey
    calls: frozenset[str]

    def allows(self, room: str, name: str) -> bool:
        """Whether its tokens may make the call `room/name`."""
        return f"{room}/{name}" in self.calls or f"{room}/*" in self.calls


class KeySource(Generic[KeysT]):
    """Keys from a file, which is read again when it has changed (kit.file_source), or from a value, which stays. Raises
    FailedPrecondition when there are no usable keys at the start."""

    def __init__(
        self,
        parse: Callable[[str], KeysT],
        *,
        value: str | None = None,
        path: Path | None = None,
        setting: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        def read() -> KeysT:
            return parse(path.read_text("utf-8") if path else value or "")

        try:
            self._source = FileSource([path] if path else [], read, setting=setting, clock=clock)
        except (OSError, ValueError) as error:
            place = f"{setting}_FILE={path}" if path else setting
            raise FailedPrecondition(
                f"{place} holds no usable key: {error}; `groundwork signing-keys rotate --folder DIR` makes a set of keys",
                reason="BAD_KEYS",
            ) from error

    def current(self) -> KeysT:
        """The keys as they were RECHECK_AFTER_S ago or later. The same object as long as nothing changed."""
        return self._source.current()


def new_key(name: str) -> Jwk:
    """A private JSON Web Key whose id begins with `name`: who signs with it."""
    return {"kid": f"{name}-{secrets.token_hex(4)}", **OKPAlgorithm.to_jwk(Ed25519PrivateKey.generate(), as_dict=True)}


def public_half(private: Mapping[str, Any], calls: Iterable[str]) -> Jwk:
    """The entry of the public key set: the key without its private part, and what its tokens are good for."""
    return {**{name: private[name] for name in ("kid", "kty", "crv", "x")}, "use": "sig", "calls": sorted(calls)}


def parse_signing_key(text: str) -> SigningKey:
    """Reads a private JSON Web Key. Raises UnusableKey."""
    jwk = _object(text)
    key = _key(jwk)
    if not isinstance(key, Ed25519PrivateKey):
        raise UnusableKey("it has no private part (d)")
    return SigningKey(_kid(jwk), key)


def parse_public_keys(text: str) -> Mapping[str, PublicKey]:
    """Reads a JSON Web Key Set; by key id. Raises UnusableKey. A private key has no place in it."""
    entries = _object(text).get("keys")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UnusableKey('it must be a JSON Web Key Set: {"keys": [...]}')
    found = {}
    for jwk in entries:
        key, calls = _key(jwk), jwk.get("calls")
        if not isinstance(key, Ed25519PublicKey):
            raise UnusableKey(f"key {_kid(jwk)} is a private one, which only its signer may have")
        if not isinstance(calls, list) or not all(isinstance(call, str) for call in calls):
            raise UnusableKey(f"key {_kid(jwk)} does not list the calls that its tokens are good for (calls)")
        found[_kid(jwk)] = PublicKey(_kid(jwk), key, frozenset(calls))
    if not found:
        raise UnusableKey("it holds no key")
    return found


def _object(text: str) -> Jwk:
    read = json.loads(text)
    if not isinstance(read, dict):
        raise UnusableKey("it must be a JSON object")
    return read


def _kid(jwk: Jwk) -> str:
    kid = jwk.get("kid")
    if not isinstance(kid, str) or not kid:
        raise UnusableKey("a key has no id (kid)")
    return kid


def _key(jwk: Jwk) -> object:
    if jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519":
        raise UnusableKey(f"key {_kid(jwk)} is not an Ed25519 key (kty OKP, crv Ed25519)")
    try:
        return OKPAlgorithm.from_jwk(jwk)
    except (jwt.PyJWTError, TypeError) as error:
        raise UnusableKey(f"key {_kid(jwk)} is damaged: {error}") from error
