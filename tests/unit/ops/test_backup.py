"""Backups of a real message store: taken while it is written to, verified, and brought back after everything was lost."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as api
from groundwork.orchestrator.v1 import record_pb2 as pb

from cli.operating import message_store as commands
from kit.access.key_folder import KeyFolder
from kit.access.keys import KeySource, parse_public_keys, parse_signing_key
from kit.access.principal import Principal, use_principal
from kit.access.tokens import TokenSigner, TokenVerifier
from kit.jetstream import Job, KeyValue, Nats, ObjectStore, connect
from kit.stores.forgetting import ForgetQueue, ForgetRequest, Source, decode
from kit.testing.nats import NatsServer, nats_server, nats_server_binary
from ops.backup import archive
from ops.backup.archive import PART_BYTES, Manifest, open_verified
from ops.backup.make import back_up, order_streams
from ops.backup.restore import restore_data_dir, restore_into
from ops.errors import BackupUnusable, RestoreRefused
from ops.signers import SIGNERS
from ops.state import STORES
from ops.watch.keeper import Keeper
from ops.watch.ledger import Ledger
from services.standalone.private_store import private_store
from services.standalone.storage.data_dir import DataDir, open_data_dir
from services.standalone.supervising.models import StartLimits
from tests.unit.ops.stores import run_record

DOCUMENTS = 300
FILE = bytes(range(256)) * 4096  # 1 MiB: several pieces
LIMITS = StartLimits(timeout_s=120.0, memory_bytes=2**40, advice="")


def now() -> datetime:
    return datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def quietly(_stream: str) -> None:
    """Progress is for people."""


async def pieces_of(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 128 * 1024):
        yield data[start : start + 128 * 1024]


async def fill(nats: Nats) -> None:
    """Documents, some of them written twice, one deleted; a file; a lease."""
    documents = await KeyValue.open(nats, "DOCUMENTS")
    for number in range(DOCUMENTS):
        await documents.put(f"local.{number}", b"first")
    for number in range(0, DOCUMENTS, 3):
        await documents.put(f"local.{number}", b"second")
    await documents.purge("local.7")
    files = await ObjectStore.open(nats, "FILES")
    await files.put("local/hash", pieces_of(FILE))
    await (await KeyValue.open(nats, "RUN_OWNERS", ttl_s=60.0)).put("lease", b"mine")


async def contents(nats: Nats) -> dict[str, tuple[bytes, int]]:
    documents = await KeyValue.open(nats, "DOCUMENTS")
    return {entry.key: (entry.value or b"", entry.revision) async for entry in documents.entries(">")}


@asynccontextmanager
async def store_of(server: NatsServer) -> AsyncIterator[Nats]:
    async with connect(server.url, name="test") as nats:
        yield nats


@pytest.fixture
async def filled(nats: NatsServer) -> AsyncIterator[Nats]:
    async with store_of(nats) as connection:
        await fill(connection)
        yield connection


def open_private(store: Path) -> AbstractAsyncContextManager[Nats]:
    return private_store(store, Path(nats_server_binary()), LIMITS, quietly)


async def restored(data_dir: DataDir, file: Path, *, replace: bool = False) -> tuple[Manifest, Path | None]:
    return await restore_data_dir(data_dir, file, open_private, replace=replace, now=now, on_stream=quietly)


async def test_a_lost_data_directory_comes_back_with_every_entry_and_its_revision(filled: Nats, tmp_path: Path) -> None:
    before = await contents(filled)
    assert len(before) == DOCUMENTS - 1
    manifest = await back_up(filled, tmp_path / "backup.tar", now, quietly)
    assert [stream.name for stream in manifest.streams] == ["KV_DOCUMENTS", "OBJ_FILES"]
    assert (tmp_path / "backup.tar").stat().st_mode & 0o077 == 0

    with open_data_dir(tmp_path / "data") as data_dir:
        assert await restored(data_dir, tmp_path / "backup.tar") == (manifest, None)
        assert sorted(each.name for each in data_dir.path.iterdir()) == ["VERSION", "lock", "logs", "nats", "secrets"]
        async with open_private(data_dir.nats_store) as nats:
            assert await contents(nats) == before
            files = await ObjectStore.open(nats, "FILES")
            await files.get_to_file("local/hash", tmp_path / "file")
            documents = await KeyValue.open(nats, "DOCUMENTS")
            assert await documents.put("local.7", b"again") > max(revision for _, revision in before.values())
    assert (tmp_path / "file").read_bytes() == FILE


async def test_a_backup_of_a_store_that_is_written_to_is_one_instant_of_each_stream(
    filled: Nats, tmp_path: Path
) -> None:
    documents = await KeyValue.open(filled, "DOCUMENTS")
    begun = asyncio.Event()

    async def write() -> None:
        number = DOCUMENTS
        while True:
            await documents.put(f"local.{number}", b"meanwhile")
            number += 1
            begun.set()

    writer = asyncio.create_task(write())
    await begun.wait()
    try:
        await back_up(filled, tmp_path / "backup.tar", now, quietly)
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    after = await contents(filled)
    async with nats_server() as other, store_of(other) as nats:
        with open_verified(tmp_path / "backup.tar") as verified:
            await restore_into(nats, verified, replace=False, on_stream=quietly)
        copied = await contents(nats)
    assert len(copied) >= DOCUMENTS
    numbers = sorted(int(key.removeprefix("local.")) for key in copied)
    assert numbers == [number for number in range(numbers[-1] + 1) if number != 7], "a beginning, without holes"
    assert all(after[key] == value for key, value in copied.items())


@pytest.mark.parametrize("at", ["stream", "manifest", "end"])
async def test_a_damaged_backup_is_refused_before_anything_is_written(filled: Nats, tmp_path: Path, at: str) -> None:
    file = tmp_path / "backup.tar"
    await back_up(filled, file, now, quietly)
    data = bytearray(file.read_bytes())
    if at == "end":
        data = data[: len(data) // 2]
    else:
        data[data.index(b"S2sTwO") + 1000 if at == "stream" else data.index(b'"format"') + 2] ^= 1
    file.write_bytes(data)
    with (
        open_data_dir(tmp_path / "data") as data_dir,
        pytest.raises(BackupUnusable, match=r"damaged|cut off|checksum"),
    ):
        await restored(data_dir, file)
    assert not list((tmp_path / "data" / "nats").iterdir())


async def test_data_that_is_there_is_not_overwritten_unless_asked_and_then_kept_aside(
    filled: Nats, tmp_path: Path
) -> None:
    await back_up(filled, tmp_path / "backup.tar", now, quietly)
    with open_data_dir(tmp_path / "data") as data_dir:
        await restored(data_dir, tmp_path / "backup.tar")
        async with open_private(data_dir.nats_store) as nats:
            await (await KeyValue.open(nats, "DOCUMENTS")).put("local.new", b"since")
            since = await contents(nats)
        with pytest.raises(RestoreRefused, match=r"holds data already.*--replace"):
            await restored(data_dir, tmp_path / "backup.tar")
        data_dir.ledger_file.touch()
        _, aside = await restored(data_dir, tmp_path / "backup.tar", replace=True)
        assert aside == data_dir.path / "nats.replaced-20261122T120000"
        assert not data_dir.ledger_file.exists(), "it knows another store"
        async with open_private(data_dir.nats_store) as nats:
            assert "local.new" not in await contents(nats)
        async with open_private(aside) as nats:
            assert await contents(nats) == since


async def test_a_backup_may_hold_the_indexes_and_a_restore_puts_them_in_place(filled: Nats, tmp_path: Path) -> None:
    indexes = tmp_path / "old" / "retriever"
    (indexes / "edge" / "segment").mkdir(parents=True)
    written = {"edge/segment/vectors": os.urandom(PART_BYTES + 1000), "tantivy.lock": b"", "meta.json": b"{}"}
    for name, data in written.items():
        (indexes / name).write_bytes(data)
    manifest = await back_up(filled, tmp_path / "backup.tar", now, quietly, indexes=indexes)
    with open_data_dir(tmp_path / "data") as data_dir:
        present = data_dir.path / "retriever"
        present.mkdir()
        (present / "mine").write_text("x")
        assert (await restored(data_dir, tmp_path / "backup.tar"))[0] == manifest
        files = {str(each.relative_to(present)): each.read_bytes() for each in present.rglob("*") if each.is_file()}
        assert files == written
        aside = data_dir.path / "retriever.replaced-20261122T120000"
        assert (aside / "mine").read_text() == "x", "what was there is moved aside"


async def test_a_running_store_that_holds_data_is_refused_and_replaced_when_asked(filled: Nats, tmp_path: Path) -> None:
    before = await contents(filled)
    await back_up(filled, tmp_path / "backup.tar", now, quietly)
    await (await KeyValue.open(filled, "DOCUMENTS")).put("local.new", b"since")
    with open_verified(tmp_path / "backup.tar") as verified:
        with pytest.raises(RestoreRefused, match="KV_DOCUMENTS, OBJ_FILES"):
            await restore_into(filled, verified, replace=False, on_stream=quietly)
        assert "local.new" in await contents(filled)
        await restore_into(filled, verified, replace=True, on_stream=quietly)
    assert await contents(filled) == before


async def test_a_backup_that_cannot_be_finished_leaves_no_file(
    filled: Nats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive.ArchiveWriter, "add_manifest", no_space)
    with pytest.raises(OSError, match="No space left"):
        await back_up(filled, tmp_path / "backup.tar", now, quietly)
    assert not [name for name in await asyncio.to_thread(os.listdir, tmp_path) if name.startswith("backup")]


async def test_a_backup_does_not_replace_a_file(filled: Nats, tmp_path: Path) -> None:
    (tmp_path / "backup.tar").write_text("precious")
    with pytest.raises(BackupUnusable, match="is there already"):
        await back_up(filled, tmp_path / "backup.tar", now, quietly)
    assert (tmp_path / "backup.tar").read_text() == "precious"


def test_what_needs_another_store_is_copied_before_it_and_the_rest_last() -> None:
    streams = order_streams(sorted(store.stream for store in STORES))
    place = {store.name: streams.index(store.stream) for store in STORES}
    for store in STORES:
        assert all(place[name] < place[store.name] for name in store.needed_by), store.name
    for chain in (
        ("INGEST_KEYS", "DOCUMENTS", "ACTIVE_REVISIONS"),
        ("RUN_KEYS", "RUN_RECORDS", "RUNS", "THREADS", "THREAD_MESSAGES", "DOCUMENTS", "FILES"),
        ("RUN_ACTIVE", "RUN_RECORDS"),
        ("MEMORY_KEYS", "THREADS"),
        ("DOCUMENTS", "DOCUMENT_NAMES"),
        ("DOCUMENTS", "COLLECTIONS", "COLLECTION_MODELS"),
        ("FILES", "TOOL_CALLS"),
    ):
        assert [place[name] for name in chain] == sorted(place[name] for name in chain)
    assert order_streams(["KV_ZEBRA", "RUNS", "KV_TOOL_CALLS", "INGEST"]) == [
        "RUNS",
        "INGEST",
        "KV_TOOL_CALLS",
        "KV_ZEBRA",
    ]


async def test_pointers_of_documents_that_came_while_the_backup_was_made_are_not_restored(
    filled: Nats, tmp_path: Path
) -> None:
    pointers = await KeyValue.open(filled, "ACTIVE_REVISIONS")
    await pointers.put("local.1", b'{"deleted": false}')
    await pointers.put("local.came-meanwhile", b'{"deleted": false}')
    await pointers.put("local.deleted-long-ago", b'{"deleted": true}')
    await back_up(filled, tmp_path / "backup.tar", now, quietly)
    with open_data_dir(tmp_path / "data") as data_dir:
        await restored(data_dir, tmp_path / "backup.tar")
        async with open_private(data_dir.nats_store) as nats:
            pointers = await KeyValue.open(nats, "ACTIVE_REVISIONS")
            found = [entry.key async for entry in pointers.entries(">")]
    assert found == ["local.1", "local.deleted-long-ago"]


async def test_runs_that_began_while_the_backup_was_made_are_gone_on_with(filled: Nats, tmp_path: Path) -> None:
    records, markers = await KeyValue.open(filled, "RUN_RECORDS"), await KeyValue.open(filled, "RUN_ACTIVE")
    marked = pb.RunMarker(owner="dead", begun=True).SerializeToString()
    await markers.put("local.marked", marked)
    for run in ("marked", "began-meanwhile"):
        await records.put(f"local.{run}", run_record())
    await records.put("local.waits", run_record(status=api.RUN_STATUS_WAITING))
    await records.put("local.ended", run_record(status=api.RUN_STATUS_COMPLETED, finished_at=now()))
    await records.put("local.torn", b"\xff{")
    await back_up(filled, tmp_path / "backup.tar", now, quietly)
    with open_data_dir(tmp_path / "data") as data_dir:
        await restored(data_dir, tmp_path / "backup.tar")
        async with open_private(data_dir.nats_store) as nats:
            found = {each.key: each.value async for each in (await KeyValue.open(nats, "RUN_ACTIVE")).entries(">")}
    assert found == {
        "local.marked": marked,
        "local.began-meanwhile": pb.RunMarker(begun=True).SerializeToString(),
        "local.waits": pb.RunMarker(begun=True, parked=True).SerializeToString(),
    }


async def test_keys_that_users_brought_and_leases_are_in_no_backup(filled: Nats, tmp_path: Path) -> None:
    for bucket, life_s in (
        ("MODEL_CREDENTIALS", 7200.0),  # however long they live
        ("RUN_OWNERS", 15.0),
        ("INGEST_LEASES", 30.0),
        ("MODEL_SETTINGS", None),
        ("RUN_COSTS", 86_400.0 * 90),
        ("TOOL_CALLS", 86_400.0 * 7),
        ("INGEST_KEYS", 86_400.0),
    ):
        await (await KeyValue.open(filled, bucket, ttl_s=life_s)).put("local.key", b"x")
    manifest = await back_up(filled, tmp_path / "backup.tar", now, quietly)
    names = [stream.name for stream in manifest.streams]
    assert names == [
        "KV_INGEST_KEYS",
        "KV_DOCUMENTS",
        "OBJ_FILES",
        "KV_MODEL_SETTINGS",
        "KV_RUN_COSTS",
        "KV_TOOL_CALLS",
    ]


def signer_of(keys: KeyFolder, name: str) -> TokenSigner:
    return TokenSigner(KeySource(parse_signing_key, path=keys.signing_key_file(name), setting="TEST"))


def verifier_of(keys: KeyFolder) -> TokenVerifier:
    return TokenVerifier(KeySource(parse_public_keys, path=keys.public_keys_file, setting="TEST"))


async def test_a_deletion_that_was_queued_when_the_backup_was_made_is_done_after_a_restore_under_other_keys(
    filled: Nats, tmp_path: Path
) -> None:
    keys = KeyFolder(tmp_path / "old-keys")
    keys.ensure(SIGNERS)
    request = ForgetRequest(Source.document("d1"), now())
    old_queue = await ForgetQueue.open(filled, signer_of(keys, "ingest"), verifier_of(keys))
    with use_principal(Principal("acme", "ann")):
        await old_queue.request(request)
    await back_up(filled, tmp_path / "backup.tar", now, quietly, public_keys=keys.public_keys())
    assert b'"d":' not in (tmp_path / "backup.tar").read_bytes(), "no private key"

    done: asyncio.Queue[tuple[str, ForgetRequest]] = asyncio.Queue()

    async def forget(job: Job) -> None:
        done.put_nowait((job.principal.tenant_id, decode(job)))

    with open_data_dir(tmp_path / "data") as data_dir:
        await restored(data_dir, tmp_path / "backup.tar")
        new_keys = KeyFolder(data_dir.keys)
        new_keys.ensure(SIGNERS)  # as the first start does
        async with open_private(data_dir.nats_store) as nats:
            queue = await ForgetQueue.open(nats, signer_of(new_keys, "orchestrator"), verifier_of(new_keys))
            consumer = asyncio.create_task(queue.queue.consume(forget, concurrency=1))
            async with asyncio.timeout(60):
                assert await done.get() == ("acme", request)
            consumer.cancel()
            await asyncio.gather(consumer, return_exceptions=True)


async def test_a_cluster_of_other_keys_learns_those_that_verify_the_jobs_of_the_backup(
    filled: Nats, nats: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = KeyFolder(tmp_path / "old-keys"), KeyFolder(tmp_path / "new-keys")
    for keys in (old, new):
        keys.ensure(SIGNERS)
    monkeypatch.setenv("GROUNDWORK_NATS_URL", nats.url)
    file = tmp_path / "backup.tar"
    assert await asyncio.to_thread(lambda: commands.backup(file, keys=old.path)) == 0
    assert await asyncio.to_thread(lambda: commands.restore(file, replace=True)) == 0
    assert "restore with --keys" in capsys.readouterr().out
    assert await asyncio.to_thread(lambda: commands.restore(file, replace=True, keys=new.path)) == 0
    assert "give it to every service" in capsys.readouterr().out
    known = parse_public_keys(new.public_keys_file.read_text())
    signs_jobs = {
        key["kid"]: key for key in old.public_keys() if any(call.startswith("jobs/") for call in key["calls"])
    }
    assert signs_jobs.keys() <= known.keys()
    assert all(call.startswith("jobs/") for kid in signs_jobs for call in known[kid].calls)


async def test_of_a_folder_the_newest_backups_are_kept_and_the_newest_is_restored(
    filled: Nats, nats: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUNDWORK_NATS_URL", nats.url)
    keys = KeyFolder(tmp_path / "keys")
    keys.ensure(SIGNERS)
    folder = tmp_path / "backups"
    folder.mkdir()
    for name in ("groundwork-20250101T030000Z.tar", "groundwork-20250102T030000Z.tar", "mine.tar"):
        (folder / name).write_text("older")
    (folder / "groundwork-20250103T030000Z.tar.part").write_text("cut off")
    assert await asyncio.to_thread(lambda: commands.backup(folder, keys=keys.public_keys_file, keep=2)) == 0
    assert "groundwork-20250101T030000Z.tar: removed" in capsys.readouterr().out
    oldest, newest, mine = sorted(path.name for path in folder.iterdir())
    assert (oldest, mine) == ("groundwork-20250102T030000Z.tar", "mine.tar")
    with open_verified(folder / newest) as verified:
        assert [key["kid"] for key in verified.manifest.public_keys] == [key["kid"] for key in keys.public_keys()]
    assert await asyncio.to_thread(lambda: commands.restore(folder, replace=True)) == 0
    assert f"The newest backup in {folder} is {newest}" in capsys.readouterr().out


async def test_a_wrong_folder_of_backups_or_keys_is_named(
    nats: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUNDWORK_NATS_URL", nats.url)
    assert await asyncio.to_thread(lambda: commands.backup(tmp_path / "none", keep=3)) == 2
    assert "--keep is for a folder" in capsys.readouterr().err
    assert await asyncio.to_thread(lambda: commands.backup(tmp_path / "backup.tar", keys=tmp_path)) == 2
    assert "holds no public keys" in capsys.readouterr().err
    assert await asyncio.to_thread(lambda: commands.restore(tmp_path, replace=True)) == 2
    assert "There is no backup in" in capsys.readouterr().err


@pytest.fixture
async def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataDir:
    """A stopped system's directory: half of a file of records is cut off."""
    monkeypatch.setenv("GROUNDWORK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("GROUNDWORK_NATS_URL", raising=False)
    with open_data_dir(tmp_path / "data") as data_dir:
        async with open_private(data_dir.nats_store) as nats:
            await fill(nats)
            ledger, _ = await asyncio.to_thread(Ledger.open, data_dir.ledger_file)
            await Keeper(nats, ledger).sync()
            await asyncio.to_thread(ledger.close)
        (block,) = data_dir.nats_store.glob("jetstream/*/streams/KV_DOCUMENTS/msgs/1.blk")
        block.write_bytes(block.read_bytes()[: block.stat().st_size // 2])
    return data_dir


async def test_a_damaged_store_is_not_backed_up_without_a_word(
    damaged: DataDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "backup.tar"
    assert await asyncio.to_thread(commands.backup, file) == 1
    said = capsys.readouterr().err
    assert "no backup was made" in said
    assert re.search(r"entries of DOCUMENTS .*are gone", said)
    assert "--anyway" in said
    assert not file.exists()

    assert await asyncio.to_thread(commands.backup, file, anyway=True) == 0
    assert "marked as damaged" in capsys.readouterr().out
    damaged.ledger_file.unlink()
    assert await asyncio.to_thread(commands.restore, file, replace=True) == 0
    said = capsys.readouterr().out
    assert "made of a damaged store" in said
    assert re.search(r"entries of DOCUMENTS .*are gone", said)


async def test_indexes_are_backed_up_of_a_system_that_is_stopped_and_has_some(
    damaged: DataDir, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged.ledger_file.unlink()
    assert await asyncio.to_thread(commands.backup, tmp_path / "backup.tar", indexes=True) == 2
    assert "There are no indexes" in capsys.readouterr().err
    (damaged.path / "retriever").mkdir()
    monkeypatch.setattr(commands, "running_nats_url", lambda _: "nats://x")
    assert await asyncio.to_thread(commands.backup, tmp_path / "backup.tar", indexes=True) == 2
    assert "stop Groundwork first" in capsys.readouterr().err


async def test_a_whole_store_is_backed_up_with_the_keys_that_verify_its_jobs(
    damaged: DataDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged.ledger_file.unlink()
    KeyFolder(damaged.keys).ensure(SIGNERS)
    assert await asyncio.to_thread(commands.backup, tmp_path / "backup.tar") == 0
    assert "There is no ledger" in capsys.readouterr().out, "what cannot be compared is said"
    with open_verified(tmp_path / "backup.tar") as verified:
        assert [key["kid"] for key in verified.manifest.public_keys] == [
            key["kid"] for key in KeyFolder(damaged.keys).public_keys()
        ]
