"""What waits for the message store while the connection to it ends and another one is made."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from kit.errors import Unavailable
from kit.jetstream import Nats, connect
from kit.stores.audit_chain import ChainLink
from services.gateway.access.audit_recorder import AuditRecorder
from services.gateway.access.audit_store import AuditStore

_LIMIT_S = 60


@pytest.fixture
def recorder() -> AuditRecorder:
    return AuditRecorder(retention_days=365, max_bytes=16 * 1024**2)


@asynccontextmanager
async def running(recorder: AuditRecorder, nats: Nats) -> AsyncIterator[None]:
    task = asyncio.create_task(recorder.run(nats))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def store_now(recorder: AuditRecorder, action: str) -> None:
    stored = recorder.add("acme", {"action": action})
    assert stored is not None
    async with asyncio.timeout(_LIMIT_S):
        await stored


async def actions_and_numbers(nats: Nats) -> list[tuple[str, int]]:
    store = await AuditStore.open(nats, retention_days=365, max_bytes=16 * 1024**2)
    entries = [json.loads(line) async for line in store.lines("acme")]
    return [(entry["action"], entry["number"]) for entry in entries]


async def test_recorder_goes_on_over_another_connection(
    recorder: AuditRecorder, nats_url: str, jetstream: Nats
) -> None:
    for action in ("one", "two"):
        async with connect(nats_url, name="test") as nats, running(recorder, nats):
            await store_now(recorder, action)
    assert await actions_and_numbers(jetstream) == [("one", 1), ("two", 2)]


@pytest.mark.parametrize("is_stored", [False, True], ids=["lost", "stored"])
async def test_batch_in_hand_is_stored_once_over_the_next_connection(
    recorder: AuditRecorder, nats_url: str, jetstream: Nats, monkeypatch: pytest.MonkeyPatch, *, is_stored: bool
) -> None:
    tried = asyncio.Event()
    append = AuditStore.append

    async def fail(self: AuditStore, tenant_id: str, entries: Sequence[Mapping[str, Any]], batch_id: str) -> ChainLink:
        heads = dict(self._heads)
        if is_stored:
            await append(self, tenant_id, entries, batch_id)
            self._heads.update(heads)  # as if the answer had never come
        tried.set()
        raise Unavailable("the connection is closed")

    async with connect(nats_url, name="test") as nats, running(recorder, nats):
        await store_now(recorder, "before")
        monkeypatch.setattr(AuditStore, "append", fail)
        recorder.add("acme", {"action": "in hand"})
        async with asyncio.timeout(_LIMIT_S):
            await tried.wait()
    monkeypatch.undo()
    async with connect(nats_url, name="test") as nats, running(recorder, nats):
        await store_now(recorder, "after")
    assert await actions_and_numbers(jetstream) == [("before", 1), ("in hand", 2), ("after", 3)]
    assert recorder._count == 0


async def test_entries_that_nobody_waits_for_are_stored_before_the_gateway_ends(
    recorder: AuditRecorder, jetstream: Nats
) -> None:
    async with running(recorder, jetstream):
        await store_now(recorder, "one")
        recorder.add("acme", {"action": "two"})
    assert await actions_and_numbers(jetstream) == [("one", 1), ("two", 2)]
