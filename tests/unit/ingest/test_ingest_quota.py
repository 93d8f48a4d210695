"""How much a tenant, a group, a user or an API key may store."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kit.access.principal import Principal
from kit.limits.rules import EACH, Limit, Per, Scope, What, Whose
from kit.stores.collections import Member, MemberKind, Role
from services.ingest.documents.file_users import FileUsers
from services.ingest.documents.life import TOMBSTONE_LIFE
from services.ingest.documents.models import Origin
from services.ingest.documents.uploads.storage_limits import shown
from services.ingest.documents.uploads.upload import Upload
from services.ingest.errors import StorageQuotaExceeded
from services.ingest.sources.known import KnownFiles
from tests.unit.ingest.world import ANN, BOB, TENANT, World

MIB = 1024 * 1024


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, quota_bytes=2 * MIB)


def _file(letter: str, mib: float = 0.9) -> str:
    return letter * int(mib * MIB)


async def test_upload_beyond_the_quota_is_refused_before_its_bytes_are_taken(world: World) -> None:
    for letter in "ab":
        await world.upload(_file(letter), name=f"{letter}.txt")
    taken: list[bytes] = []

    async def pieces() -> AsyncIterator[bytes]:
        taken.append(b"c")
        yield b"c"

    with pytest.raises(StorageQuotaExceeded, match=r"your tenant may store 2\.0 MiB, and 1\.8 MiB are used"):
        await world.uploads.upload(ANN, Upload("default", "c.txt", int(0.9 * MIB), "", {}), pieces())
    assert taken == []


async def test_size_that_was_not_announced_is_checked_before_the_file_is_stored(world: World) -> None:
    for letter in "ab":
        await world.upload(_file(letter), name=f"{letter}.txt")
    with pytest.raises(StorageQuotaExceeded):
        await world.upload(_file("c"), name="c.txt")
    assert len(world.files.files) == 2


async def test_file_counts_once_and_no_longer_when_it_is_deleted(world: World) -> None:
    first = await world.upload(_file("a"), name="a.txt")
    await world.upload(_file("a"), name="same.txt")
    second = await world.upload(_file("b"), name="b.txt")
    await world.deletion.delete(TENANT, second.document_id)
    await world.upload(_file("c"), name="c.txt")
    await world.deletion.delete(TENANT, first.document_id)
    with pytest.raises(StorageQuotaExceeded):
        await world.upload(_file("d"), name="d.txt")  # same.txt still needs the file of a.txt


async def test_uploads_on_their_way_count(world: World) -> None:
    await world.upload(_file("0"), name="0.txt")
    gate, begun = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        begun.set()
        await gate.wait()
        yield _file("a", 1).encode()

    upload = Upload("default", "a.txt", MIB, "", {})
    first = asyncio.create_task(world.uploads.upload(ANN, upload, slow()))
    await begun.wait()
    with pytest.raises(StorageQuotaExceeded):
        await world.upload(_file("b", 0.5), name="b.txt", size_bytes=MIB // 2)
    gate.set()
    await first
    await world.upload(_file("b", 0.05), name="b.txt", size_bytes=int(0.05 * MIB))


async def test_tenant_without_a_quota_is_not_bound(tmp_path: Path) -> None:
    world = World(tmp_path)
    for letter in "abc":
        await world.upload(_file(letter), name=f"{letter}.txt")


GROUP, KEY = Whose(Scope.GROUP, TENANT, "/staff"), Whose(Scope.KEY, TENANT, EACH)
ALL, EACH_SUBJECT, EACH_TENANT = Whose(Scope.ALL), Whose(Scope.SUBJECT, TENANT, EACH), Whose(Scope.TENANT, EACH)
STAFF = Principal(TENANT, "ann", groups=frozenset({"/staff"}), key_id="k" * 24)


def _limit(world: World, whose: Whose, *, mib: float = 0, documents: int = 0) -> None:
    storage = [Limit(What.STORAGE, mib * MIB, Per.EVER)] if mib else []
    world.limit_rules.set(
        whose, [*storage, *([Limit(What.STORED_DOCUMENTS, documents, Per.EVER)] if documents else [])]
    )


@pytest.mark.parametrize(
    ("whose", "label"),
    [(ALL, "all"), (EACH_TENANT, "tenant"), (GROUP, "group:/staff"), (EACH_SUBJECT, "subject"), (KEY, "key")],
)
async def test_upload_says_whose_limit_of_storage_it_exceeds(tmp_path: Path, whose: Whose, label: str) -> None:
    world = World(tmp_path)
    _limit(world, whose, mib=1)
    first = await world.upload(_file("a"), name="a.txt", caller=STAFF)
    with pytest.raises(StorageQuotaExceeded) as refused:
        await world.upload(_file("b"), name="b.txt", caller=STAFF)
    said = refused.value.metadata
    assert (said["limit"], said["whose"], said["amount"], said["per"]) == ("storage", label, str(MIB), "ever")
    assert ("used" in said) == (label != "all")
    assert len(world.files.files) == 1
    await world.deletion.delete(TENANT, first.document_id)
    await world.upload(_file("b"), name="b.txt", caller=STAFF)


async def test_users_have_room_of_their_own_under_a_limit_for_each(tmp_path: Path) -> None:
    world = World(tmp_path)
    _limit(world, EACH_SUBJECT, mib=1)
    await world.upload(_file("a"), name="a.txt")
    states = await world.storage.states(BOB)
    assert [(each.applied.whose.member, each.used) for each in states] == [("bob", 0)]


async def test_tightest_limit_holds_and_changes_at_once(tmp_path: Path) -> None:
    world = World(tmp_path, quota_bytes=2 * MIB)
    _limit(world, EACH_SUBJECT, mib=1)
    await world.upload(_file("a"), name="a.txt")
    with pytest.raises(StorageQuotaExceeded, match=r"you may store 1\.0 MiB"):
        await world.upload(_file("b"), name="b.txt")
    _limit(world, EACH_SUBJECT)
    await world.upload(_file("b"), name="b.txt")
    with pytest.raises(StorageQuotaExceeded, match=r"your tenant may store 2\.0 MiB"):
        await world.upload(_file("c"), name="c.txt")


async def test_rule_about_storage_takes_the_place_of_the_setting_and_one_about_something_else_does_not(
    world: World,
) -> None:
    tenant = Whose(Scope.TENANT, TENANT)
    world.limit_rules.set(tenant, [Limit(What.TOKENS, 5, Per.DAY)])
    assert [each.applied.limit.amount for each in await world.storage.states(ANN)] == [2 * MIB]
    _limit(world, tenant, mib=3)
    assert [each.applied.limit.amount for each in await world.storage.states(ANN)] == [3 * MIB]


async def test_one_document_too_many_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    _limit(world, EACH_SUBJECT, documents=2)
    first = await world.upload("a", name="a.txt")
    await world.upload("b", name="b.txt")
    with pytest.raises(StorageQuotaExceeded, match="one document too many: you may store 2 documents") as refused:
        await world.upload("c", name="c.txt")
    assert refused.value.metadata["limit"] == "stored_documents"
    assert len(world.files.files) == 2
    await world.upload("another b", name="b.txt")  # a new version is no further document
    await world.deletion.delete(TENANT, first.document_id)
    await world.upload("c", name="c.txt")
    assert [each.used for each in await world.storage.states(ANN)] == [2]


async def test_new_version_of_somebody_elses_document_is_one_more_of_the_user_s_own(tmp_path: Path) -> None:
    world = World(tmp_path)
    _limit(world, EACH_SUBJECT, documents=1)
    await world.catalog.create(ANN, "shared", "Shared")
    await world.catalog.set_member(ANN, "shared", Member(MemberKind.SUBJECT, "bob", Role.EDITOR))
    await world.upload("of ann", name="a.txt", collection_id="shared")
    of_bob = await world.upload("of bob", name="b.txt", collection_id="shared", caller=BOB)
    with pytest.raises(StorageQuotaExceeded, match="one document too many"):
        await world.upload("by bob", name="a.txt", collection_id="shared", caller=BOB)
    assert len(world.files.files) == 2
    await world.upload("by bob", name="b.txt", collection_id="shared", caller=BOB)
    await world.deletion.delete(TENANT, of_bob.document_id)
    await world.upload("by bob", name="a.txt", collection_id="shared", caller=BOB)
    assert [each.used for caller in (ANN, BOB) for each in await world.storage.states(caller)] == [0, 1]


async def test_document_of_an_earlier_version_counts_for_the_subject_of_its_revision(tmp_path: Path) -> None:
    world = World(tmp_path)
    uploaded = await world.ingest(await world.upload(_file("a"), name="a.txt"))
    stored = await world.store.get(TENANT, uploaded.document_id)
    assert stored is not None
    await world.store.update(replace(stored.document, counted_for=()), stored.version)
    _limit(world, EACH_SUBJECT, mib=2)
    assert [each.used for each in await world.storage.states(ANN)] == [len(_file("a"))]
    for reader in ("bob", ""):
        await world.ingest(await world.reviser.reindex(TENANT, uploaded.document_id, by=reader))
    assert [each.used for each in await world.storage.states(ANN)] == [len(_file("a"))]
    assert [each.used for each in await world.storage.states(BOB)] == [0]


async def test_full_user_may_upload_what_is_theirs_already(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.upload(_file("a"), name="a.txt")
    _limit(world, EACH_SUBJECT, mib=0.5)
    sha256 = hashlib.sha256(_file("a").encode()).hexdigest()
    await world.upload(_file("a"), name="same.txt", sha256=sha256, size_bytes=len(_file("a")))


async def test_document_whose_tombstone_nobody_read_while_it_was_there_counts_no_longer(tmp_path: Path) -> None:
    world = World(tmp_path)
    _limit(world, EACH_SUBJECT, mib=1, documents=1)
    document = await world.upload(_file("a"), name="a.txt")
    assert [each.used for each in await world.storage.states(ANN)] == [len(_file("a")), 1]
    await world.deletion.delete(TENANT, document.document_id)
    world.clock.now += TOMBSTONE_LIFE + timedelta(minutes=1)
    await world.store.purge(TENANT, document.document_id)
    assert [each.used for each in await world.storage.states(ANN)] == [0, 0]
    await world.upload(_file("b"), name="b.txt")


async def test_file_and_document_whose_tombstone_nobody_read_while_it_was_there_are_in_no_use(tmp_path: Path) -> None:
    world, origin = World(tmp_path), Origin("s1", "a.txt", "1")
    users, known = FileUsers(world.store, world.clock), KnownFiles(world.store, world.clock)
    document = await world.upload(_file("a"), name="a.txt", origin=origin)
    sha256 = document.content.sha256
    assert await users.used(TENANT, {sha256}) == {sha256}
    assert list(await known.of((TENANT, "s1"))) == ["a.txt"]
    await world.deletion.delete(TENANT, document.document_id)
    world.clock.now += TOMBSTONE_LIFE + timedelta(minutes=1)
    await world.store.purge(TENANT, document.document_id)
    assert await users.used(TENANT, {sha256}) == set()
    assert await known.of((TENANT, "s1")) == {}


async def test_nothing_is_remembered_of_users_who_store_nothing_any_more(tmp_path: Path) -> None:
    world = World(tmp_path)
    _limit(world, ALL, mib=100)
    for name in ("guest-1", "guest-2"):
        document = await world.upload(_file("a"), name=f"{name}.txt", caller=Principal(TENANT, name))
        await world.deletion.delete(TENANT, document.document_id)
    await world.upload("kept", name="kept.txt")
    await world.storage.states(ANN)
    holders = {Whose(Scope.ALL), Whose(Scope.TENANT, TENANT), Whose(Scope.SUBJECT, TENANT, "ann")}
    assert {whose for whose, _ in world.storage._used} == holders
    assert [each.used for each in await world.storage.states(ANN)] == [len("kept")]


@pytest.mark.parametrize("is_limited", [False, True])
async def test_what_is_stored_is_read_before_anybody_asks_only_where_it_is_limited(
    tmp_path: Path, is_limited: bool
) -> None:
    world = World(tmp_path)
    await world.upload("a", name="a.txt")
    if is_limited:
        _limit(world, EACH_SUBJECT, documents=5)
    keeping = asyncio.create_task(world.storage.keep_up())
    await asyncio.sleep(0.05)
    keeping.cancel()
    assert bool(world.storage._used) == is_limited


def test_sizes_are_said_in_the_unit_that_shows_them() -> None:
    sizes = (0, 3_000, 200_000, 1.8 * MIB, 9.8 * 1024 * MIB)
    assert [shown(size) for size in sizes] == ["0 bytes", "3,000 bytes", "0.2 MiB", "1.8 MiB", "9.8 GiB"]
