"""Who may read a file at its source may read its document, and nobody else; a file that keeps its key keeps its document."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from kit.stores.document_access import DocumentAccess
from services.ingest.documents.models import Document
from services.ingest.errors import BadAccess, FileNotTaken
from services.ingest.sources.desk import NewSource
from services.ingest.sources.models import FileReaders, SourceFile, SourceListing
from services.ingest.sources.opening import SourceOpener
from services.ingest.sources.ports import Surroundings
from tests.unit.ingest.faults import Process, in_process, make_killable
from tests.unit.ingest.source_steps import Place, PlainSealer, Step
from tests.unit.ingest.world import BOB, TENANT

ANN, BOTH, NOBODY = (FileReaders(frozenset(names)) for names in (["ann"], ["ann", "bob"], []))
EVERYBODY = FileReaders(is_public=True)


class NamedPlace(Place):
    """Files by a key that is not their name."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, str] = {}
        self.readers: dict[str, FileReaders] = {}

    async def list_changes(self, cursor: str) -> SourceListing:
        self.cursors.append(cursor)
        files = [
            SourceFile(key, f"v-{text}", name=self.names.get(key, key), readers=self.readers.get(key))
            for key, text in self.files.items()
        ]
        return SourceListing(files, cursor=f"after-{len(self.cursors)}")

    async def fetch(self, file: SourceFile) -> AsyncIterator[bytes]:
        self.fetched.append(file.key)
        if file.key in self.broken:
            raise FileNotTaken("FILE_UNREADABLE", "it cannot be read; mend it")
        yield self.files[file.key].encode()


class NamedStep(Step):
    place: NamedPlace

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.place = NamedPlace()

    def document(self) -> Document:
        (found,) = self.living()
        return found

    def listed(self) -> DocumentAccess | None:
        return self.world.lists.known(TENANT, self.document().document_id)


def of(readers: FileReaders) -> DocumentAccess:
    return DocumentAccess("default", readers.subjects, readers.groups)


@pytest.fixture
async def step(tmp_path: Path) -> NamedStep:
    made = NamedStep(tmp_path)
    made.place.readers = {"a1": BOTH}
    await made.begin({"a1": "First."})
    return made


async def test_who_may_read_a_file_is_refreshed_while_its_content_stays(step: NamedStep) -> None:
    assert step.listed() == of(BOTH)
    step.place.fetched = []
    for readers in (ANN, BOTH, NOBODY, EVERYBODY, ANN):
        step.place.readers = {"a1": readers}
        await step.sync()
        assert step.listed() == (None if readers.is_public else of(readers))
    assert step.place.fetched == []


async def test_reader_who_comes_in_does_not_find_what_was_taken_out_for_them(step: NamedStep) -> None:
    step.place.readers = {"a1": ANN}
    await step.sync()
    step.place.readers, step.place.files = {"a1": BOTH}, {"a1": "Second."}
    await step.syncs().sync(await step.stored())
    assert step.listed() == of(ANN), "the first text is still searchable"
    await step.sync()
    assert step.place.cursors[-1] == step.place.cursors[-2], "what has to wait is listed again"
    await step.sync()
    assert step.listed() == of(BOTH)
    assert step.world.index.searchable(step.document().document_id) == ["Second."]


async def test_list_is_narrowed_before_the_content_is_another(step: NamedStep) -> None:
    step.place.readers, step.place.files = {"a1": FileReaders(frozenset(["bob", "eve"]))}, {"a1": "Second."}
    await step.syncs().sync(await step.stored())
    assert step.listed() == of(FileReaders(frozenset(["bob"])))


@pytest.mark.parametrize("before", [BOTH, EVERYBODY])
@pytest.mark.parametrize("change", [{"files": {"a1": "Second."}}, {"names": {"a1": "new/name.md"}}])
async def test_reader_who_is_taken_out_does_not_keep_the_text_of_a_file_that_cannot_be_read(
    step: NamedStep, before: FileReaders, change: dict[str, dict[str, str]]
) -> None:
    step.place.readers = {"a1": before}
    await step.sync()
    for name, value in change.items():
        setattr(step.place, name, value)
    step.place.readers, step.place.broken = {"a1": FileReaders(frozenset(["ann", "eve"]))}, {"a1"}
    assert (await step.sync()).sync.failing_count == 1
    assert step.listed() == of(FileReaders(frozenset(["ann", "eve"])) if before.is_public else ANN)
    step.place.broken = set()
    await step.sync()
    await step.sync()
    assert step.listed() == of(FileReaders(frozenset(["ann", "eve"])))


async def test_list_is_narrowed_while_the_content_is_being_indexed(step: NamedStep) -> None:
    step.place.files = {"a1": "Second."}
    await step.syncs().sync(await step.stored())
    step.place.readers = {"a1": FileReaders(frozenset(["bob", "eve"]))}
    await step.syncs().sync(await step.stored())
    assert step.listed() == of(FileReaders(frozenset(["bob"])))


async def test_names_that_nobody_can_have_let_nobody_in(step: NamedStep) -> None:
    step.place.readers = {"a1": FileReaders(frozenset(["*", "a b", "ann"]), frozenset([" x", "staff"]))}
    await step.sync()
    assert step.listed() == of(FileReaders(frozenset(["ann"]), frozenset(["staff"])))
    step.place.readers = {"a1": FileReaders(frozenset(f"user{number}" for number in range(1001)))}
    await step.sync()
    assert step.listed() == of(NOBODY)


async def test_source_that_says_who_may_read_needs_a_collection_with_an_owner(step: NamedStep) -> None:
    kind = replace(step.opener.kind("place"), tells_readers=lambda _: True)
    step.opener = SourceOpener({"place": kind}, PlainSealer(), Surroundings(lambda _: {}, max_files=100))
    with pytest.raises(BadAccess, match="use a collection of your own"):
        await step.desk().create(BOB, NewSource("place", "default", "more"))


@pytest.mark.parametrize("start", range(0, 60, 12))
async def test_rename_that_was_cut_off_after_any_step_is_done_by_the_next_sync(tmp_path: Path, start: int) -> None:
    for calls in range(start + 1, start + 13):
        (folder := tmp_path / str(calls)).mkdir()
        step = NamedStep(folder)
        step.place.readers = {"a1": BOTH}
        await step.begin({"a1": "First."})
        before = step.document().document_id
        step.place.names, step.place.readers = {"a1": "new/name.md"}, {"a1": ANN}
        make_killable(step.world, random.Random(calls))
        await asyncio.create_task(in_process(step.syncs().sync(await step.stored()), Process(calls, 1)))
        await step.sync()
        await step.work()
        document = step.document()
        assert (document.document_id, document.name) == (before, "notes/new/name.md"), calls
        assert step.listed() == of(ANN), calls


async def test_file_that_is_renamed_and_edited_keeps_its_document(step: NamedStep) -> None:
    before = step.document().document_id
    step.place.names, step.place.files = {"a1": "new/name.md"}, {"a1": "Second."}
    await step.sync()
    await step.sync()
    document = step.document()
    assert (document.document_id, document.name) == (before, "notes/new/name.md")
    assert step.world.index.searchable(before) == ["Second."]
    step.place.fetched = []
    await step.sync()
    assert step.place.fetched == []
