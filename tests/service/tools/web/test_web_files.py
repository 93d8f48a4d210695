"""Files of the web, read by the ingest worker's own readers in their sandbox, over real connections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path

import pytest
from groundwork.ingest.v1 import reading_pb2_grpc

from kit.testing.harness import free_port, open_test_channel, running_servicer
from kit.testing.pdf_files import pdf_of
from services.ingest.reading.pool.children import ParserPool
from services.ingest.reading.unkept.files import UnkeptFiles
from services.ingest.reading.unkept.handlers import ReadingServicer
from services.ingest.spool import Spool
from services.tools.adapters.services.ingest import IngestFileReader
from services.tools.web import files as web_files
from tests.service.tools.http_server import Asked, HttpServer, http_server
from tests.service.tools.web.reading import web_box
from tests.unit.ingest.office_files import docx_of, paragraph, xlsx_of

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
FEES = pdf_of(
    [["Fees of the harbour", "A boat of up to ten metres pays 42 euros a night."], ["In winter it is closed."]]
)


@pytest.fixture
async def files(tmp_path: Path) -> AsyncIterator[IngestFileReader]:
    pool = ParserPool(size=1, time_limit_s=20.0, memory_limit_bytes=2 * 1024**3)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(pool.close)
        servicer = ReadingServicer(UnkeptFiles(pool, stack.enter_context(Spool.own(tmp_path))))
        add = reading_pb2_grpc.add_ReadingServiceServicer_to_server
        address = await stack.enter_async_context(running_servicer(add, servicer))
        yield IngestFileReader(await stack.enter_async_context(open_test_channel(address)))


def serving(data: bytes, content_type: str) -> HttpServer:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(data)}\r\n\r\n"

    def answer(asked: Asked) -> bytes:
        return b"HTTP/1.1 404 Not Found\r\n\r\n" if asked.target == "/robots.txt" else head.encode() + data

    return HttpServer(answer)


async def test_pdf_is_read_as_passages_of_its_pages(files: IngestFileReader) -> None:
    async with http_server(serving(FEES, PDF)) as server:
        box = web_box([server.port], files=files)
        outcome = await box.call("web_fetch", {"url": server.url("/2026/fees")})
        on = await box.call("web_fetch", {"url": server.url("/2026/fees"), "from_passage": 1})
    assert outcome.ok, outcome.error_message
    fees, winter = outcome.passages
    assert "42 euros a night" in fees.text
    assert (winter.text, winter.hit.chunk.page) == ("In winter it is closed.", 2)
    assert fees.document_name.endswith("(127.0.0.1)")
    assert fees.hit.chunk.metadata["url"] == server.url("/2026/fees")
    assert datetime.fromisoformat(fees.hit.chunk.metadata["read_at"]).tzinfo is not None
    assert [passage.chunk_id for passage in on.passages] == [winter.chunk_id]


@pytest.mark.parametrize(
    ("data", "content_type", "path", "says"),
    [
        (docx_of(paragraph("Dogs are welcome on the jetty.")), DOCX, "/rules", "Dogs are welcome on the jetty."),
        (xlsx_of([["Berth", "Fee"], ["A 1", "42"]]), "application/octet-stream", "/fees.xlsx?v=2", "A 1"),
        (FEES, "binary/octet-stream", "/download", "42 euros"),
    ],
    ids=["docx", "xlsx by its name", "pdf by its first bytes"],
)
async def test_files_are_told_by_type_name_or_bytes(
    files: IngestFileReader, data: bytes, content_type: str, path: str, says: str
) -> None:
    async with http_server(serving(data, content_type)) as server:
        outcome = await web_box([server.port], files=files).call("web_fetch", {"url": server.url(path)})
    assert outcome.ok, outcome.error_message
    assert says in " ".join(passage.text for passage in outcome.passages)


@pytest.mark.parametrize(
    ("data", "content_type", "reason"),
    [
        (FEES[:300], PDF, "PDF_BROKEN"),
        (pdf_of([[]]), PDF, "NO_TEXT"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "application/msword", "UNSUPPORTED_TYPE"),
        (b"", PDF, "EMPTY_FILE"),
    ],
)
async def test_file_that_cannot_be_read_says_why(
    files: IngestFileReader, data: bytes, content_type: str, reason: str
) -> None:
    async with http_server(serving(data, content_type)) as server:
        outcome = await web_box([server.port], files=files).call("web_fetch", {"url": server.url("/fees")})
    assert outcome.error_reason == reason
    assert "fees" in outcome.error_message


async def test_file_beyond_the_bound_is_refused_and_not_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_files, "FILE_BYTES_MAX", len(FEES) - 1)
    async with http_server(serving(FEES, PDF)) as server:
        outcome = await web_box([server.port]).call("web_fetch", {"url": server.url("/fees.pdf")})
    assert outcome.error_reason == "WEB_FILE_TOO_LARGE"
    assert "upload it as a document" in outcome.error_message


async def test_reader_that_does_not_answer_is_said() -> None:
    async with (
        open_test_channel(f"127.0.0.1:{free_port()}", patience_s=0.1) as channel,
        http_server(serving(FEES, PDF)) as server,
    ):
        box = web_box([server.port], files=IngestFileReader(channel))
        outcome = await box.call("web_fetch", {"url": server.url("/fees.pdf")})
    assert outcome.error_reason == "SERVICE_UNAVAILABLE"
    assert "the reader of files does not answer" in outcome.error_message
