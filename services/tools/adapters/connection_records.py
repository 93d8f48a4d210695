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
from functools import partial
from typing import Any

from pydantic import SecretStr

from kit.access.sealing import CannotOpen, Sealer
from kit.errors import Aborted
from kit.jetstream import Entry, KeyValue, Nats
from kit.stores.followed_settings import FollowedSettings
from services.tools.adapters.sealed_records import SealedRecords, encode_sealed, require_sealer
from services.tools.connections.logins import decode_login, encode_login
from services.tools.connections.records import Connection
from services.tools.sources.logins import Login
from services.tools.state import CONNECTIONS

_TENANT = "tenant"
_REMOVED = b"null"


class KeyValueConnections:
    """ConnectionRecords over one bucket."""

    def __init__(self, bucket: KeyValue, sealer: Sealer | None) -> None:
        """`open` makes it."""
        self._bucket = bucket
        self._sealer = sealer
        self._known: dict[str, dict[str, Connection]] = {}
        """By `<tenant>.<owner>`, then by service."""
        self.secrets = SealedRecords(CONNECTIONS.name, bucket, sealer, ("sealed",), _place_of, self._apply)
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
        sealer = require_sealer(self._sealer)
        key = _key(tenant_id, connection.subject, connection.service)
        secret = connection.secret.get_secret_value().encode()
        await self.settings.put(key, encode(connection, sealer.seal(secret, _place(key, connection))))

    async def remove(self, tenant_id: str, subject: str, service: str) -> None:
        key = _key(tenant_id, subject, service)
        stored = await self._bucket.get(key)  # this process may not have heard of it, or cannot read it
        if stored is not None and stored.value != _REMOVED:
            await self.settings.put(key, _REMOVED)

    def login(self, tenant_id: str, name: str) -> Login | None:
        service, _, subject = name.partition("/")
        connection = self._known.get(_owned(tenant_id, subject), {}).get(service)
        return decode_login(connection.secret) if connection else None

    async def replace_login(self, tenant_id: str, name: str, known: Login, login: Login) -> bool:
        service, _, subject = name.partition("/")
        key = _key(tenant_id, subject, service)
        while self.login(tenant_id, name) == known:
            revision = self.secrets.revision(key)
            connection = self._known[_owned(tenant_id, subject)][service]
            secret = encode_login(login).get_secret_value().encode()
            stored = encode(connection, require_sealer(self._sealer).seal(secret, _place(key, connection)))
            try:
                await self.settings.put(key, stored, instead_of=revision)
            except Aborted:  # perhaps it was sealed anew, and is the same
                await self.settings.wait_for(partial(self._is_another, tenant_id, name, known, revision))
            else:
                return True
        return False

    def _is_another(self, tenant_id: str, name: str, known: Login, revision: int) -> bool:
        """Also of a connection that is gone, which has no revision."""
        service, _, subject = name.partition("/")
        is_there = self.login(tenant_id, name) == known
        return not is_there or self.secrets.revision(_key(tenant_id, subject, service)) != revision

    async def changed_login(self, tenant_id: str, name: str, known: Login, *, timeout_s: float) -> Login | None:
        try:
            async with asyncio.timeout(timeout_s):
                await self.settings.wait_for(lambda: self.login(tenant_id, name) != known)
        except TimeoutError:
            return None
        return self.login(tenant_id, name)

    async def _apply(self, entry: Entry) -> None:
        owned, _, service = entry.key.rpartition(".")
        self._known.setdefault(owned, {}).pop(service, None)
        self.secrets.forget(entry.key)
        if (found := decode(entry.value or b"null")) is not None:
            connection, sealed = found
            self.secrets.keep(entry)
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
        "sealed": encode_sealed(sealed),
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


def _place_of(entry: Entry) -> str:
    found = decode(entry.value or b"null")
    return _place(entry.key, found[0]) if found else ""
