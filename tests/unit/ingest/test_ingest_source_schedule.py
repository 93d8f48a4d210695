"""Whose source is synced when there are more than can be synced side by side."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from services.ingest.sources.models import SourceRecord
from services.ingest.sources.schedule import SourceSchedule
from tests.unit.ingest.fakes import FakeSourceStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Endless:
    """Syncs that do not end, of sources that tell of no changes."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.is_other_begun = asyncio.Event()

    async def sync(self, source: SourceRecord) -> None:
        self.begun.append(source.tenant_id)
        if source.tenant_id == "other":
            self.is_other_begun.set()
        await asyncio.Event().wait()

    def watch(self, _: SourceRecord) -> None:
        return None

    def is_due(self, _: SourceRecord) -> bool:
        """Of who may read."""
        return False


async def test_slow_sources_of_one_tenant_leave_room_for_another() -> None:
    store, endless = FakeSourceStore(), Endless()
    for number in range(6):
        tenant = "other" if number == 5 else "slow"
        await store.create(SourceRecord(tenant, f"{number:016x}", "place", "n", "default", "ann", NOW, every_s=900))
    anything: Any = endless
    running = asyncio.create_task(SourceSchedule(store, anything, anything, anything, anything, lambda: NOW).run())
    async with asyncio.timeout(30):
        await endless.is_other_begun.wait()
    running.cancel()
    assert sorted(endless.begun) == ["other", "slow", "slow"]
