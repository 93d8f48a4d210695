"""What is lost, torn or turned back in a real message store is seen, named, and mended where that is possible."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from kit import state
from kit.jetstream import KeyValue, Nats, ObjectStore, connect
from kit.jetstream.condition import Finding, StoreCondition
from kit.stores.api_key_store import ApiKeyStore, bootstrap_key
from kit.testing.nats import NatsServer, nats_server_binary
from ops.doctor import examine, examine_copy
from ops.watch import keeper as keeper_module
from ops.watch.ledger import Entry, Ledger
from ops.watch.rounds import StoreWatch
from services.ingest.state import FILES
from services.standalone.private_store import private_store
from services.standalone.storage.data_dir import open_data_dir
from services.standalone.supervising.models import StartLimits
from tests.unit.ops.stores import (
    AT,
    Store,
    by_place,
    file_of,
    keys,
    mended,
    record,
    run_record,
    truncate,
    upload,
    watch_over,
)

DOCUMENTS = 300


async def fill(nats: Nats, count: int) -> None:
    documents = await KeyValue.open(nats, "DOCUMENTS")
    files = await ObjectStore.open(nats, "FILES")
    for number in range(count):
        await files.put(f"local/hash{number}", file_of(number))
        await documents.put(f"local.d{number}", record(number))


async def contents(nats: Nats, bucket: str) -> dict[str, bytes | None]:
    return {entry.key: entry.value async for entry in (await KeyValue.open(nats, bucket)).entries(">")}


def flip_a_bit(block: Path) -> None:
    """In the middle of a record's text."""
    data = bytearray(block.read_bytes())
    data[data.index(b"n150.txt")] ^= 4
    block.write_bytes(data)


def flip_a_length(block: Path) -> None:
    """The length of a subject: bytes of the record become part of its key."""
    data = bytearray(block.read_bytes())
    at = data.index(b"$KV.DOCUMENTS.local.d150") - 2
    data[at] ^= 4
    block.write_bytes(data)


def remove_stream(block: Path) -> None:
    for path in sorted(block.parent.parent.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    block.parent.parent.rmdir()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("damage", [truncate, flip_a_bit, flip_a_length, remove_stream])
async def test_records_that_a_damaged_block_swallowed_are_named_and_put_back(
    store: Store, damage: Callable[[Path], None], kill: bool
) -> None:
    async with store.open() as (nats, keeper):
        await fill(nats, DOCUMENTS)
        await keeper.sync()
        before = await contents(nats, "DOCUMENTS")
    await store.server.stop(kill=kill)
    damage(store.block("KV_DOCUMENTS"))
    await store.server.start()
    async with store.open() as (nats, keeper):
        findings = await watch_over(nats, keeper).compare_at_start(store.rebuild)
        assert all(finding.count == finding.repaired for finding in findings)
        lost = by_place(findings)["DOCUMENTS", "entries_missing"][0]
        assert lost == DOCUMENTS if damage is remove_stream else 0 < lost < DOCUMENTS
        assert findings[0].detail.startswith(f"{lost} entries of DOCUMENTS ")
        assert "default/n" in findings[0].examples[0]
        assert await (await StoreCondition.open(nats)).findings() == findings
        assert await contents(nats, "DOCUMENTS") == before
        assert await mended(keeper) == [], "it is over"


async def test_a_whole_store_differs_in_nothing_whatever_was_done_to_it(store: Store) -> None:
    async with store.open() as (nats, keeper):
        for number in range(5):
            await upload(nats, number)
        await keeper.sync()
        documents, names = await KeyValue.open(nats, "DOCUMENTS"), await KeyValue.open(nats, "DOCUMENT_NAMES")
        await documents.put("local.d0", record(0, "processing"))
        await documents.purge("local.d1")
        await (await ObjectStore.open(nats, "FILES")).delete("local/hash1")
        await names.purge("local.default.name1")
        for bucket in ("ACTIVE_REVISIONS",):  # removed with its document, and without a mark
            await nats.js.purge_stream(f"KV_{bucket}", subject=f"$KV.{bucket}.local.d1")
        await upload(nats, 7)
    await store.server.stop(kill=True)
    await store.server.start()
    async with store.open() as (nats, keeper):
        assert await mended(keeper) == []


async def test_messages_of_a_deleted_thread_are_not_missed_and_those_of_a_living_one_are(store: Store) -> None:
    async with store.open() as (nats, keeper):
        threads, messages = await KeyValue.open(nats, "THREADS"), await KeyValue.open(nats, "THREAD_MESSAGES")
        for thread in ("t1", "t2"):
            await threads.put(f"local.me.{thread}", b"{}")
            await messages.put(f"local.me.{thread}.at.1", b"hello")
        await keeper.sync()
        for thread in ("t1", "t2"):
            await nats.js.purge_stream("KV_THREAD_MESSAGES", subject=f"$KV.THREAD_MESSAGES.local.me.{thread}.>")
        await threads.purge("local.me.t1")
        findings = await mended(keeper)
    assert by_place(findings) == {("THREAD_MESSAGES", "entries_missing"): (1, 0)}
    assert findings[0].examples == ("local.me.t2.at.1",)
    assert findings[0].advice


async def test_a_record_whose_file_is_gone_too_is_told_and_not_put_back(store: Store) -> None:
    async with store.open() as (nats, keeper):
        for number in range(3):
            await upload(nats, number)
        await keeper.sync()
        await nats.js.purge_stream("OBJ_FILES")
        await nats.js.purge_stream("KV_DOCUMENTS", subject="$KV.DOCUMENTS.local.d0")
        findings = await mended(keeper)
        assert by_place(findings) == {
            ("FILES", "entries_missing"): (3, 0),
            ("DOCUMENTS", "entries_missing"): (1, 0),
            ("FILES", "files_missing"): (2, 0),
        }
        assert await keys(nats, "DOCUMENTS") == ["local.d1", "local.d2"]
        fileless = findings[-1]
    assert fileless.examples == ("default/n1.txt (d1)", "default/n2.txt (d2)")
    assert "upload these documents again" in fileless.advice


async def test_a_name_and_a_pointer_come_back_with_their_document(store: Store) -> None:
    async with store.open() as (nats, keeper):
        for number in range(2):
            await upload(nats, number)
        await keeper.sync()
        buckets = ("DOCUMENTS", "DOCUMENT_NAMES", "ACTIVE_REVISIONS")
        before = [await keys(nats, bucket) for bucket in buckets]
        for bucket in buckets:
            await nats.js.purge_stream(f"KV_{bucket}")
        findings = await mended(keeper)
        assert {finding.where: (finding.count, finding.repaired) for finding in findings} == dict.fromkeys(
            buckets, (2, 2)
        )
        assert [await keys(nats, bucket) for bucket in buckets] == before


async def test_who_was_deleted_does_not_return_and_an_older_record_is_replaced(store: Store) -> None:
    async with store.open() as (nats, keeper):
        await fill(nats, 2)
        documents = await KeyValue.open(nats, "DOCUMENTS")
        await documents.put("local.d0", record(0, "failed"))
        await documents.purge("local.d1")
        await keeper.sync()
        # As after a crash of the machine: the last writes are gone, what they replaced is there again.
        await nats.js.purge_stream("KV_DOCUMENTS")
        await nats.js.delete_stream("KV_DOCUMENTS")
        documents = await KeyValue.open(nats, "DOCUMENTS")
        await documents.put("local.d0", record(0))
        await documents.put("local.d1", record(1))
        findings = await mended(keeper)
        assert by_place(findings) == {
            ("DOCUMENTS", "entries_outdated"): (1, 1),
            ("DOCUMENTS", "entries_returned"): (1, 1),
        }
        entry = await documents.get("local.d0")
        assert entry is not None
        assert entry.value == record(0, "failed")
        assert await keys(nats, "DOCUMENTS") == ["local.d0"]


async def test_a_revocation_that_was_lost_is_put_back(store: Store) -> None:
    async with store.open() as (nats, keeper):
        key, _ = bootstrap_key("local", "ann", AT)
        api_keys = await ApiKeyStore.open(nats)
        await api_keys.create(key)
        revoked, _ = await api_keys.change("local", key.key_id, lambda each: each.revoked(AT))
        await keeper.sync()
        await nats.js.delete_stream("KV_API_KEYS")
        api_keys = await ApiKeyStore.open(nats)
        await api_keys.create(key)
        assert by_place(await mended(keeper)) == {("API_KEYS", "entries_outdated"): (1, 1)}
        assert await api_keys.all() == [revoked]


async def test_while_services_run_nothing_that_is_there_is_written_over(store: Store) -> None:
    async with store.open() as (nats, keeper):
        await fill(nats, 2)
        documents = await KeyValue.open(nats, "DOCUMENTS")
        await documents.put("local.d0", record(0, "failed"))
        await keeper.sync()
        await nats.js.delete_stream("KV_DOCUMENTS")
        documents = await KeyValue.open(nats, "DOCUMENTS")
        await documents.put("local.d0", record(0))
        findings = await mended(keeper, quiet=False)
        assert by_place(findings) == {
            ("DOCUMENTS", "entries_outdated"): (1, 0),
            ("DOCUMENTS", "entries_missing"): (1, 1),
        }
        entry = await documents.get("local.d0")
        assert entry is not None
        assert entry.value == record(0)


@pytest.mark.parametrize("final", [False, True])
async def test_lost_events_of_runs_are_counted(store: Store, final: bool) -> None:
    async with store.open() as (nats, keeper):
        await nats.js.add_stream(name="RUNS", subjects=["runs.>"])
        for number in range(10):
            await nats.js.publish("runs.local.r1", f"{number}".encode())
        await keeper.sync(final=final)
        lost = 4 if final else 10
        await nats.js.purge_stream("RUNS", keep=6) if final else await nats.js.delete_stream("RUNS")
        if final:  # in the middle, where the ends say nothing
            await nats.js.delete_msg("RUNS", 7)
            lost = 1
        findings = await mended(keeper)
    assert by_place(findings) == {("RUNS", "messages_missing"): (lost, 0)}


@pytest.mark.parametrize("lost", [0, 1])
async def test_lost_records_of_runs_are_counted_after_a_clean_stop(store: Store, lost: int) -> None:
    async with store.open() as (nats, keeper):
        records = await KeyValue.open(nats, "RUN_RECORDS")
        for number in (0, 1, 2, 3, 4, 0, 3):
            await records.put(f"local.r{number}", b"running")
        await keeper.sync(final=True)
        if lost:  # in the middle, where the ends say nothing
            await nats.js.purge_stream("KV_RUN_RECORDS", subject="$KV.RUN_RECORDS.local.r2")
        findings = await mended(keeper)
    assert by_place(findings) == ({("KV_RUN_RECORDS", "messages_missing"): (1, 0)} if lost else {})


async def test_a_lost_marker_of_a_run_that_has_not_ended_comes_back(store: Store) -> None:
    async with store.open() as (nats, keeper):
        records = await KeyValue.open(nats, "RUN_RECORDS")
        markers = await KeyValue.open(nats, "RUN_ACTIVE")
        for run in ("r1", "r2", "r3"):
            await markers.put(f"local.{run}", b"")
            await records.put(f"local.{run}", run_record())
        await keeper.sync()
        await records.put("local.r2", run_record(finished_at=AT))
        await records.purge("local.r3")
        await nats.js.purge_stream("KV_RUN_ACTIVE")  # of r2 and r3 as when the mark of their end has expired
        findings = await mended(keeper)
        assert by_place(findings) == {("RUN_ACTIVE", "entries_missing"): (1, 1)}
        assert await keys(nats, "RUN_ACTIVE") == ["local.r1"]


async def test_a_record_that_is_put_back_has_its_file(store: Store) -> None:
    async with store.open() as (nats, keeper):
        await fill(nats, 2)
        documents = await KeyValue.open(nats, "DOCUMENTS")
        older = json.dumps({**json.loads(record(0)), "content": {"sha256": "replaced"}}).encode()
        await documents.put("local.d0", record(0))
        await keeper.sync()
        # As after a crash of the machine: the last write is gone, what it replaced is there again, the file of that is not.
        await nats.js.delete_stream("KV_DOCUMENTS")
        documents = await KeyValue.open(nats, "DOCUMENTS")
        await documents.put("local.d0", older)
        found = await watch_over(nats, keeper).compare_at_start(store.rebuild)
        assert {finding.kind for finding in found} == {"entries_outdated", "entries_missing"}
        told = await (await StoreCondition.open(nats)).findings()
        assert {finding.kind for finding in told} == {"entries_outdated", "entries_missing"}


async def test_a_document_that_comes_while_all_is_compared_has_its_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with store.open() as (nats, keeper):
        await upload(nats, 0)
        await keeper.sync()
        real = keeper_module.read_entries

        async def read(nats_: Nats, watched: state.Store, *, after: int = 0) -> dict[str, Entry]:
            found = await real(nats_, watched, after=after)
            if watched is FILES and await keys(nats_, "ACTIVE_REVISIONS") != ["local.d0", "local.d1"]:
                await upload(nats_, 1)
            return found

        monkeypatch.setattr(keeper_module, "read_entries", read)
        assert (await keeper.compare()).fileless == ()
        assert await keys(nats, "DOCUMENTS") == ["local.d0", "local.d1"]


async def test_a_damaged_ledger_is_set_aside_and_begun_anew(store: Store) -> None:
    async with store.open() as (nats, keeper):
        await fill(nats, 3)
        await keeper.sync()
    data = bytearray(store.ledger_file.read_bytes())
    data[100:1200] = bytes(1100)
    store.ledger_file.write_bytes(data)
    ledger, was_damaged = await asyncio.to_thread(Ledger.open, store.ledger_file)
    assert was_damaged
    assert await asyncio.to_thread(ledger.totals) == {}
    await asyncio.to_thread(ledger.close)
    assert store.ledger_file.with_name("ledger.sqlite.damaged").exists()


async def test_what_is_deleted_leaves_the_ledger_too(store: Store) -> None:
    async with store.open() as (nats, keeper):
        await fill(nats, 1)
        await keeper.sync()
        assert b"n0.txt" in await asyncio.to_thread(store.ledger_file.with_name("ledger.sqlite-wal").read_bytes)
        await (await KeyValue.open(nats, "DOCUMENTS")).purge("local.d0")
        await keeper.sync()
        for file in (store.ledger_file, store.ledger_file.with_name("ledger.sqlite-wal")):
            assert b"n0.txt" not in await asyncio.to_thread(file.read_bytes)


async def test_findings_are_kept_until_somebody_has_accepted_them(nats: NatsServer) -> None:
    finding = Finding("entries_missing", "DOCUMENTS", 3, 1, "3 are gone", "Restore", ("a",), AT.isoformat())
    async with connect(nats.url, name="test") as connection:
        condition = await StoreCondition.open(connection)
        assert await condition.findings() == []
        await condition.add("ledger", [finding])
        await condition.add("ledger", [finding])
        await condition.set("scrub", [finding])
        assert await condition.findings() == [finding] * 3
        await condition.set("scrub", [])
        assert await condition.findings() == [finding] * 2
        assert await condition.accept() == 2
        assert await condition.findings() == []


async def test_the_doctor_says_what_is_wrong_with_a_stopped_store_and_changes_nothing(
    store: Store, tmp_path: Path
) -> None:
    def open_copy(folder: Path) -> AbstractAsyncContextManager[Nats]:
        return private_store(folder, Path(nats_server_binary()), StartLimits(120.0, 2**40, ""), lambda text: None)

    with open_data_dir(tmp_path / "data") as data_dir:
        store.ledger_file = data_dir.ledger_file
        async with store.open() as (nats, keeper):
            await fill(nats, 5)
            await keeper.sync()
        await store.server.stop()
        await asyncio.to_thread(shutil.copytree, store.server.store, data_dir.nats_store, dirs_exist_ok=True)
        well = await examine_copy(data_dir, open_copy, now=lambda: AT)
        assert (well.is_well, well.lines()) == (True, ["Nothing is wrong with the stored data."])

        block = data_dir.nats_store / store.block("KV_DOCUMENTS").relative_to(store.server.store)
        truncate(block)
        before = block.read_bytes()
        sick = await examine_copy(data_dir, open_copy, now=lambda: AT)
        assert not sick.is_well
        lost = sick.now[0].count
        assert 0 < lost == sick.now[0].repaired
        assert sick.lines()[0] == "Wrong now:"
        assert sick.lines()[1].startswith(f"  DAMAGE  {lost} entries of DOCUMENTS ")
        assert block.read_bytes() == before
        assert not (data_dir.path / "nats.examined").exists()
        assert await examine_copy(data_dir, open_copy, now=lambda: AT) == sick, "the ledger has forgotten nothing"


async def test_what_was_found_is_shown_by_the_doctor_until_it_is_accepted(nats: NatsServer) -> None:
    finding = Finding("entries_missing", "DOCUMENTS", 3, 1, "3 are gone", "Restore", ("a",), AT.isoformat())
    async with connect(nats.url, name="test") as connection:
        await (await StoreCondition.open(connection)).add("ledger", [finding])
        diagnosis = await examine(connection, None, lambda: AT, accept=False)
        assert not diagnosis.is_well
        assert "  DAMAGE  3 are gone. Restore." in diagnosis.lines()
        accepted = await examine(connection, None, lambda: AT, accept=True)
        assert accepted.lines()[0] == "Accepted: 1 findings."
        assert accepted.is_well
        assert "was not compared" in accepted.lines()[-1], "without a ledger nobody says that nothing is wrong"


async def test_a_missing_file_is_told_once_and_no_longer_when_it_is_there_again(store: Store) -> None:
    said: list[str] = []
    async with store.open() as (nats, keeper):
        await upload(nats, 1)
        await keeper.sync()
        await nats.js.purge_stream("OBJ_FILES")
        watch = StoreWatch(nats, keeper, now=lambda: AT, say=said.append)
        condition = await StoreCondition.open(nats)
        for _ in range(3):
            await watch.scrub()
        assert [finding.kind for finding in await condition.findings()] == ["entries_missing", "files_missing"]
        assert sum("The files of 1 documents are gone" in line for line in said) == 1
        await (await ObjectStore.open(nats, "FILES")).put("local/hash1", file_of(1))
        await watch.scrub()
        assert [finding.kind for finding in await condition.findings()] == ["entries_missing"]
