"""What is kept of a text goes with its chunk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kit.errors import Unavailable
from services.retriever.models import Pointer, PointerEntry, RevisionKey
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.upkeep.forgetting import ForgettingRemoval
from tests.unit.retriever.fakes import FakeLexical, make_batch, make_chunk, write_key

OLD, NEW = RevisionKey("local", "d1", "r1"), RevisionKey("local", "d1", "r2")


class FakeForgetter:
    """Notes what is forgotten, and how many chunks were there then."""

    def __init__(self, lexical: FakeLexical) -> None:
        self._lexical = lexical
        self.error: Exception | None = None
        self.calls: list[tuple[str, set[str], int]] = []

    async def forget(self, tenant_id: str, content_hashes: Sequence[str]) -> None:
        if self.error is not None:
            raise self.error
        self.calls.append((tenant_id, set(content_hashes), len(self._lexical.rows)))


def content_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class World:
    def __init__(self) -> None:
        self.lexical, self.revisions = FakeLexical(), RevisionMap()
        self.texts = FakeForgetter(self.lexical)
        self.removal = ForgettingRemoval(self.lexical, self.revisions, self.texts)

    async def write(self, key: RevisionKey, texts: Sequence[str]) -> None:
        chunks = [make_chunk(text, n, key=key, content_hash=content_hash(text)) for n, text in enumerate(texts)]
        await self.lexical.write(write_key(key), make_batch(chunks))


@pytest.fixture
def world() -> World:
    return World()


async def test_texts_of_a_deleted_document_are_forgotten_before_and_after_its_chunks_go(world: World) -> None:
    texts = [f"text {n}" for n in range(300)]
    await world.write(OLD, texts[:200])
    await world.write(NEW, texts[200:])  # never active
    await world.write(RevisionKey("local", "d2", "r3"), ["another document"])
    await world.removal.delete_document("local", "d1")
    hashes = set(map(content_hash, texts))
    assert world.texts.calls == [("local", hashes, 301), ("local", hashes, 1)]


async def test_texts_that_the_new_revision_still_has_are_kept(world: World) -> None:
    await world.write(OLD, ["stays", "goes"])
    await world.write(NEW, ["stays", "comes"])
    world.revisions.apply(PointerEntry("local", "d1", Pointer("r2", 2, "default", 2, 5), 1))
    await world.removal.delete_revision(OLD)
    assert [hashes for _, hashes, _ in world.texts.calls] == [{content_hash("goes")}] * 2
    assert {row.write.revision for row in world.lexical.rows} == {NEW}


async def test_chunks_stay_as_a_reminder_while_nobody_can_forget(world: World) -> None:
    await world.write(OLD, ["solar"])
    world.texts.error = Unavailable("the model server is away")
    for removal in (world.removal.delete_revision(OLD), world.removal.delete_document("local", "d1")):
        with pytest.raises(Unavailable):
            await removal
    assert len(world.lexical.rows) == 1
    world.texts.error = None
    await world.removal.delete_revision(OLD)
    assert world.lexical.rows == []
    assert len(world.texts.calls) == 2


async def test_nobody_is_asked_to_forget_nothing(world: World) -> None:
    world.texts.error = Unavailable("the model server is away")
    await world.removal.delete_revision(OLD)
    await world.removal.delete_document("local", "d1")


async def test_chunk_that_cannot_be_read_keeps_nothing_from_being_removed(world: World) -> None:
    await world.write(OLD, ["one", "two"])
    row = world.lexical.rows[0]
    world.lexical.rows[0] = replace(row, stored=replace(row.stored, body="{"))
    await world.removal.delete_revision(OLD)
    assert world.lexical.rows == []
    assert world.texts.calls[0][1] == {content_hash("two")}
