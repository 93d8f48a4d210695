"""A file of a source that a caller asks for by its path: it is taken at once, as a sync would, and only for who may read it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kit.access.principal import Principal
from kit.errors import GroundworkError
from kit.stores.collections import Member
from kit.stores.document_access import DocumentAccess
from services.ingest.documents.models import Document
from services.ingest.errors import BadSource, NotYours, SourceFileNotFound, SourceFileNotTaken, SourceNotFound
from services.ingest.sources.files import SourceFiles
from services.ingest.sources.known import KnownFiles
from services.ingest.sources.models import FileReaders
from services.ingest.sources.source_access import SourceAccess
from services.ingest.sources.taking import FileTaking
from tests.unit.ingest.source_steps import BEFORE, Step, ids
from tests.unit.ingest.world import ANN, BOB, TENANT

CAROL = Principal(TENANT, "carol")


async def index(step: Step, path: str, caller: Principal = ANN, collection_ids: Sequence[str] = ()) -> Document:
    world = step.world
    access = SourceAccess(world.store, world.lists, world.clock)
    files = SourceFiles(
        sources=step.sources,
        opener=step.opener,
        known=KnownFiles(world.store, world.clock),
        documents=world.store,
        catalog=world.catalog,
        access=world.access,
        source_access=access,
        taking=FileTaking(world.uploads, access, world.clock),
        deletion=world.deletion,
    )
    return await files.index(caller, path, collection_ids)


@pytest.fixture
async def step(tmp_path: Path) -> Step:
    """A source of Ann's collection, where Bob is an editor and Carol a viewer."""
    step = Step(tmp_path)
    await step.world.catalog.create(ANN, "papers", "")
    for name, role in (("bob", "editor"), ("carol", "viewer")):
        await step.world.catalog.set_member(ANN, "papers", Member("subject", name, role))
    step.record = replace(step.record, collection_id="papers")
    await step.begin(BEFORE)
    return step


async def test_new_or_changed_file_is_taken_and_the_next_sync_reads_it_no_more(step: Step) -> None:
    before = ids(step)
    step.place.files |= {"edited.md": "Second.", "new/fresh.md": "It comes."}
    step.place.fetched = []
    changed, fresh = await index(step, "notes/edited.md", BOB), await index(step, "notes/new/fresh.md", BOB)
    assert (changed.document_id, fresh.name) == (before["edited.md"], "notes/new/fresh.md")
    assert step.place.fetched == ["edited.md", "new/fresh.md"]
    again = await index(step, "notes/new/fresh.md", BOB)
    assert (again.document_id, step.place.fetched) == (fresh.document_id, ["edited.md", "new/fresh.md"])
    await step.sync()
    assert step.place.fetched == ["edited.md", "new/fresh.md"]
    assert step.texts() == {**BEFORE, "edited.md": "Second.", "new/fresh.md": "It comes."}


@pytest.mark.parametrize(
    ("path", "said", "error"),
    [
        ("notes/edit.md", "Like it are: notes/edited.md", SourceFileNotFound),
        ("notes/elsewhere.md", "has no file 'elsewhere.md' for you", SourceFileNotFound),
        ("notes/../secrets.md", "without '..'", SourceFileNotFound),
        ("notes", "names no file", SourceFileNotFound),
        ("/etc/passwd", "the sources are: notes. Begin the path", SourceNotFound),
        ("letters/edited.md", "there is no source 'letters'", SourceNotFound),
    ],
)
async def test_path_outside_or_unknown_says_what_to_do(
    step: Step, path: str, said: str, error: type[GroundworkError]
) -> None:
    with pytest.raises(error, match=said.replace(".", r"\.")):
        await index(step, path)


async def test_file_is_taken_for_an_editor_who_may_read_it(step: Step) -> None:
    with pytest.raises(SourceNotFound, match="the sources are: none"):
        await index(step, "notes/edited.md", Principal(TENANT, "eve"))
    with pytest.raises(SourceNotFound, match="the sources are: none"):
        await index(step, "notes/edited.md", BOB, ["reports"])
    with pytest.raises(NotYours, match="role editor"):
        await index(step, "notes/edited.md", CAROL)
    await step.world.lists.put(TENANT, ids(step)["edited.md"], DocumentAccess("papers", frozenset({"carol"})))
    for hidden in ("notes/edited.md", "notes/edite.md"):
        with pytest.raises(SourceFileNotFound) as refused:
            await index(step, hidden, BOB)
        assert "notes/edited.md" not in refused.value.message
    step.place.readers = {"fresh.md": FileReaders(frozenset({"bob"})), "closed.md": FileReaders(frozenset({"carol"}))}
    step.place.files |= {"fresh.md": "It comes.", "closed.md": "It is closed."}
    assert (await index(step, "notes/fresh.md", BOB)).origin is not None
    with pytest.raises(SourceFileNotFound):
        await index(step, "notes/closed.md", BOB)
    assert "closed.md" not in ids(step)
    closed = await index(step, "notes/closed.md", ANN)
    listed = await step.world.lists.get(TENANT, closed.document_id)
    assert listed == DocumentAccess("papers", frozenset({"carol"}))


async def test_file_that_cannot_be_taken_is_refused_with_its_reason(step: Step) -> None:
    step.place.files["edited.md"] = "Second."
    step.place.broken = {"edited.md"}
    with pytest.raises(SourceFileNotTaken, match="it cannot be read; mend it") as refused:
        await index(step, "notes/edited.md")
    assert refused.value.reason == "FILE_UNREADABLE"
    await step.sources.change(*step.record.place, lambda it: replace(it, paused=True))
    with pytest.raises(BadSource, match="resume it first"):
        await index(step, "notes/edited.md")


async def test_two_sources_of_one_name_are_told_apart_by_their_collection(step: Step) -> None:
    other = replace(step.record, source_id="cd" * 8, collection_id="default")
    await step.sources.create(other)
    with pytest.raises(BadSource, match="default, papers; say which"):
        await index(step, "notes/edited.md")
    assert (await index(step, "notes/edited.md", ANN, ["default"])).collection_id == "default"


async def test_source_that_is_removed_meanwhile_leaves_no_document(step: Step) -> None:
    step.place.files["fresh.md"] = "It comes."

    async def remove() -> None:
        await step.sources.change(*step.record.place, lambda it: replace(it, deleting=True))

    step.place.before_fetch = remove
    with pytest.raises(SourceNotFound, match="removed meanwhile"):
        await index(step, "notes/fresh.md")
    assert "fresh.md" not in ids(step)
