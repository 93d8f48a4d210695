"""What the records of the tools service have in common that hold a secret: it is sealed in a field of its own, for its own place.

When the signing key was changed, a process that has seen the key before seals the secrets anew.
"""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog

from kit.access.sealing import CannotOpen, Sealer
from kit.errors import Aborted, Unavailable
from kit.jetstream import Entry, KeyValue
from services.tools.errors import NoSealingKey

_log = structlog.get_logger()
_RESEAL_EVERY_S = 5.0
"""A changed key is seen within a second; the one before is known to no process that starts later."""


def require_sealer(sealer: Sealer | None) -> Sealer:
    """Raises NoSealingKey where the installation has no key."""
    if sealer is None:
        raise NoSealingKey("this installation keeps no secrets: an operator gives the tools service a key first")
    return sealer


def encode_sealed(sealed: bytes) -> str:
    """The sealed secret as a field of a record."""
    return base64.b64encode(sealed).decode()


class SealedRecords:
    """The entries of one bucket as they are stored. A secret stands sealed in the first of `fields` that an entry has."""

    def __init__(
        self,
        name: str,
        bucket: KeyValue,
        sealer: Sealer | None,
        fields: Sequence[str],
        place: Callable[[Entry], str],
        apply: Callable[[Entry], Awaitable[None]],
    ) -> None:
        """`name` is the bucket's; `place` says where the secret of an entry belongs; `apply` takes an entry into use."""
        self._name = name
        self._bucket = bucket
        self._sealer = sealer
        self._fields = fields
        self._place = place
        self._apply = apply
        self._entries: dict[str, Entry] = {}

    def keep(self, entry: Entry) -> bytes:
        """Knows the entry as the one that is stored under its key. Returns what is sealed in it; empty where nothing is."""
        sealed = self._sealed_in(entry)
        self._entries[entry.key] = entry
        return sealed

    def forget(self, key: str) -> None:
        """Seals nothing anew that was stored under the key."""
        self._entries.pop(key, None)

    def revision(self, key: str) -> int:
        """The revision of a known entry."""
        return self._entries[key].revision

    async def keep_sealed(self) -> None:
        """Seals anew what a changed key has sealed before. Runs until cancelled."""
        while True:
            try:
                await self.reseal()
            except Unavailable as error:
                _log.warning("records_not_resealed", bucket=self._name, error=error.message)
            await asyncio.sleep(_RESEAL_EVERY_S)

    async def reseal(self) -> None:
        """Seals under the newest key what was sealed under another that this process has seen, and opens what it could not open
        until now. Raises Unavailable."""
        for key, entry in list(self._entries.items()):
            sealed = self._sealed_in(entry)
            if (sealer := self._sealer) is None or not sealed:
                continue
            place = self._place(entry)
            try:
                secret = sealer.open(sealed, place)
            except CannotOpen:
                continue
            if sealer.is_newest(sealed):
                await self._apply(entry)  # the key has come after the record
                continue
            try:
                await self._bucket.update(key, self._with_sealed(entry, sealer.seal(secret, place)), entry.revision)
            except Aborted:
                continue  # another process was first, or the record was changed

    def _sealed_in(self, entry: Entry) -> bytes:
        data = json.loads(entry.value or b"null") or {}
        return base64.b64decode(next((data[each] for each in self._fields if data.get(each)), ""))

    def _with_sealed(self, entry: Entry, sealed: bytes) -> bytes:
        data: dict[str, Any] = json.loads(entry.value or b"{}")
        field = next(each for each in self._fields if data.get(each))
        return json.dumps({**data, field: encode_sealed(sealed)}).encode()
