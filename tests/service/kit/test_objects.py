"""kit.jetstream.objects against a real nats-server."""

import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from nats.js.api import RawStreamMsg
from nats.js.errors import NotFoundError

from kit.errors import DataLoss
from kit.jetstream import Nats, ObjectStore
from kit.jetstream.objects import PIECE_BYTES

CONTENT = bytes(range(256)) * 2000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


async def test_file_survives_the_store_and_a_missing_one_is_named(jetstream: Nats, tmp_path: Path) -> None:
    store, target = await ObjectStore.open(jetstream, "FILES"), tmp_path / "out"
    await store.put("acme/abc", pieces(CONTENT))
    assert await store.exists("acme/abc")
    assert await store.get_to_file("acme/abc", target) == DIGEST
    assert target.read_bytes() == CONTENT
    await store.delete("acme/abc")
    assert not await store.exists("acme/abc")
    with pytest.raises(DataLoss, match="upload it again"):
        await store.get_to_file("acme/abc", target)


async def test_file_that_a_leader_without_a_majority_does_not_know_is_found(
    jetstream: Nats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await ObjectStore.open(jetstream, "FILES")
    await store.put("acme/abc", pieces(CONTENT))
    is_cut_off = True

    async def last_message(nats: Nats, stream: str, subject: str) -> RawStreamMsg:
        if is_cut_off:
            raise NotFoundError
        return await asked(nats, stream, subject)

    async def purge(nats: Nats, stream: str, subject: str) -> None:
        nonlocal is_cut_off
        await purged(nats, stream, subject)
        is_cut_off = False

    asked, purged = Nats.last_message, Nats.purge
    monkeypatch.setattr(Nats, "last_message", last_message)
    monkeypatch.setattr(Nats, "purge", purge)
    assert await store.get_to_file("acme/abc", tmp_path / "out") == DIGEST


async def test_files_are_stored_as_other_clients_store_them(jetstream: Nats, tmp_path: Path) -> None:
    store, target = await ObjectStore.open(jetstream, "FILES"), tmp_path / "out"
    theirs = await jetstream.js.object_store("FILES")
    await store.put("ours", pieces(CONTENT))
    assert (await theirs.get("ours")).data == CONTENT
    await theirs.put("theirs", CONTENT)
    assert await store.get_to_file("theirs", target) == DIGEST
    await store.put("empty", pieces(b""))
    assert await store.get_to_file("empty", target) == hashlib.sha256().hexdigest()
    assert target.read_bytes() == b""


async def test_file_that_breaks_off_leaves_nothing_behind(jetstream: Nats) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield CONTENT[:1000]
        raise RuntimeError("the disk is gone")

    store = await ObjectStore.open(jetstream, "FILES")
    with pytest.raises(RuntimeError):
        await store.put("broken", broken())
    assert not await store.exists("broken")
    assert (await jetstream.js.stream_info("OBJ_FILES")).state.messages == 0


async def test_stored_file_that_lost_a_piece_is_called_damaged_or_missing(jetstream: Nats, tmp_path: Path) -> None:
    store = await ObjectStore.open(jetstream, "FILES")
    await store.put("acme/abc", pieces(CONTENT))
    assert await jetstream.js.delete_msg("OBJ_FILES", 2)
    with pytest.raises(DataLoss, match="upload it again"):
        await store.get_to_file("acme/abc", tmp_path / "out")


async def messages(jetstream: Nats, bucket: str) -> int:
    return (await jetstream.js.stream_info(f"OBJ_{bucket}")).state.messages


async def test_deleted_file_leaves_nothing_behind(jetstream: Nats) -> None:
    store = await ObjectStore.open(jetstream, "FILES")
    await store.put("acme/abc", pieces(CONTENT))
    assert [entry.name async for entry in store.entries()] == ["acme/abc"]
    await store.delete("acme/abc")
    await store.delete("acme/abc")
    assert [entry.name async for entry in store.entries()] == []
    assert await messages(jetstream, "FILES") == 0


class Killed(BaseException):
    """Stands for the end of the process."""


async def test_pieces_of_a_file_that_was_cut_off_are_collected_and_all_others_stay(
    jetstream: Nats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, now = await ObjectStore.open(jetstream, "FILES"), datetime.now(UTC)
    before, after = now - timedelta(hours=1), now + timedelta(hours=1)

    async def broken() -> AsyncIterator[bytes]:
        yield CONTENT[:1000]
        yield CONTENT[1000:2000]
        monkeypatch.setattr(jetstream.js, "purge_stream", killed)  # nobody cleans up after a kill
        raise Killed

    async def killed(*_: object, **__: object) -> bool:
        raise Killed

    with pytest.raises(Killed):
        await store.put("broken", broken())
    monkeypatch.undo()
    await store.put("whole", pieces(CONTENT))
    await store.put("empty", pieces(b""))
    held = await messages(jetstream, "FILES")
    assert await store.collect_remains(before) == 0
    assert await messages(jetstream, "FILES") == held
    assert await store.collect_remains(after) == 0, "it may still be on its way, whatever the clock says"
    assert await messages(jetstream, "FILES") == held
    assert await store.collect_remains(after) == 1
    assert await messages(jetstream, "FILES") == held - 2
    assert await store.get_to_file("whole", tmp_path / "out") == DIGEST
    assert await store.exists("empty")


async def test_tombstones_and_pieces_that_other_clients_left_are_collected(jetstream: Nats, tmp_path: Path) -> None:
    store, now = await ObjectStore.open(jetstream, "FILES"), datetime.now(UTC)
    theirs = await jetstream.js.object_store("FILES")
    for name in ("gone", "kept", "replaced"):
        await theirs.put(name, CONTENT)
    await theirs.delete("gone")
    await theirs.delete("replaced")
    await store.put("replaced", pieces(CONTENT))
    assert await store.collect_remains(now - timedelta(hours=1)) == 0
    assert await collected(store) == 1
    assert sorted([entry.name async for entry in store.entries()]) == ["kept", "replaced"]
    for name in ("kept", "replaced"):
        assert await store.get_to_file(name, tmp_path / "out") == DIGEST
    assert await collected(store) == 0


async def test_file_whose_entry_is_damaged_can_be_stored_again_and_its_pieces_are_not_collected(
    jetstream: Nats, tmp_path: Path
) -> None:
    store, target = await ObjectStore.open(jetstream, "FILES"), tmp_path / "out"
    await store.put("acme/abc", pieces(CONTENT))
    (subject,) = (await jetstream.js.stream_info("OBJ_FILES", subjects_filter="$O.FILES.M.*")).state.subjects or {}
    await jetstream.js.publish(subject, b"torn", headers={"Nats-Rollup": "sub"})
    with pytest.raises(DataLoss):
        await store.collect_remains(datetime.now(UTC) + timedelta(hours=1))
    with pytest.raises(DataLoss, match="upload"):
        await store.get_to_file("acme/abc", target)
    assert not await store.exists("acme/abc")
    await store.put("acme/abc", pieces(CONTENT))
    assert await store.get_to_file("acme/abc", target) == DIGEST
    assert await collected(store) == 1


async def test_pieces_of_a_file_that_is_still_coming_are_kept_when_the_clock_jumps(
    jetstream: Nats, tmp_path: Path
) -> None:
    store = await ObjectStore.open(jetstream, "FILES")

    async def coming() -> AsyncIterator[bytes]:
        for start in range(0, len(CONTENT), len(CONTENT) // 4 + 1):
            assert await store.collect_remains(datetime.now(UTC) + timedelta(hours=1)) == 0
            yield CONTENT[start : start + len(CONTENT) // 4 + 1]

    await store.put("file", coming())
    assert await store.get_to_file("file", tmp_path / "out") == DIGEST
    assert await collected(store) == 0


async def collected(store: ObjectStore) -> int:
    """What two rounds in the future remove."""
    rounds = [await store.collect_remains(datetime.now(UTC) + timedelta(hours=1)) for _ in range(2)]
    return sum(rounds)


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), PIECE_BYTES):
        yield content[start : start + PIECE_BYTES]
