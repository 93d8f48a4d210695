"""Syncs that are cut off after any step, and that run beside one another: in the end each file is one document, as it is at the
source, and nothing else is left."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest

from kit.stores.collections import Member
from kit.stores.document_access import DocumentAccess
from services.ingest.errors import NotYours
from services.ingest.sources.desk import SourceChange
from services.ingest.sources.models import FailingFile
from tests.unit.ingest.faults import Process, in_process, make_killable
from tests.unit.ingest.source_steps import AFTER, BEFORE, Step, ids
from tests.unit.ingest.world import ANN, BOB, TENANT


async def test_sync_reads_what_changed_and_nothing_else(tmp_path: Path) -> None:
    step = Step(tmp_path)
    await step.begin(BEFORE)
    assert step.texts() == BEFORE
    before, step.place.fetched = ids(step), []
    step.place.files = dict(AFTER)
    counts = (await step.sync()).sync.counts
    assert step.texts() == AFTER
    assert sorted(step.place.fetched) == ["edited.md", "fresh.md", "new/name.md"]
    assert (counts.added, counts.changed, counts.moved, counts.removed, counts.failed) == (1, 1, 1, 1, 0)
    assert counts.done == counts.total
    after = ids(step)
    assert (after["new/name.md"], after["edited.md"]) == (before["old/name.md"], before["edited.md"])
    step.place.fetched = []
    await step.sync()
    assert step.place.fetched == []


@pytest.mark.parametrize("start", range(0, 160, 16))
async def test_sync_that_was_cut_off_after_any_step_is_done_by_the_next(tmp_path: Path, start: int) -> None:
    for calls in range(start + 1, start + 17):
        (folder := tmp_path / str(calls)).mkdir()
        step = Step(folder)
        await step.begin(BEFORE)
        step.place.files = dict(AFTER)
        make_killable(step.world, random.Random(calls))
        await asyncio.create_task(in_process(step.syncs().sync(await step.stored()), Process(calls, 1)))
        await step.sync()
        await step.work()
        assert step.texts() == AFTER, calls
        assert (await step.stored()).sync.began_at is None


@pytest.mark.parametrize("seed", range(6))
async def test_ten_kills_and_two_syncs_at_once_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    turns = random.Random(seed)
    step = Step(tmp_path)
    await step.begin(BEFORE)
    make_killable(step.world, turns)
    killed = 0
    while killed < 10:
        names = turns.sample(["a.md", "b.md", "c/d.md", "same.md", "e.md"], 4)
        step.place.files = {name: turns.choice(["One.", "Two.", "Three.", name]) for name in names}
        work = [
            in_process(
                step.syncs().sync(await step.stored()), Process(turns.randrange(5, 90), turns.choice([1, 4, 40]))
            )
            for _ in range(2)
        ]
        killed += (await asyncio.gather(*map(asyncio.create_task, work))).count(False)
        await step.work()
    for _ in range(2):
        await step.sync()
    assert step.texts() == step.place.files


async def test_failing_file_is_named_and_tried_again(tmp_path: Path) -> None:
    step = Step(tmp_path)
    step.place.broken = {"edited.md"}
    await step.begin(BEFORE)
    assert (await step.stored()).sync.failing == (
        FailingFile("edited.md", "FILE_UNREADABLE", "it cannot be read; mend it"),
    )
    assert step.texts().keys() == BEFORE.keys() - {"edited.md"}
    step.place.broken = set()
    assert (await step.sync()).sync.failing_count == 0
    assert step.texts() == BEFORE


async def test_listing_of_changes_goes_on_at_its_cursor_and_removes_only_what_it_says(tmp_path: Path) -> None:
    step = Step(tmp_path)
    step.place.listing = {"is_complete": False, "cursor": "1"}
    await step.begin(BEFORE)
    step.place.files = {"edited.md": "Second."}
    step.place.listing = {"is_complete": False, "cursor": "2", "gone": ["gone.md", "never.md"]}
    await step.sync()
    assert step.texts() == {key: text for key, text in BEFORE.items() if key != "gone.md"} | {"edited.md": "Second."}
    assert step.place.cursors == ["", "1"]
    step.place.broken, step.place.files = {"bad.md"}, {"bad.md": "x"}
    await step.sync()
    await step.sync()
    assert step.place.cursors == ["", "1", "2", ""], "what failed is listed again"


async def test_part_that_cannot_be_listed_keeps_its_documents(tmp_path: Path) -> None:
    step = Step(tmp_path)
    await step.begin(BEFORE)
    del step.place.files["old/name.md"], step.place.files["gone.md"]
    step.place.listing = {"problems": [FailingFile("old", "FOLDER_UNREADABLE", "it cannot be read")]}
    state = (await step.sync()).sync
    assert step.texts().keys() == BEFORE.keys() - {"gone.md"}
    assert [file.key for file in state.failing] == ["old"]


async def test_error_that_nobody_foresaw_ends_the_sync_as_failed(tmp_path: Path) -> None:
    step = Step(tmp_path)
    await step.begin(BEFORE)
    step.place.listing = {"no such field": 1}
    state = (await step.sync()).sync
    assert (state.began_at, state.error and state.error.reason) == (None, "INTERNAL")
    assert step.texts() == BEFORE
    step.place.listing = {}
    assert (await step.sync()).sync.error is None


async def test_secrets_are_opened_for_the_source_that_they_were_sealed_for(tmp_path: Path) -> None:
    step = Step(tmp_path)
    sealed = step.opener.seal(step.record, {"key": "k1", "empty": ""})
    assert sealed.secret_names == ("key",)
    assert step.opener.secrets_of(sealed) == {"key": "k1"}
    assert step.opener.secrets_of(replace(sealed, sealed_secrets="")) == {}


@pytest.fixture
async def shared(tmp_path: Path) -> Step:
    """A source of Ann's collection, where Bob is an editor. Each of its two documents failed at the last sync."""
    step = Step(tmp_path)
    await step.world.catalog.create(ANN, "papers", "")
    await step.world.catalog.set_member(ANN, "papers", Member("subject", "bob", "editor"))
    step.record = replace(step.record, collection_id="papers", settings={"at": "here"})
    await step.begin({"hidden.md": "First.", "open.md": "First.", "broken.pdf": "%PDF-1.7 this is no PDF"})
    step.place.files |= {"hidden.md": "Second.", "open.md": "Second."}
    step.place.broken = {"hidden.md", "open.md"}
    await step.sync()
    return step


async def test_files_of_documents_that_are_hidden_are_named_to_those_who_may_read_them(shared: Step) -> None:
    desk = shared.desk()
    for hidden in ("hidden.md", "broken.pdf"):
        await shared.world.lists.put(TENANT, ids(shared)[hidden], DocumentAccess("papers"))
    asked = [
        await desk.get(BOB, shared.record.source_id),
        await desk.update(BOB, shared.record.source_id, SourceChange(every_s=600)),
        await desk.run(BOB, shared.record.source_id, accept_empty=False),
    ]
    assert [[file.key for file in report.record.sync.failing] for report in asked] == [["open.md"]] * 3
    assert [(report.rejected, report.rejected_count) for report in asked] == [((), 1)] * 3
    whole = await desk.get(ANN, shared.record.source_id)
    assert [file.key for file in whole.record.sync.failing] == ["hidden.md", "open.md"]
    assert [document.name for document in whole.rejected] == ["notes/broken.pdf"]
    assert len((await shared.stored()).sync.failing) == 2


async def test_what_may_remove_hidden_documents_takes_an_owner(shared: Step) -> None:
    desk, source_id = shared.desk(), shared.record.source_id
    for refused in (
        desk.update(BOB, source_id, SourceChange(secrets={})),
        desk.run(BOB, source_id, accept_empty=True),
        desk.delete(BOB, source_id),
    ):
        with pytest.raises(NotYours, match="role owner"):
            await refused
    assert not (await shared.stored()).deleting
    await desk.update(BOB, source_id, SourceChange(paused=True))
    await desk.update(ANN, source_id, SourceChange(secrets={}, paused=False))
    await desk.run(ANN, source_id, accept_empty=True)
    await desk.delete(ANN, source_id)
    assert (await shared.stored()).deleting
