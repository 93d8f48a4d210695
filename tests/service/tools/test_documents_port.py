"""What tools rely on in documents: the fake and the adapter over a real ingest service keep the same promises. And what the adapter
does about an ingest service that is busy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from groundwork.ingest.v1 import ingest_pb2 as pb
from groundwork.ingest.v1 import ingest_pb2_grpc

from kit.errors import Aborted
from kit.testing.harness import open_test_channel, running_servicer
from services.tools.adapters.services.ingest import IngestDocuments
from services.tools.documents import CollectionMissing, DocumentState
from services.tools.errors import ToolError
from services.tools.ports import Documents
from tests.service.ingest.conftest import System
from tests.unit.tools.document_fakes import FakeDocuments


@pytest.fixture(params=["fake", "ingest"])
async def documents(request: pytest.FixtureRequest, system: System) -> AsyncIterator[Documents]:
    if request.param == "fake":
        yield FakeDocuments()
        return
    async with system.worker(), open_test_channel(system.api_address) as channel:
        yield IngestDocuments(channel)


async def test_a_text_settles_and_is_listed_with_its_chunks(documents: Documents) -> None:
    kept = await documents.keep("default", "a.md", "Some text.", call_key="1")
    settled = await documents.settled(kept.document_id, timeout_s=60)
    assert settled is not None
    assert (settled.state, settled.name, settled.collection_id) == (DocumentState.READY, "a.md", "default")
    assert settled.chunk_count > 0
    page = await documents.page("default", page_size=10)
    assert ([each.document_id for each in page.documents], page.next_page_token) == ([kept.document_id], "")


async def test_the_same_key_answers_with_the_same_document_and_the_same_name_replaces(documents: Documents) -> None:
    first = await documents.keep("default", "a.md", "Old.", call_key="1")
    second = await documents.keep("default", "a.md", "New.", call_key="2")
    again = await documents.keep("default", "a.md", "Old.", call_key="1")
    assert len({first.document_id, second.document_id, again.document_id}) == 1
    other = await documents.keep("default", "b.md", "New.", call_key="3")
    assert other.document_id != first.document_id


async def test_pages_follow_each_other(documents: Documents) -> None:
    kept = {(await documents.keep("default", f"{n}.md", "Text.", call_key=str(n))).document_id for n in range(3)}
    first = await documents.page("default", page_size=2)
    rest = await documents.page("default", page_size=2, page_token=first.next_page_token)
    assert {each.document_id for each in (*first.documents, *rest.documents)} == kept
    assert (len(first.documents), len(rest.documents), rest.next_page_token) == (2, 1, "")


async def test_what_is_deleted_is_gone_and_deleting_it_again_says_so(documents: Documents) -> None:
    kept = await documents.keep("default", "a.md", "Some text.", call_key="1")
    assert await documents.delete(kept.document_id)
    assert await documents.get(kept.document_id) is None
    assert await documents.settled(kept.document_id, timeout_s=0) is None
    assert (await documents.page("default", page_size=10)).documents == []
    assert not await documents.delete("ab" * 16)


async def test_a_collection_is_there_once_it_is_made(documents: Documents) -> None:
    with pytest.raises(CollectionMissing):
        await documents.keep("notes", "a.md", "Some text.", call_key="1")
    with pytest.raises(CollectionMissing):
        await documents.page("notes", page_size=1)
    for _ in range(2):
        await documents.create_collection("notes")
    assert await documents.collection_ids() == ["default", "notes"]
    assert (await documents.keep("notes", "a.md", "Some text.", call_key="1")).collection_id == "notes"


class BusyIngest(ingest_pb2_grpc.IngestServiceServicer):
    """Has the first upload in hand for a while, and reads slowly."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.headers: list[pb.UploadHeader] = []
        self.looks = 0

    async def UploadDocument(self, request_iterator: Any, context: Any) -> pb.UploadDocumentResponse:
        parts = [part async for part in request_iterator]
        self.headers.append(parts[0].header)
        if len(self.headers) <= self.refusals:
            raise Aborted("it is in hand", reason="IDEMPOTENCY_KEY_IN_FLIGHT", retry_after_s=7.0)
        return pb.UploadDocumentResponse(document=pb.Document(document_id="d1", status=pb.DOCUMENT_STATUS_QUEUED))

    async def GetDocument(self, request: pb.GetDocumentRequest, context: Any) -> pb.GetDocumentResponse:
        self.looks += 1
        status = pb.DOCUMENT_STATUS_READY if self.looks == 3 else pb.DOCUMENT_STATUS_PROCESSING
        return pb.GetDocumentResponse(document=pb.Document(document_id=request.document_id, status=status))


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)


@pytest.mark.parametrize("refusals", [2, 3])
async def test_an_upload_that_is_in_hand_is_asked_for_again_a_few_times(refusals: int) -> None:
    ingest, time = BusyIngest(refusals), Time()
    add = ingest_pb2_grpc.add_IngestServiceServicer_to_server
    async with running_servicer(add, ingest) as address, open_test_channel(address) as channel:
        documents = IngestDocuments(channel, clock=lambda: time.now, sleep=time.sleep)
        if refusals == 3:
            with pytest.raises(ToolError, match="in hand"):
                await documents.keep("notes", "a.md", "Some text.", call_key="1")
        else:
            assert (await documents.keep("notes", "a.md", "Some text.", call_key="1")).document_id == "d1"
    assert time.slept == [7.0, 7.0]
    assert [header.idempotency_key for header in ingest.headers] == ["1", "1", "1"]


@pytest.mark.parametrize(("timeout_s", "state"), [(60.0, DocumentState.READY), (0.3, DocumentState.PROCESSING)])
async def test_a_document_is_looked_at_until_it_is_settled_or_the_time_is_up(
    timeout_s: float, state: DocumentState
) -> None:
    ingest, time = BusyIngest(0), Time()
    if state is DocumentState.PROCESSING:
        ingest.looks = 10
    add = ingest_pb2_grpc.add_IngestServiceServicer_to_server
    async with running_servicer(add, ingest) as address, open_test_channel(address) as channel:
        documents = IngestDocuments(channel, clock=lambda: time.now, sleep=time.sleep)
        settled = await documents.settled("d1", timeout_s=timeout_s)
    assert settled is not None
    assert settled.state is state
    assert time.slept == [0.25, 0.25]
