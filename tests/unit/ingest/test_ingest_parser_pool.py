"""The parsing child: what it gives back, and that its death is nobody else's."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.ingest.adapters import parser_pool
from services.ingest.adapters.fasttext_languages import FastTextLanguages
from services.ingest.adapters.parser_pool import ParserPool
from services.ingest.errors import DocumentRejected
from services.ingest.reading.child.prepare import PrepareRequest, prepare
from services.ingest.reading.chunks.languages import languages_of
from services.ingest.reading.chunks.tokens import EstimatedTokens
from tests.unit.ingest.pdf_files import pdf_of
from tests.unit.ingest.reading_files import read_by
from tests.unit.ingest.recognizers import bytes_of, picture_of


@pytest.fixture
async def pool() -> AsyncIterator[ParserPool]:
    made = ParserPool(size=1, time_limit_s=20.0, memory_limit_bytes=2 * 1024**3)
    yield made
    await made.close()


@pytest.fixture
def request_for(tmp_path: Path):  # type: ignore[no-untyped-def]
    def made(data: bytes, name: str, media_type: str) -> PrepareRequest:
        path = tmp_path / "file"
        path.write_bytes(data)
        return PrepareRequest(str(path), media_type, name, "", 64)

    return made


async def test_child_gives_the_same_as_the_function(pool: ParserPool, request_for) -> None:  # type: ignore[no-untyped-def]
    request = request_for(
        pdf_of([["Hello world.", "This is page one."], [], ["Page three (here)."]]), "a.pdf", "application/pdf"
    )
    stages: list[str] = []
    there = await read_by(pool, request, stages.append)
    here = prepare(request, lambda _: None, EstimatedTokens(), detector=FastTextLanguages())
    assert there.chunks == here.chunks
    assert (there.file.page_statuses, there.file.chunker) == (("text", "empty", "text"), "pages")
    assert there.file.token_count == sum(chunk.token_count for chunk in here.chunks)
    assert there.file.languages == languages_of(here.chunks)
    assert stages == ["parse", "clean", "chunk"]


async def test_rejection_comes_back_and_the_child_is_used_again(pool: ParserPool, request_for) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DocumentRejected, match="damaged"):
        await read_by(pool, request_for(b"%PDF-", "a.pdf", "application/pdf"))
    (child,) = pool._all
    await read_by(pool, request_for(b"hello", "a.txt", "text/plain"))
    assert pool._all == {child}


async def test_crashed_child_rejects_its_file_and_the_next_file_gets_a_new_one(
    pool: ParserPool, request_for, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    await read_by(pool, request_for(b"hello", "a.txt", "text/plain"))
    (child,) = pool._all

    def dies(stage: str) -> None:
        child.send_signal(11)

    with pytest.raises(DocumentRejected) as rejected:
        await read_by(pool, request_for(b"word " * 500_000, "b.txt", "text/plain"), dies)
    assert rejected.value.reason == "PARSE_CRASHED"
    assert (await read_by(pool, request_for(b"hello", "c.txt", "text/plain"))).chunks


async def test_file_that_takes_too_long_is_rejected(request_for) -> None:  # type: ignore[no-untyped-def]
    pool = ParserPool(size=1, time_limit_s=0.01, memory_limit_bytes=2 * 1024**3)
    try:
        with pytest.raises(DocumentRejected) as rejected:
            await read_by(pool, request_for(b"hello", "slow.txt", "text/plain"))
        assert rejected.value.reason == "PARSE_TIMEOUT"
        assert pool._all == set()
    finally:
        await pool.close()


async def test_file_that_needs_too_much_memory_is_rejected(request_for) -> None:  # type: ignore[no-untyped-def]
    pool = ParserPool(size=1, time_limit_s=20.0, memory_limit_bytes=300 * 1024**2)
    try:
        with pytest.raises(DocumentRejected) as rejected:
            await read_by(pool, request_for(b"a b c d e f. " * 4_000_000, "big.txt", "text/plain"))
        assert rejected.value.reason == "PARSE_TOO_LARGE"
    finally:
        await pool.close()


async def test_file_with_too_many_chunks_is_rejected_and_its_child_is_not_used_again(request_for) -> None:  # type: ignore[no-untyped-def]
    pool = ParserPool(size=1, time_limit_s=60.0, memory_limit_bytes=2 * 1024**3, max_chunks=10)
    try:
        with pytest.raises(DocumentRejected, match="10 passages; split it") as rejected:
            await read_by(pool, request_for(b"A sentence of some words. " * 2000, "long.txt", "text/plain"))
        assert rejected.value.reason == "TOO_MANY_CHUNKS"
        assert pool._all == set()
        assert len((await read_by(pool, request_for(b"hello", "c.txt", "text/plain"))).chunks) == 1
    finally:
        await pool.close()


async def test_cancelled_caller_leaves_no_child_at_work(pool: ParserPool, request_for) -> None:  # type: ignore[no-untyped-def]
    began = asyncio.Event()
    request = request_for(b"word " * 2_000_000, "b.txt", "text/plain")
    task = asyncio.create_task(read_by(pool, request, lambda _: began.set()))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert pool._all == set()


async def test_child_reads_a_scan_within_its_memory_and_tells_of_each_page(request_for) -> None:  # type: ignore[no-untyped-def]
    pool = ParserPool(size=1, time_limit_s=60.0, memory_limit_bytes=4 * 1024**3)
    try:
        pages = [
            picture_of(["The ferry leaves at seven"], size=(640, 160)),
            picture_of(["and at nine"], size=(640, 160)),
        ]
        request = request_for(
            bytes_of(pages[0], "TIFF", save_all=True, append_images=pages[1:]), "a.tiff", "image/tiff"
        )
        stages: list[str] = []
        document = await read_by(pool, request, stages.append)
        assert [chunk.text for chunk in document.chunks] == ["The ferry leaves at seven", "and at nine"]
        assert document.chunks[0].boxes[0].page == 1
        assert document.file.page_statuses == ("ocr", "ocr")
        assert stages == ["parse", "ocr", "ocr", "clean", "chunk"]
        assert set(document.file.stage_seconds) == {"parse", "ocr", "clean", "chunk"}
    finally:
        await pool.close()


async def test_each_recognised_page_gets_the_time_limit_anew() -> None:
    pool = ParserPool(size=1, time_limit_s=30.0, memory_limit_bytes=2 * 1024**3)
    seen: list[str] = []
    async with asyncio.timeout(1.0) as limit:
        await asyncio.sleep(0)
        before = limit.when()
        pool._went_on("parse", limit, seen.append)
        assert limit.when() == before
        pool._went_on("ocr", limit, seen.append)
        assert limit.when() > before + 20  # type: ignore[operator]
    assert seen == ["parse", "ocr"]


def test_limit_of_a_line_holds_the_largest_chunk() -> None:
    assert parser_pool._LINE_LIMIT_BYTES > 512 * 16 * 4 * 10
