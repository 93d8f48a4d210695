"""Sealing what is stored for a while and nobody else may read: AES-256-GCM under a key that is derived from the service's signing
key (HKDF, RFC 5869). All replicas of a service have the same signing key, and no other service has it, so there is no further key
to make, mount and rotate.

A sealed value names the signing key that it was sealed under. After a rotation a process still opens what the keys that it has
seen have sealed; one that started later does not.
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from kit.access.keys import KeySource, SigningKey
from kit.errors import FailedPrecondition

_FORMAT = b"\x01"
_PURPOSE = b"groundwork sealing v1"
_NONCE_BYTES = 12
_KEY_BYTES = 32


class CannotOpen(FailedPrecondition):
    """The value was sealed under a key that this process does not have, or it was changed."""

    reason = "CANNOT_OPEN_SEALED"


class Sealer:
    """Seals and opens. `place` is where a value is kept: one that was moved to another place cannot be opened there."""

    def __init__(self, keys: KeySource[SigningKey]) -> None:
        self._keys = keys
        self._ciphers: dict[str, AESGCM] = {}

    def seal(self, value: bytes, place: str) -> bytes:
        kid, cipher = self._current()
        nonce = os.urandom(_NONCE_BYTES)
        name = kid.encode()
        return _FORMAT + bytes([len(name)]) + name + nonce + cipher.encrypt(nonce, value, place.encode())

    def is_newest(self, sealed: bytes) -> bool:
        """Whether a value was sealed under the key that is sealed under now."""
        kid, _ = self._current()
        return sealed.startswith(_FORMAT + bytes([len(kid.encode())]) + kid.encode())

    def open(self, sealed: bytes, place: str) -> bytes:
        """Raises CannotOpen."""
        self._current()
        name_end = 2 + (sealed[1] if len(sealed) > 1 else 0)
        cipher = self._ciphers.get(sealed[2:name_end].decode("utf-8", "replace"))
        if sealed[:1] != _FORMAT or cipher is None:
            raise CannotOpen("it was sealed under a signing key that this process has not seen")
        nonce, text = sealed[name_end : name_end + _NONCE_BYTES], sealed[name_end + _NONCE_BYTES :]
        try:
            return cipher.decrypt(nonce, text, place.encode())
        except (InvalidTag, ValueError) as error:
            raise CannotOpen("it was changed, or belongs elsewhere") from error

    def _current(self) -> tuple[str, AESGCM]:
        key = self._keys.current()
        if key.kid not in self._ciphers:
            self._ciphers[key.kid] = AESGCM(_derived(key))
        return key.kid, self._ciphers[key.kid]


def _derived(key: SigningKey) -> bytes:
    derivation = HKDF(SHA256(), _KEY_BYTES, salt=None, info=_PURPOSE)
    return derivation.derive(key.key.private_bytes_raw())
