"""The ingest API and worker over the real wire."""

import asyncio
import hashlib
from typing import Any

import pytest
from groundwork.common.v1 import common_pb2
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc

from kit.access.principal import Principal
from kit.errors import (
    AlreadyExists,
    DataLoss,
    FailedPrecondition,
    GroundworkError,
    InvalidArgument,
    NotFound,
)
from kit.testing.harness import open_test_channel
from tests.service.ingest.conftest import TIMEOUT_S, System

READY, FAILED, QUEUED = (
    ingest_pb2.DOCUMENT_STATUS_READY,
    ingest_pb2.DOCUMENT_STATUS_FAILED,
    ingest_pb2.DOCUMENT_STATUS_QUEUED,
)
MARKDOWN = "\n\n".join(
    ["# Handbook"]
    + [f"## Part {n}\n\nPart {n} is about subject {n}. It has {n} rules. Each of them is short." for n in range(30)]
).encode()


async def test_uploaded_document_becomes_ready_and_searchable(system: System) -> None:
    queued = await system.upload(MARKDOWN, "handbook.md", metadata={"team": "blue"})
    assert (queued.status, queued.media_type) == (QUEUED, "text/markdown")
    assert queued.sha256 == hashlib.sha256(MARKDOWN).hexdigest()
    async with system.worker():
        done = await system.until(queued.document_id, READY, FAILED)
    assert done.status == READY, done.error
    assert done.revision_id
    assert done.report.chunker == "headings"
    assert done.report.slowest_stage
    assert done.report.attempts == 1
    chunks = system.retriever.searchable(done.document_id)
    assert len(chunks) == done.report.chunk_count > 5
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
    assert all(chunk.embedded_text.startswith("Handbook") and chunk.text in chunk.embedded_text for chunk in chunks)
    assert all(chunk.metadata == {"team": "blue"} and chunk.document_name == "handbook.md" for chunk in chunks)
    assert all(0 < chunk.token_count <= 128 for chunk in chunks)
    assert system.retriever.tenants == {"local"}


async def test_chunks_and_document_say_their_languages(system: System) -> None:
    german = "Der Vertrag endet am Ende des Jahres, wenn ihn keine der Parteien verlängert. " * 60
    russian = "Договор заканчивается в конце года, если его не продлит одна из сторон. " * 20
    async with system.worker():
        queued = await system.upload(f"{german}\n\n{russian}".encode(), "vertrag.txt")
        done = await system.until(queued.document_id, READY, FAILED)
    assert list(done.report.languages) == system.retriever.languages[done.document_id] == ["de", "ru"]
    languages = [chunk.language for chunk in system.retriever.searchable(done.document_id)]
    assert languages == sorted(languages)
    assert set(languages) == {"de", "ru"}


async def test_same_file_name_in_two_folders_makes_two_documents_that_are_cited_with_their_folders(
    system: System,
) -> None:
    async with system.worker():
        queued = [await system.upload(f"About {folder}.".encode(), f"{folder}/README.md") for folder in ("a", "b")]
        done = [await system.until(each.document_id, READY, FAILED) for each in queued]
    assert [(each.status, each.name, each.media_type) for each in done] == [
        (READY, "a/README.md", "text/markdown"),
        (READY, "b/README.md", "text/markdown"),
    ]
    cited = [chunk.document_name for each in done for chunk in system.retriever.searchable(each.document_id)]
    assert cited == ["a/README.md", "b/README.md"]


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"", "empty.pdf", "EMPTY_FILE"),
        (b"PK\x03\x04 and so on", "letter.docx", "FILE_DAMAGED"),
        (b"PK\x03\x04 and so on", "letters.zip", "UNSUPPORTED_TYPE"),
        (bytes(range(256)) * 4, "random.bin", "UNSUPPORTED_TYPE"),
        (b"%PDF-1.3\nThis is not a valid PDF file\n%%EOF", "invalid.pdf", "PDF_BROKEN"),
        (b"<html><body><script>var words;</script></body></html>", "page.html", "NO_TEXT"),
    ],
)
async def test_file_that_cannot_be_read_is_accepted_and_fails_with_its_reason(
    system: System, data: bytes, name: str, reason: str
) -> None:
    async with system.worker():
        queued = await system.upload(data, name)
        done = await system.until(queued.document_id, READY, FAILED)
    assert (done.status, done.error.reason) == (FAILED, reason)
    assert name in done.error.message
    assert system.retriever.index_calls == 0


async def test_killed_worker_is_taken_over_by_another_which_makes_the_same_revision(system: System) -> None:
    system.reranker.gate.clear()
    queued = await system.upload(MARKDOWN, "handbook.md")
    async with system.worker():
        await asyncio.wait_for(system.reranker.reached.wait(), TIMEOUT_S)
    system.reranker.gate.set()
    async with system.worker():
        done = await system.until(queued.document_id, READY, FAILED)
    assert done.status == READY
    assert list(system.retriever.revisions) == [(done.document_id, done.revision_id)]
    assert done.report.attempts == 2


async def test_two_workers_share_the_queue_without_doubling(system: System) -> None:
    async with system.worker(), system.worker():
        queued = [await system.upload(MARKDOWN + str(n).encode(), f"{n}.md") for n in range(6)]
        done = [await system.until(document.document_id, READY, FAILED) for document in queued]
    assert {document.status for document in done} == {READY}
    assert system.retriever.index_calls == 6
    assert len(system.retriever.revisions) == 6


async def test_backpressure_of_the_model_server_costs_no_delivery(system: System) -> None:
    system.reranker.refusals = 5
    async with system.worker():
        queued = await system.upload(MARKDOWN, "handbook.md")
        done = await system.until(queued.document_id, READY, FAILED)
    assert (done.status, done.report.attempts) == (READY, 1)


async def test_document_deleted_while_it_is_embedded_never_appears(system: System) -> None:
    system.reranker.gate.clear()
    async with system.worker():
        queued = await system.upload(MARKDOWN, "handbook.md")
        await asyncio.wait_for(system.reranker.reached.wait(), TIMEOUT_S)
        await system.stub.DeleteDocument(
            ingest_pb2.DeleteDocumentRequest(document_id=queued.document_id), timeout=TIMEOUT_S
        )
        system.reranker.gate.set()
        other = await system.upload(b"Another document altogether.", "other.txt")
        await system.until(other.document_id, READY)
    assert system.retriever.searchable(queued.document_id) == []
    with pytest.raises(NotFound) as raised:
        await system.stub.GetDocument(ingest_pb2.GetDocumentRequest(document_id=queued.document_id), timeout=TIMEOUT_S)
    assert raised.value.reason == "DOCUMENT_NOT_FOUND"


async def test_reindex_makes_a_second_revision(system: System) -> None:
    async with system.worker():
        queued = await system.upload(MARKDOWN, "handbook.md")
        first = await system.until(queued.document_id, READY)
        again = await system.stub.Reindex(ingest_pb2.ReindexRequest(document_id=first.document_id), timeout=TIMEOUT_S)
        assert again.document.revision_id == first.revision_id
        second = await system.until(first.document_id, READY)
    assert second.revision_id != first.revision_id
    assert system.retriever.active[first.document_id] == (2, second.revision_id)


async def test_download_returns_the_bytes_as_uploaded(system: System) -> None:
    data = bytes(range(256)) * 4096
    queued = await system.upload(data, "data.bin")
    request = ingest_pb2.DownloadDocumentRequest(document_id=queued.document_id)
    parts = [part async for part in system.stub.DownloadDocument(request, timeout=TIMEOUT_S)]
    assert parts[0].document == queued
    assert b"".join(part.data for part in parts[1:]) == data


async def test_large_upload_is_refused_with_its_limit(system: System) -> None:
    with pytest.raises(InvalidArgument) as raised:
        await system.upload(b"x" * (6 * 1024 * 1024), "large.txt")
    assert raised.value.reason == "FILE_TOO_LARGE"
    assert raised.value.metadata["limit_bytes"] == str(5 * 1024 * 1024)


async def test_damaged_upload_is_refused(system: System) -> None:
    with pytest.raises(DataLoss) as raised:
        await system.upload(b"hello", "a.txt", sha256="0" * 64)
    assert raised.value.reason == "UPLOAD_CORRUPT"


async def test_text_is_read_in_the_encoding_that_its_upload_names(system: System) -> None:
    text = "Łódź"
    queued = await system.upload(text.encode("cp852"), "a.txt", encoding="CP852")
    assert queued.media_type == "text/plain; charset=cp852"
    async with system.worker():
        done = await system.until(queued.document_id, READY, FAILED)
    assert done.status == READY, done.error
    assert [chunk.text for chunk in system.retriever.searchable(done.document_id)] == [text]
    with pytest.raises(InvalidArgument, match="name one as iso-8859-2"):
        await system.upload(b"words", "b.txt", encoding="latin-99")


async def test_upload_without_header_is_refused(system: System) -> None:
    with pytest.raises(InvalidArgument, match="begins with its header"):
        await system.stub.UploadDocument(iter([ingest_pb2.UploadDocumentRequest(data=b"x")]), timeout=TIMEOUT_S)


@pytest.mark.parametrize(
    ("end", "reason"),
    [([], "UPLOAD_INCOMPLETE"), ([ingest_pb2.UploadEnd(size_bytes=6)], "UPLOAD_CORRUPT")],
    ids=["sender died", "bytes lost"],
)
async def test_file_that_did_not_come_whole_is_refused(
    system: System, end: list[ingest_pb2.UploadEnd], reason: str
) -> None:
    header = ingest_pb2.UploadHeader(collection_id="default", name="a.txt")
    parts = [ingest_pb2.UploadDocumentRequest(header=header), ingest_pb2.UploadDocumentRequest(data=b"hello")]
    parts += [ingest_pb2.UploadDocumentRequest(end=each) for each in end]
    with pytest.raises(GroundworkError) as raised:
        await system.stub.UploadDocument(iter(parts), timeout=TIMEOUT_S)
    assert raised.value.reason == reason
    listed = await system.stub.ListDocuments(
        ingest_pb2.ListDocumentsRequest(collection_id="default"), timeout=TIMEOUT_S
    )
    assert not listed.documents


async def test_listing_is_the_tenants_own(system: System) -> None:
    mine = await system.upload(b"hello", "a.txt")
    request = ingest_pb2.ListDocumentsRequest(collection_id="default", page=common_pb2.PageRequest(page_size=1))
    listed = await system.stub.ListDocuments(request, timeout=TIMEOUT_S)
    assert (list(listed.documents), listed.next_page_token) == ([mine], "")
    async with open_test_channel(system.api_address, Principal("other", "someone")) as channel:
        stub: Any = ingest_pb2_grpc.IngestServiceStub(channel)
        assert not (await stub.ListDocuments(request, timeout=TIMEOUT_S)).documents
        with pytest.raises(NotFound):
            await stub.GetDocument(ingest_pb2.GetDocumentRequest(document_id=mine.document_id), timeout=TIMEOUT_S)


async def test_collections_are_made_listed_and_removed(system: System) -> None:
    made = await system.stub.CreateCollection(
        ingest_pb2.CreateCollectionRequest(name="Annual Reports"), timeout=TIMEOUT_S
    )
    assert made.collection.collection_id == "annual-reports"
    with pytest.raises(AlreadyExists):
        await system.stub.CreateCollection(
            ingest_pb2.CreateCollectionRequest(collection_id="annual-reports"), timeout=TIMEOUT_S
        )
    listed = await system.stub.ListCollections(ingest_pb2.ListCollectionsRequest(), timeout=TIMEOUT_S)
    assert [each.collection_id for each in listed.collections] == ["annual-reports", "default"]
    remove = ingest_pb2.DeleteCollectionRequest(collection_id="annual-reports")
    assert (await system.stub.DeleteCollection(remove, timeout=TIMEOUT_S)).cleared
    with pytest.raises(NotFound):
        await system.stub.GetCollection(
            ingest_pb2.GetCollectionRequest(collection_id="annual-reports"), timeout=TIMEOUT_S
        )
    with pytest.raises(FailedPrecondition):
        await system.stub.DeleteCollection(
            ingest_pb2.DeleteCollectionRequest(collection_id="default"), timeout=TIMEOUT_S
        )
