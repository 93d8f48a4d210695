"""Tenants' records of MCP servers (`TOOL_SERVERS`, keys `<tenant>.<server>`), the same in every process."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kit.jetstream import Entry, Nats
from kit.stores.followed_settings import FollowedSettings
from services.tools.sources.remote_records import Approval, ServerRecord
from services.tools.state import SERVERS


class KeyValueServerRecords:
    """ServerRecords over one bucket."""

    def __init__(self) -> None:
        """`open` makes it."""
        self._records: dict[str, dict[str, ServerRecord]] = {}
        self.settings: FollowedSettings

    @classmethod
    async def open(cls, nats: Nats) -> "KeyValueServerRecords":
        """Returns the records with what is stored already known. Raises Unavailable."""
        records = cls()
        records.settings = await FollowedSettings.open(nats, SERVERS.name, records._apply)
        return records

    def of(self, tenant_id: str) -> Mapping[str, ServerRecord]:
        return dict(self._records.get(tenant_id, {}))

    async def put(self, tenant_id: str, server: str, record: ServerRecord | None) -> None:
        await self.settings.put(f"{tenant_id}.{server}", encode(record) if record else b"null")

    async def _apply(self, entry: Entry) -> None:
        tenant_id, _, server = entry.key.partition(".")
        record = decode(entry.value or b"null")
        known = self._records.setdefault(tenant_id, {})
        known.pop(server, None)
        if record is not None:
            known[server] = record


def encode(record: ServerRecord) -> bytes:
    """The record as it is stored."""
    approved = {
        tool: {"digest": each.digest, "reads_only": each.reads_only, "by": each.by, "at": each.at.isoformat()}
        for tool, each in record.approved.items()
    }
    return json.dumps({"url": record.url, "approved": approved}).encode()


def decode(value: bytes) -> ServerRecord | None:
    """Raises one of UNREADABLE."""
    data: dict[str, Any] | None = json.loads(value)
    if data is None:
        return None
    approved = {
        tool: Approval(each["digest"], each["reads_only"], each["by"], datetime.fromisoformat(each["at"]))
        for tool, each in data["approved"].items()
    }
    return ServerRecord(data["url"], approved)
