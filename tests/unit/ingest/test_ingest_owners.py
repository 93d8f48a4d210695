"""Collections belong to who made them, and everything in them with them. Ann's are private unless she shares them; Bob is another
subject of her tenant; the administrator sees all."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kit.access.principal import Principal
from kit.errors import GroundworkError
from kit.stores.collections import Member, MemberKind, Role, Visibility, own_id
from services.ingest.documents.listing import Page
from services.ingest.documents.models import Collection, Document, Status
from services.ingest.errors import (
    CollectionExists,
    CollectionNotFound,
    CollectionProtected,
    DocumentNotFound,
    NotYours,
)
from tests.unit.ingest.world import ADMINISTRATOR, ANN, BOB, TENANT, World

STRANGER = Principal("rival", "ann")
BOBS_DEFAULT = own_id("default", BOB, ANN)
NEVER = "0" * 32


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
async def document(world: World) -> Document:
    """Ann's, in her private collection."""
    await world.catalog.create(ANN, "papers", "Papers")
    return await world.upload("hello", "hello.txt", collection_id="papers")


async def share(world: World, visibility: Visibility = Visibility.TENANT) -> None:
    await world.catalog.update(ANN, "papers", visibility=visibility)


async def refusal(call: Awaitable[object]) -> tuple[str, str]:
    with pytest.raises(GroundworkError) as told:
        await call
    return told.value.reason, told.value.message


Reading = Callable[[World, Principal, str], Awaitable[object]]


async def _download(world: World, caller: Principal, document_id: str) -> None:
    async with world.listing.download(caller, document_id):
        pass


def _delete(world: World, caller: Principal, document_id: str) -> Awaitable[object]:
    return world.deletion.delete(caller.tenant_id, document_id, partial(world.access.check_edit, caller))


def _reindex(world: World, caller: Principal, document_id: str) -> Awaitable[object]:
    return world.reviser.reindex(caller.tenant_id, document_id, partial(world.access.check_edit, caller))


BY_DOCUMENT: dict[str, Reading] = {
    "get": lambda world, caller, it: world.listing.get(caller, it),
    "download": _download,
    "delete": _delete,
    "reindex": _reindex,
}
BY_COLLECTION: dict[str, Reading] = {
    "get": lambda world, caller, it: world.catalog.get(caller, it),
    "update": lambda world, caller, it: world.catalog.update(caller, it, "Mine"),
    "delete": lambda world, caller, it: world.catalog.delete(caller, it),
    "list its documents": lambda world, caller, it: world.listing.page(caller, Page(it)),
    "upload": lambda world, caller, it: world.upload("hello", caller=caller, collection_id=it),
}


@pytest.mark.parametrize("caller", [BOB, STRANGER], ids=["another subject", "another tenant"])
@pytest.mark.parametrize("ask", BY_DOCUMENT.values(), ids=BY_DOCUMENT)
async def test_private_document_is_refused_in_the_words_for_one_that_never_was(
    world: World, document: Document, ask: Reading, caller: Principal
) -> None:
    reason, message = await refusal(ask(world, caller, document.document_id))
    assert reason == "DOCUMENT_NOT_FOUND"
    assert (reason, message.replace(document.document_id, NEVER)) == await refusal(ask(world, caller, NEVER))
    assert (await world.record(document)) == document


@pytest.mark.parametrize("caller", [BOB, STRANGER], ids=["another subject", "another tenant"])
@pytest.mark.parametrize("ask", BY_COLLECTION.values(), ids=BY_COLLECTION)
async def test_private_collection_is_refused_in_the_words_for_one_that_never_was(
    world: World, document: Document, ask: Reading, caller: Principal
) -> None:
    reason, message = await refusal(ask(world, caller, "papers"))
    assert reason == "COLLECTION_NOT_FOUND"
    assert (reason, message.replace("papers", "never")) == await refusal(ask(world, caller, "never"))


async def test_collection_that_is_being_deleted_is_unknown_to_who_never_saw_it(
    world: World, document: Document
) -> None:
    stored = world.collections.collections[TENANT, "papers"]
    await world.collections.put(replace(stored, deleting=True))
    assert "being deleted" in (await refusal(world.catalog.get(ANN, "papers")))[1]
    reason, message = await refusal(world.catalog.get(BOB, "papers"))
    assert (reason, message.replace("papers", "never")) == await refusal(world.catalog.get(BOB, "never"))


async def test_shared_collection_is_read_by_all_and_changed_by_its_owner(world: World, document: Document) -> None:
    await share(world)
    assert await world.listing.get(BOB, document.document_id) == document
    assert (await world.listing.page(BOB, Page("papers")))[0] == [document]
    assert "papers" in [each.collection_id for each in await world.catalog.all_of(BOB)]
    for ask, it in [*((each, "papers") for each in list(BY_COLLECTION.values())[1:3])]:
        assert (await refusal(ask(world, BOB, it)))[0] == "NOT_YOURS"
    for ask in (_delete, _reindex):
        assert (await refusal(ask(world, BOB, document.document_id)))[0] == "NOT_YOURS"
    with pytest.raises(NotYours):
        await world.upload("mine", caller=BOB, collection_id="papers")
    with pytest.raises(CollectionNotFound):
        await world.catalog.get(STRANGER, "papers")
    await share(world, Visibility.PRIVATE)
    with pytest.raises(DocumentNotFound):
        await world.listing.get(BOB, document.document_id)


async def test_administrator_sees_and_changes_all_of_the_tenant(world: World, document: Document) -> None:
    assert await world.listing.get(ADMINISTRATOR, document.document_id) == document
    changed = await world.catalog.update(ADMINISTRATOR, "papers", "Renamed")
    assert (changed.name, changed.owner) == ("Renamed", "ann")
    assert [each.collection_id for each in await world.catalog.all_of(ADMINISTRATOR)][-1] == "papers"
    await _delete(world, ADMINISTRATOR, document.document_id)


async def test_collection_from_before_owners_is_everybodys(world: World) -> None:
    await world.collections.put(Collection(TENANT, "old", "Old", None))
    document = await world.upload("hello", caller=BOB, collection_id="old")
    assert await world.listing.get(ANN, document.document_id) == document
    await _delete(world, ANN, document.document_id)
    renamed = await world.catalog.update(BOB, "old", "Ours")
    assert renamed.owner == ""
    with pytest.raises(CollectionNotFound):
        await world.catalog.get(STRANGER, "old")


async def test_a_collection_says_how_memory_is_used_in_chats_over_it(world: World) -> None:
    await world.catalog.create(ANN, "papers", "Papers")
    assert (await world.catalog.update(ANN, "papers", memory="off")).memory == "off"
    assert (await world.catalog.update(ANN, "papers", "Reports")).memory == "off"
    assert (await world.catalog.update(ANN, "papers", memory="")).memory == ""
    assert (await refusal(world.catalog.update(ANN, "papers", memory="sometimes")))[0] == "BAD_MEMORY_MODE"


async def test_who_says_who_may_read_a_collection_from_before_owners_becomes_its_owner(world: World) -> None:
    await world.collections.put(Collection(TENANT, "old", "Old", None))
    await world.catalog.update(ANN, "old", visibility=Visibility.PRIVATE)
    with pytest.raises(CollectionNotFound):
        await world.catalog.get(BOB, "old")


async def test_everybody_has_a_default_collection_of_their_own(world: World) -> None:
    anns = await world.upload("hello")
    bobs = await world.upload("hello", caller=BOB, collection_id=BOBS_DEFAULT)
    assert anns.document_id != bobs.document_id
    assert [each.collection_id for each in await world.catalog.all_of(ANN)] == ["default"]
    assert [each.collection_id for each in await world.catalog.all_of(BOB)] == [BOBS_DEFAULT]
    assert (await world.catalog.get(BOB, BOBS_DEFAULT)).owner == "bob"
    for caller, foreign in ((BOB, "default"), (ANN, BOBS_DEFAULT)):
        with pytest.raises(CollectionNotFound):
            await world.catalog.get(caller, foreign)
    for caller, own in ((ANN, "default"), (BOB, BOBS_DEFAULT)):
        with pytest.raises(CollectionProtected):
            await world.catalog.delete(caller, own)
        with pytest.raises(CollectionProtected):
            await world.catalog.update(caller, own, visibility=Visibility.TENANT)


async def test_default_of_an_earlier_version_becomes_its_users_when_they_come_back(world: World) -> None:
    """Until then nobody can tell whose it is."""
    old = await world.upload("hello")
    world.collections.collections.clear()
    assert await world.listing.get(BOB, old.document_id) == old
    assert (await world.catalog.get(ANN, "default")).owner == "ann"
    with pytest.raises(DocumentNotFound):
        await world.listing.get(BOB, old.document_id)
    assert await world.listing.get(ANN, old.document_id) == old


@pytest.mark.parametrize("collection_id", ["default", "notes", own_id("default", ANN, BOB), own_id("notes", ANN, BOB)])
async def test_nobody_takes_the_ids_that_are_kept_for_others(world: World, collection_id: str) -> None:
    with pytest.raises(CollectionExists, match=f"the id {collection_id} is kept for"):
        await world.catalog.create(BOB, collection_id, "Mine")


async def test_taken_id_is_refused_alike_whether_the_caller_can_see_by_whom(world: World, document: Document) -> None:
    hidden = await refusal(world.catalog.create(BOB, "papers", "Papers"))
    await share(world)
    assert hidden == await refusal(world.catalog.create(BOB, "papers", "Papers"))


async def test_name_of_somebody_elses_collection_makes_a_free_id(world: World, document: Document) -> None:
    made = await world.catalog.create(BOB, "", "Papers", free_mark="c0ffee")
    assert (made.collection_id, made.name, made.owner) == ("papers-c0ffee", "Papers", "bob")
    again = await world.catalog.create(BOB, "", "Papers", free_mark="c0ffee", again=True)
    assert again == made
    with pytest.raises(CollectionExists):
        await world.catalog.create(ANN, "", "Papers", free_mark="c0ffee")


async def test_same_file_of_two_subjects_is_two_documents_and_outlives_the_other(
    world: World, document: Document
) -> None:
    await world.catalog.create(BOB, "bobs", "Mine")
    bobs = await world.upload("hello", "hello.txt", caller=BOB, collection_id="bobs")
    assert bobs.document_id != document.document_id
    assert (bobs.status, bobs.content) == (document.status, document.content)
    await _delete(world, ANN, document.document_id)
    async with world.listing.download(BOB, bobs.document_id) as (_, path):
        assert path.read_bytes() == b"hello"


async def test_collection_made_elsewhere_a_moment_ago_is_found(world: World, document: Document) -> None:
    world.collections.unheard.add((TENANT, "papers"))
    assert (await world.catalog.get(ANN, "papers")).owner == "ann"
    assert await world.listing.get(ANN, document.document_id) == document


async def test_watch_shows_what_the_caller_may_read_and_begins_anew_when_that_changes(
    world: World, document: Document
) -> None:
    own = await world.upload("own", caller=BOB, collection_id=BOBS_DEFAULT)
    changes = world.listing.watch(BOB, "", ())
    assert await anext(changes) == own
    assert await anext(changes) is None
    await share(world)
    world.collections.rights_changed.set()
    assert await anext(changes, "ended") == "ended"
    world.collections.rights_changed.clear()
    assert [await anext(again) for again in [world.listing.watch(BOB, "", ())] for _ in range(2)] == [document, own]


async def test_watch_tells_who_saw_a_document_that_it_is_gone_when_its_collection_is(
    world: World, document: Document
) -> None:
    await share(world)
    changes = world.listing.watch(BOB, "", ())
    assert await anext(changes) == document
    assert await anext(changes) is None
    await world.collections.delete(TENANT, "papers")
    await world.deletion.delete(TENANT, document.document_id)
    gone = await anext(changes)
    assert gone is not None
    assert gone.status is Status.DELETED
    await changes.aclose()


async def test_counts_are_of_what_the_caller_may_read(world: World, document: Document) -> None:
    await world.upload("own", caller=BOB, collection_id=BOBS_DEFAULT)
    for caller, queued in ((ANN, 1), (BOB, 1), (ADMINISTRATOR, 2), (STRANGER, 0)):
        assert (await world.dead_letters.counts(caller, "")).queued == queued
    assert (await world.dead_letters.counts(BOB, "papers")) == await world.dead_letters.counts(BOB, "never")


VIEWER, EDITOR, OWNER = (Member(MemberKind.GROUP, "staff", role) for role in Role)
IN_STAFF = replace(BOB, groups=frozenset({"staff"}))
MANAGING: dict[str, Reading] = {
    "rename": lambda world, caller, it: world.catalog.update(caller, it, "Ours"),
    "list members": lambda world, caller, it: world.catalog.members(caller, it),
    "give a role": lambda world, caller, it: world.catalog.set_member(caller, it, Member("subject", "eve", "owner")),
    "take a role": lambda world, caller, it: world.catalog.remove_member(caller, it, "group", "staff"),
    "delete": lambda world, caller, it: world.catalog.delete(caller, it),
}


@pytest.mark.parametrize("member", [VIEWER, EDITOR, OWNER], ids=lambda member: member.role)
async def test_member_may_what_the_role_says(world: World, document: Document, member: Member) -> None:
    await world.catalog.set_member(ANN, "papers", member)
    assert await world.listing.get(IN_STAFF, document.document_id) == document
    assert (await refusal(world.listing.get(BOB, document.document_id)))[0] == "DOCUMENT_NOT_FOUND"
    upload = partial(world.upload, "more", "more.txt", caller=IN_STAFF, collection_id="papers")
    if member is VIEWER:
        assert (await refusal(upload()))[0] == "NOT_YOURS"
        assert (await refusal(_delete(world, IN_STAFF, document.document_id)))[0] == "NOT_YOURS"
    else:
        await upload()
        await _delete(world, IN_STAFF, document.document_id)
    for ask in MANAGING.values():
        if member is OWNER:
            await ask(world, IN_STAFF, "papers")
            await world.catalog.set_member(ANN, "papers", member) if ask is MANAGING["take a role"] else None
        else:
            assert (await refusal(ask(world, IN_STAFF, "papers")))[0] == "NOT_YOURS"


async def test_role_that_is_taken_is_gone_at_once(world: World, document: Document) -> None:
    await world.catalog.set_member(ANN, "papers", EDITOR)
    assert list(await world.catalog.set_member(ANN, "papers", VIEWER)) == [VIEWER]
    assert list(await world.catalog.remove_member(ANN, "papers", "group", "staff")) == []
    assert list(await world.catalog.remove_member(ANN, "papers", "group", "staff")) == []
    reason, message = await refusal(world.catalog.get(IN_STAFF, "papers"))
    assert (reason, message.replace("papers", "never")) == await refusal(world.catalog.get(IN_STAFF, "never"))


@pytest.mark.parametrize(
    ("member", "collection_id", "reason"),
    [
        (Member("subject", "ann", "viewer"), "papers", "BAD_MEMBER"),
        (Member("subject", "two words", "viewer"), "papers", "BAD_MEMBER"),
        (Member("group", "two\nlines", "viewer"), "papers", "BAD_MEMBER"),
        (Member("group", "staff", "steward"), "papers", "BAD_MEMBER"),
        (Member("", "staff", "viewer"), "papers", "BAD_MEMBER"),
        (VIEWER, own_id("default", ANN, ANN), "COLLECTION_PROTECTED"),
    ],
)
async def test_member_that_cannot_be_one_is_refused(
    world: World, document: Document, member: Member, collection_id: str, reason: str
) -> None:
    assert (await refusal(world.catalog.set_member(ANN, collection_id, member)))[0] == reason


async def test_collection_has_a_bounded_number_of_members(world: World, document: Document) -> None:
    for number in range(200):
        await world.catalog.set_member(ANN, "papers", Member("subject", f"user{number}", "viewer"))
    assert (await refusal(world.catalog.set_member(ANN, "papers", EDITOR)))[0] == "BAD_MEMBER"
    assert len(await world.catalog.members(ANN, "papers")) == 200
