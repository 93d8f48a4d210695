"""API keys: the text that a caller shows, and the record that is kept of it.

    gw_<id>_<secret><checksum>        gw_0f3a…_x7Kq…

The id (96 random bits, hex) names the record and is no secret. The secret has 256 random bits. The checksum (CRC-32 of all that
stands before it) tells a mistyped or cut-off key from an unknown one without a lookup, and lets scanners of repositories recognise
a leaked one with certainty, as GitHub's do (https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/).

What is stored is the SHA-256 of the whole text. A password hash (argon2, bcrypt) is slow so that few guesses a second can be tried
against a stolen hash; of 256 random bits no speed of guessing finds one, and each request is checked without being slowed down.
"""

import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import SecretStr

from kit.access.principal import Principal
from kit.errors import Unauthenticated

VERSION = 2
"""Of records: 2 for a key with a guard, 1 for all others. A reader carries fields that it does not know, and takes no key whose
version is above its own: the version is raised when a field begins to restrict a key."""

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECRET_BITS, _SECRET_CHARS = 256, 43
_CHECKSUM_CHARS = 6
_TEXT = re.compile(r"gw_([0-9a-f]{24})_[0-9A-Za-z]{49}")
_NO_DIGEST = bytes(32)
"""No text has it as its SHA-256. Compared with where there is nothing to compare with, so that it takes as long."""


class ApiKeyMissing(Unauthenticated):
    """The request shows no key."""

    reason = "API_KEY_MISSING"


class ApiKeyMalformed(Unauthenticated):
    """What is shown cannot be a key."""

    reason = "API_KEY_MALFORMED"


class ApiKeyInvalid(Unauthenticated):
    """There is no such key."""

    reason = "API_KEY_INVALID"


class ApiKeyExpired(Unauthenticated):
    """The key was good until a time that is over."""

    reason = "API_KEY_EXPIRED"


class ApiKeyRevoked(Unauthenticated):
    """The key was taken back."""

    reason = "API_KEY_REVOKED"


@dataclass(frozen=True)
class ShownKey:
    """A key that a caller shows, as far as it is remembered: the text itself is not kept."""

    key_id: str
    digest: bytes = field(repr=False)


@dataclass(frozen=True)
class ApiKey:
    """The record of a key. Times are aware."""

    key_id: str
    name: str
    tenant_id: str
    subject: str
    scopes: tuple[str, ...]
    digest: bytes = field(repr=False)
    """SHA-256 of the key's text."""
    created_at: datetime
    created_by: str
    """The subject who made it, or how it came to be."""
    created_with: str = ""
    """Id of the key that it was made with; empty when it was made without one."""
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    rotated_at: datetime | None = None
    previous_digest: bytes = field(default=b"", repr=False)
    """Of the text before the last rotation; empty when there is none."""
    previous_until: datetime | None = None
    """Until then the text before the last rotation is good too."""
    guard: str = ""
    """Least of what becomes of unsafe questions asked with the key: `flag` or `block`; empty means as set."""
    groups: tuple[str, ...] = ()
    """The groups that the subject is in."""
    memory: str = ""
    """Mode of memory of requests with the key that name none; empty means as set."""
    newer_fields: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What a newer version wrote into the record."""

    @property
    def principal(self) -> Principal:
        """Whom the key speaks for."""
        scopes, groups = frozenset(self.scopes), frozenset(self.groups)
        return Principal(
            self.tenant_id,
            self.subject,
            scopes,
            guard=self.guard,
            memory=self.memory,
            groups=groups,
            key_id=self.key_id,
        )

    def status(self, now: datetime) -> str:
        """`active`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and now >= self.expires_at else "active"

    def ended_at(self, now: datetime) -> datetime | None:
        """Since when the key is good for nothing; None while it is good."""
        ends = [end for end in (self.revoked_at, self.expires_at) if end is not None and end <= now]
        return min(ends, default=None)

    def revoked(self, now: datetime) -> "ApiKey":
        """The record with the key taken back; as it is when it was before."""
        return self if self.revoked_at is not None else replace(self, revoked_at=now)

    def rotated(self, text: SecretStr, now: datetime, keep_old_for_s: float) -> "ApiKey":
        """The record with a new text; the present one stays good for `keep_old_for_s`. One before that is void."""
        return replace(
            self,
            digest=_digest(text.get_secret_value()),
            rotated_at=now,
            previous_digest=self.digest if keep_old_for_s else b"",
            previous_until=now + timedelta(seconds=keep_old_for_s) if keep_old_for_s else None,
        )


def stricter_guard(*guards: str) -> str:
    """The strictest of guards, `flag` or `block`; empty where all are."""
    return max(guards, key=("", "flag", "block").index)


def new_key_id() -> str:
    return secrets.token_hex(12)


def new_text(key_id: str) -> SecretStr:
    """The text of a key: shown once, and not kept."""
    start = f"gw_{key_id}_{_in_base62(secrets.randbits(_SECRET_BITS), _SECRET_CHARS)}"
    return SecretStr(start + _checksum(start))


def new_key(
    *,
    name: str,
    tenant_id: str,
    subject: str,
    scopes: tuple[str, ...],
    created_at: datetime,
    created_by: str,
    created_with: str = "",
    expires_at: datetime | None = None,
    key_id: str = "",
    guard: str = "",
    groups: tuple[str, ...] = (),
    memory: str = "",
) -> tuple[ApiKey, SecretStr]:
    """A record and its text."""
    key_id = key_id or new_key_id()
    text = new_text(key_id)
    digest = _digest(text.get_secret_value())
    key = ApiKey(
        key_id,
        name,
        tenant_id,
        subject,
        scopes,
        digest,
        created_at,
        created_by,
        created_with,
        expires_at=expires_at,
        guard=guard,
        groups=groups,
        memory=memory,
    )
    return key, text


def read_shown(text: str) -> ShownKey:
    """What a caller shows. Raises ApiKeyMalformed; costs the same for every key."""
    match = _TEXT.fullmatch(text)
    if match is None or not hmac.compare_digest(_checksum(text[:-_CHECKSUM_CHARS]), text[-_CHECKSUM_CHARS:]):
        raise ApiKeyMalformed(
            "what was sent is no API key: it is mistyped or cut off; a key begins with gw_ and has 77 characters"
        )
    return ShownKey(match[1], _digest(text))


def require_good(key: ApiKey | None, shown: ShownKey, now: datetime) -> ApiKey:
    """The key that is shown; `key` is its record if there is one. Takes as long for an unknown id as for a wrong secret.

    Raises ApiKeyInvalid, and to who shows a right text ApiKeyRevoked or ApiKeyExpired.
    """
    is_current = hmac.compare_digest(shown.digest, key.digest if key else _NO_DIGEST)
    is_previous = hmac.compare_digest(shown.digest, (key.previous_digest if key else b"") or _NO_DIGEST)
    if key is None or not (is_current | is_previous):
        raise ApiKeyInvalid("this API key is not known here; ask who gave it to you for another")
    if key.revoked_at is not None:
        raise ApiKeyRevoked(f"API key {key.key_id} was revoked; ask an administrator for another")
    if key.expires_at is not None and now >= key.expires_at:
        raise ApiKeyExpired(f"API key {key.key_id} expired on {_written(key.expires_at)}; ask for another")
    if not is_current and (key.previous_until is None or now >= key.previous_until):
        raise ApiKeyExpired(f"this text of API key {key.key_id} was replaced by a new one; use that")
    return key


def encode(key: ApiKey) -> bytes:
    """The record as it is stored, with what a newer version wrote."""
    fields: dict[str, Any] = {
        "version": VERSION if key.guard else 1,
        "id": key.key_id,
        "name": key.name,
        "tenant_id": key.tenant_id,
        "subject": key.subject,
        "scopes": list(key.scopes),
        "sha256": key.digest.hex(),
        "created_at": _written(key.created_at),
        "created_by": key.created_by,
        "created_with": key.created_with,
        "expires_at": _written(key.expires_at),
        "revoked_at": _written(key.revoked_at),
        "rotated_at": _written(key.rotated_at),
        "previous_sha256": key.previous_digest.hex(),
        "previous_until": _written(key.previous_until),
        **({"guard": key.guard} if key.guard else {}),
        **({"groups": list(key.groups)} if key.groups else {}),
        **({"memory": key.memory} if key.memory else {}),
    }
    return json.dumps({**key.newer_fields, **fields}).encode()


def decode(value: bytes) -> ApiKey:
    """Raises one of kit.records.UNREADABLE or Unauthenticated for what is no record of a key that may be taken."""
    fields: dict[str, Any] = json.loads(value)
    if (version := int(fields.pop("version"))) > VERSION:
        raise ValueError(f"it is of version {version}")
    key = ApiKey(
        key_id=_word(fields.pop("id")),
        name=_word(fields.pop("name")),
        tenant_id=_word(fields.pop("tenant_id")),
        subject=_word(fields.pop("subject")),
        scopes=tuple(map(_word, fields.pop("scopes"))),
        digest=_read_digest(fields.pop("sha256")),
        created_at=datetime.fromisoformat(fields.pop("created_at")),
        created_by=_word(fields.pop("created_by")),
        created_with=_word(fields.pop("created_with", "")),
        expires_at=_read_time(fields.pop("expires_at", None)),
        revoked_at=_read_time(fields.pop("revoked_at", None)),
        rotated_at=_read_time(fields.pop("rotated_at", None)),
        previous_digest=_read_digest(previous) if (previous := fields.pop("previous_sha256", "")) else b"",
        previous_until=_read_time(fields.pop("previous_until", None)),
        guard=_word(fields.pop("guard", "")),
        groups=tuple(map(_word, fields.pop("groups", ()))),
        memory=_word(fields.pop("memory", "")),
        newer_fields=fields,
    )
    _ = key.principal  # a tenant or subject that cannot be one is no caller
    return key


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _checksum(text: str) -> str:
    return _in_base62(binascii.crc32(text.encode()), _CHECKSUM_CHARS)


def _in_base62(number: int, width: int) -> str:
    """Letters and digits only: a double click selects the whole key."""
    text = ""
    for _ in range(width):
        number, digit = divmod(number, len(_ALPHABET))
        text = _ALPHABET[digit] + text
    return text


def _written(moment: datetime | None) -> str:
    return moment.astimezone(UTC).isoformat() if moment else ""


def _read_time(value: str | None) -> datetime | None:
    """Raises ValueError also for a time without a zone, which could not be compared."""
    if not value:
        return None
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("a time has no zone")
    return moment


def _read_digest(value: str) -> bytes:
    digest = bytes.fromhex(value)
    if len(digest) != hashlib.sha256().digest_size:
        raise ValueError("the digest is of another length")
    return digest


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text was expected")
    return value
