"""What was found wrong with the store is told over gRPC."""

import asyncio
import json
from contextlib import aclosing

from groundwork.store.v1 import store_pb2, store_pb2_grpc

from kit.jetstream import KeyValue, Nats, ObjectStore, connect
from kit.jetstream.condition import Finding, StoreCondition
from kit.shared_state import STORE_CONDITION
from kit.testing.harness import open_test_channel
from services.ingest.adapters.jetstream.store_condition import ConditionReport
from tests.service.ingest.conftest import TIMEOUT_S, System
from tests.service.ingest.test_ingest_service import READY


async def test_findings_are_told_until_they_are_accepted(system: System, nats_url: str) -> None:
    finding = Finding("files_missing", "FILES", 2, 0, "2 are gone", "Upload them again", ("a.txt",), "2026-11-22")
    async with open_test_channel(system.api_address) as channel, connect(nats_url, name="test") as nats:
        stub, condition = store_pb2_grpc.StoreServiceStub(channel), await StoreCondition.open(nats)

        async def told() -> list[str]:
            answer = await stub.GetCondition(store_pb2.GetConditionRequest(), timeout=TIMEOUT_S)
            return [each.detail for each in answer.findings]

        assert await told() == []
        await condition.add("ledger", [finding])
        assert await told() == ["2 are gone"]
        await condition.accept()
        assert await told() == []


async def test_findings_stand_in_the_details_of_readyz_until_they_are_accepted(jetstream: Nats) -> None:
    condition = await StoreCondition.open(jetstream)
    report = ConditionReport(condition)
    assert report.troubles() == ()
    await condition.set("upkeep", [Finding("files_missing", "FILES", 2, 0, "2 are gone", "", ("a.txt",), "2026-11-22")])
    await report.look()
    (trouble,) = report.troubles()
    assert (trouble.part, trouble.message) == ("stored data", "damaged: 2 are gone (groundwork doctor)")
    assert not trouble.stops_service
    await condition.accept()
    await report.look()
    assert report.troubles() == ()


async def test_a_record_that_is_lost_where_there_is_no_ledger_is_found_by_the_leading_worker(
    system: System, jetstream: Nats
) -> None:
    """The name is lost with it: only the retriever still knows of the document."""
    async with system.worker():
        document = await system.upload(b"Some text.", "notes.txt")
        await system.until(document.document_id, READY)
    for bucket in ("DOCUMENTS", "DOCUMENT_NAMES"):
        await jetstream.js.purge_stream(f"KV_{bucket}")
    system.settings = system.settings.model_copy(update={"ingest_reconcile_interval_s": 0.2})
    condition = await KeyValue.open(jetstream, STORE_CONDITION.name)
    async with (
        system.worker(),
        aclosing(
            condition.watch(),
        ) as changes,
        asyncio.timeout(TIMEOUT_S),
    ):
        async for entry in changes:
            if entry and json.loads(entry.value or b"[]"):
                break
    (finding,) = await StoreCondition(condition).findings()
    assert (finding.kind, finding.count, finding.examples) == ("records_missing", 1, (document.document_id,))
    files = [each async for each in (await ObjectStore.open(jetstream, "FILES")).entries()]
    assert len(files) == 1, "kept: it is all that is left of the document"


async def test_findings_that_are_torn_themselves_stop_nobody(jetstream: Nats) -> None:
    condition = await StoreCondition.open(jetstream)
    finding = Finding("files_missing", "FILES", 2, 0, "2 are gone", "", (), "2026-11-22")
    bucket = await KeyValue.open(jetstream, STORE_CONDITION.name)
    await bucket.put("upkeep", b"[{")
    await condition.add("ledger", [finding])
    assert await condition.findings() == [finding]
    assert await condition.set("upkeep", [finding])
    assert await condition.findings(besides="ledger") == [finding]
