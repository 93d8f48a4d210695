"""Tenants' records of MCP servers (`TOOL_SERVERS`, keys `<tenant>.<server>`), the same in every process. Headers are sealed, and
can be opened for their own server and address only."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import SecretStr

from kit.access.sealing import CannotOpen, Sealer
from kit.jetstream import Entry, Nats
from kit.stores.followed_settings import FollowedSettings
from services.tools.errors import NoSealingKey
from services.tools.sources.remote_records import Approval, ServerRecord
from services.tools.state import SERVERS


class KeyValueServerRecords:
    """ServerRecords over one bucket."""

    def __init__(self, sealer: Sealer | None) -> None:
        """`open` makes it."""
        self._sealer = sealer
        self._records: dict[str, dict[str, ServerRecord]] = {}
        self.settings: FollowedSettings

    @classmethod
    async def open(cls, nats: Nats, sealer: Sealer | None) -> "KeyValueServerRecords":
        """Returns the records with what is stored already known. Raises Unavailable."""
        records = cls(sealer)
        records.settings = await FollowedSettings.open(nats, SERVERS.name, records._apply)
        return records

    def of(self, tenant_id: str) -> Mapping[str, ServerRecord]:
        return dict(self._records.get(tenant_id, {}))

    async def put(self, tenant_id: str, server: str, record: ServerRecord | None) -> None:
        key = f"{tenant_id}.{server}"
        await self.settings.put(key, encode(self._sealed(record, key)) if record else b"null")

    async def _apply(self, entry: Entry) -> None:
        tenant_id, _, server = entry.key.partition(".")
        record = decode(entry.value or b"null")
        known = self._records.setdefault(tenant_id, {})
        known.pop(server, None)
        if record is not None:
            known[server] = self._opened(record, entry.key)

    def _sealed(self, record: ServerRecord, key: str) -> ServerRecord:
        """The record as it is stored; headers that this process could not open stay as they are."""
        if not record.headers:
            return record
        if self._sealer is None:
            raise NoSealingKey("this installation keeps no headers: an operator gives the tools service a key first")
        headers = {name: value.get_secret_value() for name, value in record.headers.items()}
        sealed = self._sealer.seal(json.dumps(headers).encode(), _place(key, record.url))
        return replace(record, sealed=base64.b64encode(sealed).decode())

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


def encode(record: ServerRecord) -> bytes:
    """The record as it is stored, of which headers are sealed already."""
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
