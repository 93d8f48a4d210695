"""Each kind of source × each thing that happens there. A cell without a test has a stated reason."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from kit.access.principal import Principal
from kit.network.egress import EgressGuard, parse_networks
from services.ingest.adapters.jetstream.sources import source_kinds
from services.ingest.documents.models import Document
from services.ingest.sources.opening import SourceOpener
from services.ingest.sources.ports import Surroundings
from tests.service.ingest.source_drivers import DRIVERS, Driver, MailDriver
from tests.unit.ingest.faults import Process, in_process, make_killable
from tests.unit.ingest.source_steps import PlainSealer, Step
from tests.unit.ingest.world import TENANT

EVENTS = ("create", "edit", "rename", "delete", "revoked", "reader", "failing", "kill")
_NO_READERS = "it names no readers: its collection says who may read"
WITHOUT = {
    ("folder", "reader"): _NO_READERS,
    ("s3", "reader"): _NO_READERS,
    ("web", "reader"): _NO_READERS,
    ("feed", "reader"): _NO_READERS,
    ("imap", "reader"): "a mailbox has one user, who stays",
    ("feed", "rename"): "an entry has an id, which nobody renames",
    ("feed", "delete"): "a feed lists only what is new: an entry that it leaves out keeps its document",
}
KILLS = 5
TOO_LARGE = "x" * 1_100_000
BOB = Principal(TENANT, "bob")


class Synced(Step):
    """A world with a source of one kind, at which a driver does things."""

    def __init__(self, folder: Path, driver: Driver) -> None:
        super().__init__(folder)
        self.driver = driver
        guard = EgressGuard(parse_networks("127.0.0.0/8"))
        surroundings = Surroundings(lambda _: {"papers": driver.folder}, max_files=100, guard=guard)
        self.opener = SourceOpener({driver.kind.name: driver.kind}, PlainSealer(), surroundings, self.sources)
        record = replace(self.record, kind=driver.kind.name, settings=dict(driver.settings))
        self.record = self.opener.seal(record, driver.secrets)

    async def start(self) -> None:
        await self.driver.write("a.md", "First apples.")
        await self.driver.write("b.md", "Second bananas.")
        await self.sources.create(self.record)
        await self.sync()
        self.having("First apples"), self.having("Second bananas")

    def saying(self, text: str) -> list[Document]:
        index = self.world.index
        return [each for each in self.living() if text in " ".join(index.searchable(each.document_id))]

    def having(self, text: str) -> Document:
        """The one document that says it."""
        (found,) = self.saying(text)
        return found


@pytest.fixture
async def synced(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Synced]:
    for folder in (at_source := tmp_path / "source", here := tmp_path / "here"):
        folder.mkdir()
    driver: Driver = request.param(at_source)
    async with driver.running():
        if isinstance(driver, MailDriver):
            monkeypatch.setenv("SSL_CERT_FILE", str(driver.authorities_file))
        made = Synced(here, driver)
        await made.start()
        yield made


def cells(event: str) -> pytest.MarkDecorator:
    """Each kind that has this event."""
    drivers = [each for each in DRIVERS if (each.kind.name, event) not in WITHOUT]
    return pytest.mark.parametrize("synced", drivers, indirect=True, ids=[each.kind.name for each in drivers])


@cells("create")
async def test_create(synced: Synced) -> None:
    await synced.driver.write("c.md", "Third cherries.")
    assert (await synced.sync()).sync.counts.added == 1
    synced.having("Third cherries"), synced.having("First apples")


@cells("edit")
async def test_edit(synced: Synced) -> None:
    before = synced.having("First apples")
    await synced.driver.write("a.md", "Other apricots.")
    await synced.sync()
    after = synced.having("Other apricots")
    assert not synced.saying("First apples")
    if not isinstance(synced.driver, MailDriver):  # an edited draft is a new message
        assert after.document_id == before.document_id


@cells("rename")
async def test_rename(synced: Synced) -> None:
    before = synced.having("First apples")
    await synced.driver.rename("a.md", "z.md")
    counts = (await synced.sync()).sync.counts
    after = synced.having("First apples")
    assert (counts.moved, after.document_id) == (1, before.document_id)
    assert after.name != before.name


@cells("delete")
async def test_delete(synced: Synced) -> None:
    await synced.driver.delete("a.md")
    assert (await synced.sync()).sync.counts.removed == 1
    assert not synced.saying("First apples")
    synced.having("Second bananas")


@cells("revoked")
async def test_revoked(synced: Synced) -> None:
    await synced.driver.lock_out()
    error = (await synced.sync()).sync.error
    assert error is not None
    assert error.reason == "SOURCE_AWAY"
    synced.having("First apples"), synced.having("Second bananas")


@cells("reader")
async def test_reader(synced: Synced) -> None:
    def lets_in_bob() -> bool:
        listed = synced.world.lists.known(TENANT, synced.having("First apples").document_id)
        return listed is None or listed.covers(BOB)

    assert lets_in_bob()
    await synced.driver.name_readers("ann")
    await synced.refreshing().refresh(await synced.stored())
    assert not lets_in_bob()


@cells("failing")
async def test_failing(synced: Synced) -> None:
    await synced.driver.write("big.md", TOO_LARGE)
    await synced.driver.write("c.md", "Third cherries.")
    state = (await synced.sync()).sync
    assert state.failing_count == 1
    assert state.failing[0].message
    synced.having("Third cherries")
    await synced.driver.write("big.md", "Now small.")
    assert (await synced.sync()).sync.failing_count == 0
    synced.having("Now small")


@cells("kill")
async def test_kill(synced: Synced) -> None:
    """Cuts syncs at calls of the stores, each further into the sync than the one before."""
    make_killable(synced.world, random.Random(1))
    for number in range(KILLS):
        await synced.driver.write("a.md", f"Apples of round-{number}.")
        await synced.driver.write(f"n{number}.md", f"New of round-{number}.")
        sync = synced.syncs().sync(await synced.stored())
        await asyncio.create_task(in_process(sync, Process(1 + 7 * number, 1)))
        assert (await synced.sync()).sync.error is None
        synced.having(f"Apples of round-{number}.")
        for each in range(number + 1):
            synced.having(f"New of round-{each}.")
        assert not synced.saying(f"Apples of round-{number - 1}."), "nothing is stale"


def test_every_cell_has_a_test_or_a_reason() -> None:
    assert {each.kind.name for each in DRIVERS} == set(source_kinds()), "a driver for each kind"
    assert all(f"test_{event}" in globals() for event in EVENTS)
    known = {each.kind.name for each in DRIVERS}
    assert all(kind in known and event in EVENTS and reason for (kind, event), reason in WITHOUT.items())
