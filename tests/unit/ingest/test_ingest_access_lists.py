"""Access lists of documents: whoever may read the collection and is not in a document's list does not know of the document."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kit.access.principal import Principal
from kit.errors import GroundworkError
from kit.stores.collections import Member, MemberKind, Role, Visibility
from kit.stores.document_access import DocumentAccess
from services.ingest.documents.access import access_etag, access_list, members_etag
from services.ingest.documents.listing import Page
from services.ingest.documents.models import Content, Document, Status
from services.ingest.errors import AccessChanged
from tests.unit.ingest.world import ADMINISTRATOR, ANN, BOB, TENANT, World

IN_LEGAL = replace(BOB, subject="carol", groups=frozenset({"legal"}))
LEGAL = DocumentAccess("papers", groups=frozenset({"legal"}))
NEVER = "0" * 32


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
async def document(world: World) -> Document:
    """In Ann's collection, which everybody reads, where Bob and Carol are editors; its list names the group legal."""
    await world.catalog.create(ANN, "papers", "Papers", Visibility.TENANT)
    for name in ("bob", "carol"):
        await world.catalog.set_member(ANN, "papers", Member("subject", name, "editor"))
    return await world.upload("hello", "hello.txt", collection_id="papers", access=LEGAL)


async def refusal(call: Awaitable[object]) -> tuple[str, str]:
    with pytest.raises(GroundworkError) as told:
        await call
    return told.value.reason, told.value.message


async def _download(world: World, caller: Principal, document_id: str) -> None:
    async with world.listing.download(caller, document_id):
        pass


ASKING: dict[str, Callable[[World, Principal, str], Awaitable[object]]] = {
    "get": lambda world, caller, it: world.listing.get(caller, it),
    "download": _download,
    "delete": lambda world, caller, it: world.deletion.delete(TENANT, it, partial(world.access.check_edit, caller)),
    "reindex": lambda world, caller, it: world.reviser.reindex(TENANT, it, partial(world.access.check_edit, caller)),
    "see its list": lambda world, caller, it: world.access_desk.get(caller, it),
    "set its list": lambda world, caller, it: world.access_desk.set(caller, it, lambda _: DocumentAccess("papers")),
    "remove its list": lambda world, caller, it: world.access_desk.set(caller, it, None),
}


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
async def test_editor_who_is_not_listed_is_told_what_is_told_of_a_document_that_never_was(
    world: World, document: Document, ask: Callable[[World, Principal, str], Awaitable[object]]
) -> None:
    reason, message = await refusal(ask(world, BOB, document.document_id))
    assert reason == "DOCUMENT_NOT_FOUND"
    assert (reason, message.replace(document.document_id, NEVER)) == await refusal(ask(world, BOB, NEVER))
    assert await world.record(document) == document


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
@pytest.mark.parametrize("caller", [ANN, IN_LEGAL, ADMINISTRATOR], ids=lambda caller: caller.subject)
async def test_owner_administrator_and_who_is_listed_may_all(
    world: World, document: Document, caller: Principal, ask: Callable[[World, Principal, str], Awaitable[object]]
) -> None:
    await ask(world, caller, document.document_id)


async def test_listing_leaves_out_what_the_caller_may_not_read(world: World, document: Document) -> None:
    other = await world.upload("open", "open.txt", collection_id="papers")
    assert (await world.listing.page(BOB, Page("papers")))[0] == [other]
    assert {each.document_id for each in (await world.listing.page(IN_LEGAL, Page("papers")))[0]} == {
        document.document_id,
        other.document_id,
    }


async def test_hidden_document_is_not_overwritten_by_its_name(world: World, document: Document) -> None:
    upload = partial(world.upload, "mine", "hello.txt", collection_id="papers")
    assert (await refusal(upload(caller=BOB)))[0] == "NAME_TAKEN"
    assert await world.record(document) == document
    assert (await upload(caller=IN_LEGAL)).document_id == document.document_id


async def test_list_stays_with_a_new_version_unless_it_is_given_anew(world: World, document: Document) -> None:
    await world.upload("again", "hello.txt", collection_id="papers")
    assert world.lists.known(TENANT, document.document_id) == LEGAL
    nobody = DocumentAccess("papers")
    await world.upload("once more", "hello.txt", collection_id="papers", access=nobody)
    assert world.lists.known(TENANT, document.document_id) == nobody
    assert (await refusal(world.listing.get(IN_LEGAL, document.document_id)))[0] == "DOCUMENT_NOT_FOUND"


async def test_who_follows_documents_is_told_when_a_list_changes(world: World, document: Document) -> None:
    async with aclosing(world.listing.watch(BOB, "papers", ())) as changes:
        assert await anext(changes) is None
        await world.access_desk.set(ANN, document.document_id, None)
        shown = await anext(changes)
        assert shown is not None
        assert (shown.document_id, shown.status) == (document.document_id, document.status)
        await world.access_desk.set(ANN, document.document_id, lambda _: LEGAL)
        gone = await anext(changes)
        assert gone is not None
        assert (gone.document_id, gone.status) == (document.document_id, Status.DELETED)


async def test_who_loses_a_document_is_told_nothing_of_its_new_text(world: World, document: Document) -> None:
    await world.access_desk.set(ANN, document.document_id, None)
    async with aclosing(world.listing.watch(BOB, "papers", ())) as changes:
        assert [await anext(changes), await anext(changes)] == [await world.record(document), None]
        await world.upload("secret", "hello.txt", collection_id="papers", access=LEGAL, metadata={"case": "42"})
        gone = await anext(changes)
    assert gone is not None
    assert (gone.document_id, gone.collection_id, gone.status) == (document.document_id, "papers", Status.DELETED)
    assert (gone.name, gone.content, gone.metadata, gone.pending) == ("", Content("", 0, ""), {}, None)


async def test_end_of_a_document_that_was_hidden_is_not_told(world: World, document: Document) -> None:
    other = await world.upload("open", "open.txt", collection_id="papers")
    async with aclosing(world.listing.watch(BOB, "papers", ())) as changes:
        assert [await anext(changes), await anext(changes)] == [other, None]
        await world.deletion.delete(TENANT, document.document_id)  # its list goes with it
        await world.deletion.delete(TENANT, other.document_id)
        gone = await anext(changes)
    assert gone is not None
    assert (gone.document_id, gone.name) == (other.document_id, "open.txt")


async def test_list_that_comes_with_the_same_text_is_told_to_who_follows(world: World, document: Document) -> None:
    await world.access_desk.set(ANN, document.document_id, None)
    async with aclosing(world.listing.watch(BOB, "papers", ())) as changes:
        assert [await anext(changes), await anext(changes)] == [await world.record(document), None]
        answered = await world.upload("hello", "hello.txt", collection_id="papers", access=LEGAL)
        gone = await anext(changes)
    assert gone is not None
    assert (gone.document_id, gone.status) == (document.document_id, Status.DELETED)
    assert answered == await world.record(document)


async def test_list_lets_nobody_in_together_with_another_text(world: World, document: Document) -> None:
    wider = DocumentAccess("papers", frozenset({"bob"}), frozenset({"legal"}))
    upload = partial(world.upload, name="hello.txt", collection_id="papers", access=wider)
    reason, message = await refusal(upload("without names"))
    assert (reason, f"PUT /v1/documents/{document.document_id}/access" in message) == ("BAD_ACCESS", True)
    assert world.lists.known(TENANT, document.document_id) == LEGAL
    assert await world.record(document) == document
    await upload("hello")
    assert world.lists.known(TENANT, document.document_id) == wider


async def test_repeated_upload_shows_nobody_what_was_closed_to_them(world: World, document: Document) -> None:
    upload = partial(world.upload, "hello", "hello.txt", collection_id="papers", idempotency_key="a1")
    made = await upload(caller=IN_LEGAL)
    assert await upload(caller=IN_LEGAL) == made
    await world.access_desk.set(ANN, document.document_id, lambda _: DocumentAccess("papers"))
    assert (await refusal(upload(caller=IN_LEGAL)))[0] == "DOCUMENT_NOT_FOUND"


async def test_collection_without_an_owner_takes_no_lists(world: World, document: Document) -> None:
    await world.collections.put(replace(world.collections.collections[TENANT, "papers"], owner=""))
    await world.access_desk.set(ANN, document.document_id, None)
    for call in (
        world.access_desk.set(ANN, document.document_id, lambda _: LEGAL),
        world.upload("new", "new.txt", collection_id="papers", access=LEGAL),
        world.upload("new", "new.txt", caller=BOB, access=replace(LEGAL, collection_id="default")),
    ):
        assert (await refusal(call))[0] == "BAD_ACCESS"
    assert world.lists.lists == {}
    await world.catalog.update(ANN, "papers", visibility=Visibility.TENANT)
    await world.access_desk.set(ANN, document.document_id, lambda _: LEGAL)
    assert not await world.access.may_read(BOB, "papers", document.document_id)


async def test_list_goes_with_its_document(world: World, document: Document) -> None:
    await world.deletion.delete(TENANT, document.document_id)
    assert world.lists.lists == {}


@pytest.mark.parametrize(
    ("subjects", "groups"),
    [(["two words"], []), ([], ["a\nb"]), ([""], []), ([], [f"g{number}" for number in range(1001)])],
)
async def test_list_that_cannot_be_used_is_refused(subjects: list[str], groups: list[str]) -> None:
    with pytest.raises(GroundworkError) as told:
        access_list("papers", subjects, groups)
    assert told.value.reason == "BAD_ACCESS"


async def test_list_that_somebody_else_has_changed_is_not_overwritten(world: World, document: Document) -> None:
    read = access_etag(await world.access_desk.get(ANN, document.document_id))
    theirs = DocumentAccess("papers", subjects=frozenset({"carol"}))
    await world.access_desk.set(ANN, document.document_id, lambda _: theirs, read)
    for change in (lambda _: DocumentAccess("papers"), None):
        with pytest.raises(AccessChanged) as refused:
            await world.access_desk.set(ANN, document.document_id, change, read)
    assert await world.access_desk.get(ANN, document.document_id) == theirs
    repeated = await world.access_desk.set(ANN, document.document_id, lambda _: theirs, read)  # its answer was lost
    assert repeated == theirs
    assert refused.value.metadata["etag"] == access_etag(theirs)
    assert await world.access_desk.set(ANN, document.document_id, None, access_etag(theirs)) is None


async def test_members_that_somebody_else_has_changed_are_not_overwritten(world: World) -> None:
    await world.catalog.create(ANN, "plans", "Plans")
    read = members_etag(await world.catalog.members(ANN, "plans"))
    bob, eve = (Member(MemberKind.SUBJECT, name, Role.VIEWER) for name in ("bob", "eve"))
    shared = await world.catalog.set_member(ANN, "plans", bob, read)
    assert await world.catalog.set_member(ANN, "plans", bob, read) == shared  # its answer was lost
    with pytest.raises(AccessChanged):
        await world.catalog.set_member(ANN, "plans", eve, read)
    with pytest.raises(AccessChanged):
        await world.catalog.remove_member(ANN, "plans", MemberKind.SUBJECT, "bob", read)
    assert await world.catalog.members(ANN, "plans") == (bob,)
    assert not await world.catalog.remove_member(ANN, "plans", MemberKind.SUBJECT, "bob", members_etag(shared))
    assert not await world.catalog.remove_member(ANN, "plans", MemberKind.SUBJECT, "bob", members_etag(shared))
