"""What every DocumentStore does: run against the fake and against NATS."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from kit.errors import Aborted, AlreadyExists
from kit.jetstream import Nats
from services.ingest.adapters.jetstream.stores import NatsDocumentStore
from services.ingest.documents.models import Content, Document, Failure, Report, Revision, Status
from services.ingest.metrics import Metrics
from services.ingest.ports import DocumentStore
from tests.unit.ingest.fakes import FakeDocumentStore

NOW = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
async def nats_store(jetstream: Nats) -> DocumentStore:
    return await NatsDocumentStore.open(jetstream, Metrics(CollectorRegistry()))


@pytest.fixture(params=["fake", "nats"])
def store(request: pytest.FixtureRequest) -> DocumentStore:
    return FakeDocumentStore() if request.param == "fake" else request.getfixturevalue("nats_store")


def document(document_id: str = "aa" * 16, tenant_id: str = "local") -> Document:
    content = Content("cd" * 32, 12, "text/plain")
    return Document(
        tenant_id,
        document_id,
        "default",
        "naïve ☕.txt",
        created_at=NOW,
        updated_at=NOW,
        status=Status.QUEUED,
        content=content,
        revision_count=2,
        metadata={"year": "2024"},
        pending=Revision("r2", 2, content),
        active=Revision("r1", 1, content),
        error=Failure("PDF_BROKEN", "broken"),
        report=Report(page_count=4, page_statuses=("text", "empty", "failed", "ocr"), warnings=("page 2 has no text",)),
    )


async def test_record_comes_back_as_it_was_written(store: DocumentStore) -> None:
    made = await store.create(document())
    found = await store.get("local", document().document_id)
    assert found == made
    assert found is not None
    assert found.document == document()


async def test_unknown_record_is_none(store: DocumentStore) -> None:
    assert await store.get("local", "ff" * 16) is None


async def test_creating_twice_is_refused(store: DocumentStore) -> None:
    await store.create(document())
    with pytest.raises(AlreadyExists):
        await store.create(document())


async def test_update_with_a_stale_version_is_refused(store: DocumentStore) -> None:
    made = await store.create(document())
    second = await store.update(replace(made.document, stage="embed"), made.version)
    with pytest.raises(Aborted):
        await store.update(replace(made.document, stage="parse"), made.version)
    assert await store.get("local", made.document.document_id) == second


async def test_records_of_other_tenants_are_not_listed(store: DocumentStore) -> None:
    mine = await store.create(document("aa" * 16, "local"))
    other = await store.create(document("bb" * 16, "local-2"))
    assert [each async for each in store.all_of("local")] == [mine]
    assert {each.version async for each in store.all_of("*")} == {mine.version, other.version}


async def test_purged_record_is_gone_and_its_id_free(store: DocumentStore) -> None:
    made = await store.create(document())
    await store.purge("local", made.document.document_id)
    assert await store.get("local", made.document.document_id) is None
    assert [each async for each in store.all_of("local")] == []
    await store.create(document())


async def test_watch_sends_what_is_there_then_none_then_changes(store: DocumentStore) -> None:
    made = await store.create(document())
    changes = store.watch("local")
    assert await anext(changes) == made
    assert await anext(changes) is None
    changed = await store.update(replace(made.document, stage="embed"), made.version)
    assert await anext(changes) == changed
    await changes.aclose()


async def test_first_to_claim_a_name_keeps_it(store: DocumentStore) -> None:
    place = ("local", "default", "a name with spaces * > .txt")
    assert await store.claim_name(*place, "a1") == "a1"
    assert await store.claim_name(*place, "b2") == "a1"
    assert await store.claim_name("local", "other", place[2], "b2") == "b2"


async def test_name_passes_once_from_its_owner(store: DocumentStore) -> None:
    place = ("local", "default", "a.txt")
    await store.claim_name(*place, "a1")
    assert await store.pass_name(*place, "a1", "b2") == "b2"
    assert await store.pass_name(*place, "a1", "c3") == "b2"


async def claims(store: DocumentStore) -> list[tuple[str, str]]:
    return sorted([(claim.tenant_id, claim.document_id) async for claim in store.claims()])


async def test_name_is_released_by_its_owner_only(store: DocumentStore) -> None:
    place = ("local", "default", "a.txt")
    await store.claim_name(*place, "a1")
    await store.release_name(*place, "b2")
    assert await claims(store) == [("local", "a1")]
    await store.release_name(*place, "a1")
    await store.release_name(*place, "a1")
    assert await claims(store) == []
    assert await store.claim_name(*place, "b2") == "b2"


async def test_claim_that_was_read_is_dropped_unless_the_name_passed_on(store: DocumentStore) -> None:
    place, other = ("local", "default", "a.txt"), ("rival", "default", "a.txt")
    await store.claim_name(*place, "a1")
    await store.claim_name(*other, "b2")
    read = {claim.document_id: claim async for claim in store.claims()}
    assert {claim.claimed_at.tzinfo for claim in read.values()} == {UTC}
    await store.pass_name(*place, "a1", "c3")
    for claim in read.values():
        await store.drop_claim(claim)
    assert await claims(store) == [("local", "c3")]


async def test_readable_records_count_none_as_unreadable(store: DocumentStore) -> None:
    await store.create(document())
    assert [each async for each in store.all_of("*")]
    assert store.unreadable == 0


async def test_changes_since_a_version_are_those_written_after_it_once_each(store: DocumentStore) -> None:
    async def changed(version: int) -> list[tuple[str, int]]:
        return [(stored.document.document_id, stored.version) async for stored in store.changed_since(version)]

    assert await changed(0) == []
    first = await store.create(document("aa" * 16))
    second = await store.create(document("bb" * 16, "rival"))
    assert await changed(0) == [("aa" * 16, first.version), ("bb" * 16, second.version)]
    assert await changed(second.version) == []
    for _ in range(3):
        first = await store.update(first.document, first.version)
    assert await changed(second.version) == [("aa" * 16, first.version)]
    await store.purge("rival", "bb" * 16)
    assert await changed(first.version) == []
