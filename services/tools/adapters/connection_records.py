"""Connections in the bucket `TOOL_CONNECTIONS`, the same in every process: under `<tenant>.<owner>.<service>`, where the owner is a
digest of the subject, or `tenant`. A credential is sealed, and can be opened for its own key, address and account only. When the
signing key was changed, a process that has seen the one before seals it anew.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog
from pydantic import SecretStr

from kit.access.sealing import CannotOpen, Sealer
from kit.errors import Aborted, Unavailable
from kit.jetstream import Entry, KeyValue, Nats
from kit.stores.followed_settings import FollowedSettings
from services.tools.connections.records import Connection
from services.tools.errors import NoSealingKey
from services.tools.state import CONNECTIONS

_log = structlog.get_logger()
_TENANT = "tenant"
_REMOVED = b"null"
_RESEAL_EVERY_S = 5.0
"""A changed key is seen within a second; the one before is known to no process that starts later."""


class KeyValueConnections:
    """ConnectionRecords over one bucket."""

    def __init__(self, bucket: KeyValue, sealer: Sealer | None) -> None:
        """`open` makes it."""
        self._bucket = bucket
        self._sealer = sealer
        self._known: dict[str, dict[str, Connection]] = {}
        """By `<tenant>.<owner>`, then by service."""
        self._sealed: dict[str, tuple[Entry, bytes]] = {}
        """What is stored, and the credential in it, by key."""
        self.settings: FollowedSettings

    @classmethod
    async def open(cls, nats: Nats, sealer: Sealer | None) -> "KeyValueConnections":
        """Returns the records with what is stored already known. Raises Unavailable."""
        records = cls(await KeyValue.open(nats, CONNECTIONS.name), sealer)
        records.settings = await FollowedSettings.open(nats, CONNECTIONS.name, records._apply)
        return records

    def of(self, tenant_id: str, subject: str) -> Sequence[Connection]:
        found = [self._known.get(_owned(tenant_id, owner), {}) for owner in (subject, "")]
        return [each[service] for each in found for service in sorted(each)]

    async def put(self, tenant_id: str, connection: Connection) -> None:
        if self._sealer is None:
            raise NoSealingKey("this installation keeps no secrets: an operator gives the tools service a key first")
        key = _key(tenant_id, connection.subject, connection.service)
        secret = connection.secret.get_secret_value().encode()
        await self.settings.put(key, encode(connection, self._sealer.seal(secret, _place(key, connection))))

    async def remove(self, tenant_id: str, subject: str, service: str) -> None:
        key = _key(tenant_id, subject, service)
        stored = await self._bucket.get(key)  # this process may not have heard of it, or cannot read it
        if stored is not None and stored.value != _REMOVED:
            await self.settings.put(key, _REMOVED)

    async def keep_sealed(self) -> None:
        """Seals anew what a changed key has sealed before. Runs until cancelled."""
        while True:
            try:
                await self.reseal()
            except Unavailable as error:
                _log.warning("connections_not_resealed", error=error.message)
            await asyncio.sleep(_RESEAL_EVERY_S)

    async def reseal(self) -> None:
        """Seals under the newest key what was sealed under another that this process has seen, and opens what it could not open
        until now. Raises Unavailable."""
        for key, (entry, sealed) in list(self._sealed.items()):
            if (sealer := self._sealer) is None or (found := _found(entry)) is None:
                continue
            place = _place(key, found[0])
            try:
                secret = sealer.open(sealed, place)
            except CannotOpen:
                continue
            if sealer.is_newest(sealed):
                await self._apply(entry)  # the key has come after the record
                continue
            data: dict[str, Any] = json.loads(entry.value or b"{}")
            anew = {**data, "sealed": base64.b64encode(sealer.seal(secret, place)).decode()}
            try:
                await self._bucket.update(key, json.dumps(anew).encode(), entry.revision)
            except Aborted:
                continue  # another process was first, or the connection was changed

    async def _apply(self, entry: Entry) -> None:
        owned, _, service = entry.key.rpartition(".")
        self._known.setdefault(owned, {}).pop(service, None)
        self._sealed.pop(entry.key, None)
        if (found := _found(entry)) is not None:
            connection, sealed = found
            self._sealed[entry.key] = (entry, sealed)
            self._known[owned][service] = replace(connection, secret=self._opened(entry.key, connection, sealed))

    def _opened(self, key: str, connection: Connection, sealed: bytes) -> SecretStr:
        """Empty where this process cannot open it."""
        try:
            opened = self._sealer.open(sealed, _place(key, connection)) if self._sealer else b""
        except CannotOpen:
            return SecretStr("")
        return SecretStr(opened.decode())


def _owned(tenant_id: str, subject: str) -> str:
    owner = hashlib.sha256(subject.encode()).hexdigest()[:32] if subject else _TENANT
    return f"{tenant_id}.{owner}"


def _key(tenant_id: str, subject: str, service: str) -> str:
    return f"{_owned(tenant_id, subject)}.{service}"


def _place(key: str, connection: Connection) -> str:
    return f"{CONNECTIONS.name}/{key}/{connection.account}/{connection.address}"


def encode(connection: Connection, sealed: bytes) -> bytes:
    """The connection as it is stored; its credential is sealed already."""
    stored = {
        "service": connection.service,
        "address": connection.address,
        "account": connection.account,
        "connected_at": connection.connected_at.isoformat(),
        "subject": connection.subject,
        "sealed": base64.b64encode(sealed).decode(),
    }
    return json.dumps(stored).encode()


def decode(value: bytes) -> tuple[Connection, bytes] | None:
    """The connection without its credential, and that as it is sealed; None of one that was removed. Raises one of UNREADABLE."""
    data: dict[str, Any] | None = json.loads(value)
    if data is None:
        return None
    connected_at = datetime.fromisoformat(data["connected_at"])
    connection = Connection(data["service"], data["address"], data["account"], connected_at, data["subject"])
    return connection, base64.b64decode(data["sealed"])


def _found(entry: Entry) -> tuple[Connection, bytes] | None:
    return decode(entry.value or b"null")
