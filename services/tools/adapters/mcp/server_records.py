"""Tenants' records of MCP servers (`TOOL_SERVERS`), the same in every process: what was decided of a server under
`<tenant>.<server>`, the login at it under `<tenant>.<server>.login`, and one that waits for its person under
`<tenant>.<server>.waiting`: the tokens are renewed while somebody approves a tool.

Headers and logins are sealed, and can be opened for their own server and address only. When the key was changed they are sealed
anew by a process that has seen the key before.
"""

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import SecretStr

from kit.access.sealing import CannotOpen, Sealer
from kit.errors import Aborted
from kit.jetstream import Entry, KeyValue, Nats
from kit.stores.followed_settings import FollowedSettings
from services.tools.adapters.sealed_records import SealedRecords, encode_sealed, require_sealer
from services.tools.sources.logins import Login, WaitingLogin
from services.tools.sources.remote_records import Approval, ServerRecord
from services.tools.state import SERVERS

_LOGIN, _WAITING = "login", "waiting"


class KeyValueServerRecords:
    """ServerRecords over one bucket."""

    def __init__(self, bucket: KeyValue, sealer: Sealer | None) -> None:
        """`open` makes it."""
        self._bucket = bucket
        self._sealer = sealer
        self._records: dict[str, dict[str, ServerRecord]] = {}
        self._logins: dict[str, bytes] = {}
        """By key, sealed."""
        self.secrets = SealedRecords(SERVERS.name, bucket, sealer, (_LOGIN, "headers"), self._place_of, self._apply)
        self.settings: FollowedSettings

    @classmethod
    async def open(cls, nats: Nats, sealer: Sealer | None) -> "KeyValueServerRecords":
        """Returns the records with what is stored already known. Raises Unavailable."""
        records = cls(await KeyValue.open(nats, SERVERS.name), sealer)
        records.settings = await FollowedSettings.open(nats, SERVERS.name, records._apply)
        return records

    def of(self, tenant_id: str) -> Mapping[str, ServerRecord]:
        return dict(self._records.get(tenant_id, {}))

    async def put(self, tenant_id: str, server: str, record: ServerRecord | None) -> None:
        key = f"{tenant_id}.{server}"
        await self.settings.put(key, encode(self._sealed(record, key)) if record else b"null")

    def login(self, tenant_id: str, server: str, *, is_waiting: bool = False) -> Login | None:
        key = _login_key(tenant_id, server, is_waiting=is_waiting)
        if (sealed := self._logins.get(key)) is None:
            return None
        if self._sealer is None:
            raise CannotOpen("this process has no key")
        return _decode_login(self._sealer.open(sealed, _place(key, self._url(key))))

    async def put_login(self, tenant_id: str, server: str, login: Login | None, *, is_waiting: bool = False) -> None:
        key = _login_key(tenant_id, server, is_waiting=is_waiting)
        if login is None:
            if key in self._logins:
                await self.settings.put(key, b"null")
            return
        sealed = require_sealer(self._sealer).seal(_encode_login(login), _place(key, self._url(key)))
        await self.settings.put(key, _encode_sealed_login(sealed))

    async def replace_login(self, tenant_id: str, server: str, known: Login, login: Login) -> bool:
        key = _login_key(tenant_id, server)
        sealed = require_sealer(self._sealer).seal(_encode_login(login), _place(key, self._url(key)))
        while self.login(tenant_id, server) == known:
            revision = self.secrets.revision(key)
            try:
                await self.settings.put(key, _encode_sealed_login(sealed), instead_of=revision)
            except Aborted:  # perhaps it was sealed anew, and is the same
                await self.settings.wait_for(partial(self._is_another, key, revision))
            else:
                return True
        return False

    def _is_another(self, key: str, revision: int) -> bool:
        return self.secrets.revision(key) != revision

    async def changed_login(self, tenant_id: str, server: str, known: Login, *, timeout_s: float) -> Login | None:
        try:
            async with asyncio.timeout(timeout_s):
                await self.settings.wait_for(lambda: self.login(tenant_id, server) != known)
        except TimeoutError:
            return None
        return self.login(tenant_id, server)

    async def _apply(self, entry: Entry) -> None:
        tenant_id, _, rest = entry.key.partition(".")
        server, _, what = rest.partition(".")
        sealed = self.secrets.keep(entry)
        if what:
            self._logins.pop(entry.key, None)
            if sealed:
                self._logins[entry.key] = sealed
            return
        record = decode(entry.value or b"null")
        known = self._records.setdefault(tenant_id, {})
        known.pop(server, None)
        if record is not None:
            known[server] = self._opened(record, entry.key)

    def _place_of(self, entry: Entry) -> str:
        return _place(entry.key, self._url(entry.key))

    def _url(self, key: str) -> str:
        tenant_id, server, *_ = key.split(".")
        return self._records.get(tenant_id, {}).get(server, ServerRecord()).url

    def _sealed(self, record: ServerRecord, key: str) -> ServerRecord:
        """The record as it is stored; headers that this process could not open stay as they are."""
        if not record.headers:
            return record
        headers = {name: value.get_secret_value() for name, value in record.headers.items()}
        sealed = require_sealer(self._sealer).seal(json.dumps(headers).encode(), _place(key, record.url))
        return replace(record, sealed=encode_sealed(sealed))

    def _opened(self, record: ServerRecord, key: str) -> ServerRecord:
        if not record.sealed or self._sealer is None:
            return record
        try:
            opened = self._sealer.open(base64.b64decode(record.sealed), _place(key, record.url))
        except CannotOpen:
            return record
        headers = {name: SecretStr(value) for name, value in json.loads(opened).items()}
        return replace(record, headers=headers, sealed="")


def _place(key: str, url: str) -> str:
    return f"{SERVERS.name}/{key}/{url}"


def _login_key(tenant_id: str, server: str, *, is_waiting: bool = False) -> str:
    return f"{tenant_id}.{server}.{_WAITING if is_waiting else _LOGIN}"


def encode(record: ServerRecord) -> bytes:
    """The record as it is stored; its headers are sealed already."""
    approved = {
        tool: {"digest": each.digest, "reads_only": each.reads_only, "by": each.by, "at": each.at.isoformat()}
        for tool, each in record.approved.items()
    }
    sealed = {"headers": record.sealed} if record.sealed else {}
    return json.dumps({"url": record.url, "approved": approved, **sealed}).encode()


def decode(value: bytes) -> ServerRecord | None:
    """Raises one of UNREADABLE."""
    data: dict[str, Any] | None = json.loads(value)
    if data is None:
        return None
    approved = {
        tool: Approval(each["digest"], each["reads_only"], each["by"], datetime.fromisoformat(each["at"]))
        for tool, each in data["approved"].items()
    }
    return ServerRecord(data["url"], approved, sealed=data.get("headers", ""))


def _encode_sealed_login(sealed: bytes) -> bytes:
    """A version that knows no logins reads a server without an address, and passes it over."""
    return json.dumps({"url": "", "approved": {}, _LOGIN: encode_sealed(sealed)}).encode()


def _encode_login(login: Login) -> bytes:
    return json.dumps(asdict(login), default=datetime.isoformat).encode()


def _decode_login(opened: bytes) -> Login:
    data: dict[str, Any] = json.loads(opened)
    waits = data["waiting"]
    return Login(
        redirect_uri=data["redirect_uri"],
        scope=data["scope"],
        client=data["client"],
        authorization_server=data["authorization_server"],
        resource=data["resource"],
        tokens=data["tokens"],
        expires_at_s=data["expires_at_s"],
        renewing_until_s=data.get("renewing_until_s", 0.0),
        over_until_s=data.get("over_until_s", 0.0),
        over_because=data.get("over_because", ""),
        waiting=waits
        and WaitingLogin(waits["state"], waits["verifier"], waits["subject"], datetime.fromisoformat(waits["until"])),
    )
