"""What every DeadLetterStore does: run against the fake and against NATS."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from kit.jetstream import Nats
from services.ingest.adapters.jetstream.dead_letters import NatsDeadLetterStore
from services.ingest.documents.models import DeadLetter, Failure
from services.ingest.metrics import Metrics
from services.ingest.ports import DeadLetterStore
from tests.unit.ingest.fakes import FakeDeadLetterStore

NOW = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
LETTER = DeadLetter(
    tenant_id="local",
    revision_id="ab" * 16,
    revision_number=3,
    document_id="cd" * 16,
    collection_id="default",
    document_name="naïve ☕.txt",
    failure=Failure("WORKER_DIED", "reading this file ended the worker 5 times"),
    stage="embed",
    failures=1,
    deaths=5,
    first_failed_at=NOW,
    last_failed_at=NOW,
)


@pytest.fixture
async def nats_store(jetstream: Nats) -> DeadLetterStore:
    return await NatsDeadLetterStore.open(jetstream, Metrics(CollectorRegistry()))


@pytest.fixture(params=["fake", "nats"])
def store(request: pytest.FixtureRequest) -> DeadLetterStore:
    return FakeDeadLetterStore() if request.param == "fake" else request.getfixturevalue("nats_store")


async def listed(store: DeadLetterStore, *where: str) -> set[str]:
    return {letter.revision_id async for letter in store.all_of(*where)}


async def test_letter_comes_back_as_it_was_written(store: DeadLetterStore) -> None:
    await store.put(LETTER)
    assert await store.get("local", LETTER.revision_id) == LETTER
    requeued = replace(LETTER, requeued_at=NOW)
    await store.put(requeued)
    assert await store.get("local", LETTER.revision_id) == requeued
    assert await listed(store, "local") == {LETTER.revision_id}


async def test_letters_are_found_by_tenant_and_collection(store: DeadLetterStore) -> None:
    assert await listed(store, "*") == set()
    theirs = replace(LETTER, tenant_id="rival", revision_id="01" * 16)
    papers = replace(LETTER, collection_id="papers", revision_id="02" * 16)
    for letter in (LETTER, theirs, papers):
        await store.put(letter)
    assert await listed(store, "local") == {LETTER.revision_id, papers.revision_id}
    assert await listed(store, "local", "papers") == {papers.revision_id}
    assert await listed(store, "*") == {LETTER.revision_id, theirs.revision_id, papers.revision_id}
    assert await store.get("local", theirs.revision_id) is None


async def test_deleted_letter_is_gone_and_deleting_it_again_is_harmless(store: DeadLetterStore) -> None:
    await store.put(LETTER)
    await store.delete(LETTER)
    await store.delete(LETTER)
    assert await store.get("local", LETTER.revision_id) is None
    assert await listed(store, "local") == set()
