"""Several writers of one document: an upload that names what it replaces, and text that is appended. No change is lost."""

import asyncio
import hashlib
from collections import Counter
from pathlib import Path

import pytest

from services.ingest.documents.models import Document
from services.ingest.errors import BadUpload, DocumentChanged
from tests.unit.ingest.world import TENANT, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(world: World, document: Document) -> str:
    return world.files.files[TENANT, document.content.sha256].decode()


async def test_version_is_replaced_by_who_read_it_and_by_nobody_else(world: World) -> None:
    first = await world.upload("one", replaces_sha256="")
    second = await world.upload("one two", replaces_sha256=first.content.sha256.upper())
    assert second.document_id == first.document_id
    with pytest.raises(
        DocumentChanged, match="another content than this upload replaces; read it, make the change again"
    ) as error:
        await world.upload("one three", replaces_sha256=first.content.sha256)
    assert error.value.metadata == {"document_id": first.document_id, "sha256": sha256_of("one two")}
    with pytest.raises(DocumentChanged):
        await world.upload("new", replaces_sha256="")
    assert (await world.record(first)).content.sha256 == sha256_of("one two")
    assert set(world.files.files) == {(TENANT, sha256_of("one two"))}, "what was refused has left no file"


async def test_version_of_a_document_that_is_not_there_cannot_be_replaced(world: World) -> None:
    with pytest.raises(DocumentChanged, match=r"no document notes\.txt that could be replaced"):
        await world.upload("one", replaces_sha256=sha256_of("zero"))
    assert world.store.names == {}
    assert (await world.upload("one", replaces_sha256="")).content.sha256 == sha256_of("one")


async def test_of_two_writers_who_read_the_same_version_one_is_told(world: World) -> None:
    base = await world.upload("base")
    writers = [world.upload(f"base {name}", replaces_sha256=base.content.sha256) for name in ("ann", "bob")]
    results = await asyncio.gather(*writers, return_exceptions=True)
    assert Counter(map(type, results)) == {Document: 1, DocumentChanged: 1}


async def test_texts_of_all_writers_who_append_at_once_are_there(world: World) -> None:
    texts = [f"line {number}" for number in range(12)]
    documents = await asyncio.gather(*(world.upload(text, append=True) for text in texts))
    assert len({document.document_id for document in documents}) == 1
    assert sorted(text_of(world, await world.record(documents[0])).split("\n\n")) == sorted(texts)


async def test_text_is_appended_as_a_paragraph_and_what_else_was_said_of_the_document_stays(world: World) -> None:
    await world.upload("one\n", metadata={"team": "blue"})
    document = await world.upload("two\n", append=True, metadata={"written_by": "agent"})
    assert text_of(world, document) == "one\n\ntwo\n"
    assert document.metadata == {"team": "blue", "written_by": "agent"}


async def test_append_to_a_deleted_document_begins_a_new_one(world: World) -> None:
    first = await world.upload("one")
    await world.deletion.delete(TENANT, first.document_id)
    document = await world.upload("two", append=True)
    assert (document.document_id == first.document_id, text_of(world, document)) == (False, "two")


async def test_append_that_is_repeated_with_its_key_appends_once(world: World) -> None:
    await world.upload("one")
    documents = [await world.upload("two", append=True, idempotency_key="k") for _ in range(2)]
    assert [text_of(world, document) for document in documents] == ["one\n\ntwo"] * 2


async def test_what_is_no_text_is_not_appended_to(world: World) -> None:
    await world.upload(b"%PDF-1.7 and so on", name="a.pdf")
    with pytest.raises(BadUpload, match=r"a\.pdf is application/pdf"):
        await world.upload("more", name="a.pdf", append=True)
    with pytest.raises(BadUpload, match="not UTF-8"):
        await world.upload(b"caf\xe9", append=True)
    with pytest.raises(BadUpload, match="leave out one of the two"):
        await world.upload("more", append=True, replaces_sha256="")
