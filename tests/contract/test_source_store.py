"""What every SourceStore does: run against the fake and against NATS."""

from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from kit.errors import AlreadyExists
from kit.jetstream import Nats
from services.ingest.adapters.jetstream.sources import NatsSourceStore
from services.ingest.documents.models import Failure
from services.ingest.metrics import Metrics
from services.ingest.sources.models import Counts, FailingFile, SourceRecord, SyncState
from services.ingest.sources.ports import SourceStore
from tests.unit.ingest.fakes import FakeSourceStore

NOW = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
SOURCE = SourceRecord(
    tenant_id="local",
    source_id="ab" * 16,
    kind="folder",
    name="naïve ☕",
    collection_id="default",
    owner="ann",
    created_at=NOW,
    every_s=900,
    settings={"folder": "notes"},
    sealed_secrets="AQ==",
    secret_names=("key",),
    collection_made_at=NOW,
    requested_at=NOW,
    sync=SyncState(
        began_at=NOW,
        next_at=NOW,
        counts=Counts(total=4, done=2, added=1, failed=1),
        failing=(FailingFile("a/b.md", "FILE_UNREADABLE", "it cannot be read"),),
        failing_count=1,
        cursor="c",
        error=Failure("SOURCE_AWAY", "it is away"),
    ),
)


@pytest.fixture
async def nats_store(jetstream: Nats) -> SourceStore:
    return await NatsSourceStore.open(jetstream, Metrics(CollectorRegistry()))


@pytest.fixture(params=["fake", "nats"])
def store(request: pytest.FixtureRequest) -> SourceStore:
    return FakeSourceStore() if request.param == "fake" else request.getfixturevalue("nats_store")


async def test_source_comes_back_as_it_was_written_and_last_changed(store: SourceStore) -> None:
    await store.create(SOURCE)
    assert await store.get(*SOURCE.place) == SOURCE
    with pytest.raises(AlreadyExists):
        await store.create(SOURCE)
    changed = await store.change(*SOURCE.place, lambda now: replace(now, paused=True))
    assert changed == await store.get(*SOURCE.place) == replace(SOURCE, paused=True)
    await store.purge(*SOURCE.place)
    assert await store.get(*SOURCE.place) is None
    assert await store.change(*SOURCE.place, lambda now: now) is None
    await store.purge(*SOURCE.place)


async def test_sources_are_listed_by_tenant_and_watched_over_all(store: SourceStore) -> None:
    theirs = replace(SOURCE, tenant_id="rival", source_id="01" * 16)
    await store.create(SOURCE)
    await store.create(theirs)
    assert [each async for each in store.all_of("rival")] == [theirs]
    assert {each.place async for each in store.all_of("*")} == {SOURCE.place, theirs.place}
    async with aclosing(store.watch()) as changes:
        first = [await anext(changes), await anext(changes)]
        assert sorted(place for place, _ in first) == sorted([SOURCE.place, theirs.place])
        await store.purge(*theirs.place)
        assert await anext(changes) == (theirs.place, None)
