"""The parsing child: what it gives back, and that its death is nobody else's."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kit.errors import Unavailable
from kit.language.detection import FastTextLanguages
from kit.testing.pdf_files import pdf_of
from services.ingest.errors import DocumentRejected
from services.ingest.reading.child.prepare import prepare
from services.ingest.reading.chunks.languages import languages_of
from services.ingest.reading.chunks.tokens import EstimatedTokens
from services.ingest.reading.models import PrepareRequest
from services.ingest.reading.pool import children, server
from services.ingest.reading.pool.children import ParserPool
from services.ingest.reading.pool.server import ParserLimits, ParserServer
from services.ingest.reading.recognition import OcrLimits
from tests.unit.ingest.code_parser import code_parser
from tests.unit.ingest.pdf_files import form_of, shown
from tests.unit.ingest.reading_files import read_by
from tests.unit.ingest.recognizers import bytes_of, picture_of
from tests.unit.ingest.world import MeteredShares


@pytest.fixture
async def pool() -> AsyncIterator[ParserPool]:
    made = ParserPool(size=1, time_limit_s=20.0, memory_limit_bytes=2 * 1024**3)
    yield made
    await made.close()


@pytest.fixture
def request_for(tmp_path: Path):  # type: ignore[no-untyped-def]
    def made(data: bytes, name: str, media_type: str) -> PrepareRequest:
        path = tmp_path / f"file of {name}"
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


async def test_child_reads_the_fields_of_a_form_in_its_sandbox(pool: ParserPool, request_for) -> None:  # type: ignore[no-untyped-def]
    form = form_of(shown("Name of the guest", 72, 700), {"name": ("Anna Berg", 200, 696)})
    found = await read_by(pool, request_for(form, "a.pdf", "application/pdf"))
    assert [chunk.text for chunk in found.chunks] == ["Name of the guest Anna Berg"]


async def test_rejection_comes_back_and_the_child_is_used_again(pool: ParserPool, request_for) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DocumentRejected, match="damaged"):
        await read_by(pool, request_for(b"%PDF-", "a.pdf", "application/pdf"))
    (child,) = pool._all
    await read_by(pool, request_for(b"hello", "a.txt", "text/plain"))
    assert pool._all == {child}


async def test_file_that_takes_too_long_is_rejected(tmp_path: Path) -> None:
    async with code_parser(tmp_path, time_limit_s=0.2) as parser:
        with pytest.raises(DocumentRejected) as rejected:
            await parser.run("while True: pass")
        assert rejected.value.reason == "PARSE_TIMEOUT"
        assert parser.pool._all == set()


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


SPEAKS = """
import os, time
for fd in range(3, 20):
    try:
        os.write(fd, {line!r})
    except OSError:
        pass
time.sleep(3600)
"""


@pytest.mark.parametrize(
    "line", [b"no answer\n", b"7\n", b'{"done": 5}\n', b'{"done": NaN}\n'], ids=["words", "number", "type", "nan"]
)
async def test_child_that_says_what_is_no_answer_and_goes_on_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    monkeypatch.setattr(children, "_ENDING_TIMEOUT_S", 0.2)
    async with code_parser(tmp_path) as parser:
        with pytest.raises(DocumentRejected) as rejected:
            await parser.run(SPEAKS.format(line=line))
        assert rejected.value.reason == "PARSE_CRASHED"
        assert await parser.run("result = 1") == "1"


async def test_file_is_copied_for_its_reader_when_there_is_memory_for_it(request_for) -> None:  # type: ignore[no-untyped-def]
    memory = MeteredShares(4 * 1024**2, 2 * 1024**2)
    pool = ParserPool(size=1, time_limit_s=60.0, memory_limit_bytes=2 * 1024**3, memory=memory)
    size_bytes = 1_500_000
    stages: list[str] = []
    try:
        async with memory.hold("acme", "book", 2 * 1024**2), memory.hold("acme", "other book", 2 * 1024**2):
            request = request_for(b"word " * (size_bytes // 5), "a.txt", "text/plain")
            reading = asyncio.create_task(read_by(pool, request, stages.append))
            while not memory.waiting:
                await asyncio.sleep(0)
            assert stages == []
            assert memory.most == 4 * 1024**2
        assert (await reading).chunks
        assert memory.most == 4 * 1024**2
        assert memory.held == 0
    finally:
        await pool.close()


async def test_file_that_waits_for_memory_keeps_no_other_waiting(request_for) -> None:  # type: ignore[no-untyped-def]
    memory = MeteredShares(4 * 1024**2, 2 * 1024**2)
    pool = ParserPool(size=1, time_limit_s=60.0, memory_limit_bytes=2 * 1024**3, memory=memory, turn_s=0.05)
    large = request_for(b"word " * 300_000, "large.txt", "text/plain")
    note = request_for(b"A word.", "note.txt", "text/plain")
    try:
        # As while a scanned book is read for an hour.
        async with pool._lanes.hold("acme", 2 * 1024**2), memory.hold(*children._COPIES, 2 * 1024**2):
            reading = asyncio.create_task(read_by(pool, large))
            while not any(kind == "again" for _, kind in pool._lanes._waiting):  # its turn is over
                await asyncio.sleep(0)
            pool._turn_s = 60.0
            assert (await read_by(pool, note)).chunks
            assert not reading.done()
        assert (await reading).chunks
        assert memory.held == 0
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


@pytest.mark.skipif(sys.platform != "linux", reason="other systems need no copy")
async def test_cancelled_caller_leaves_no_copy_of_its_file(  # type: ignore[no-untyped-def]
    pool: ParserPool, request_for, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying, gate = threading.Event(), threading.Event()
    copies: list[int] = []

    def copy(_: Path, to: int) -> None:
        copies.append(to)
        copying.set()
        assert gate.wait(30)

    monkeypatch.setattr(children, "_copy", copy)
    task = asyncio.create_task(read_by(pool, request_for(b"word " * 200_000, "b.txt", "text/plain")))
    await asyncio.to_thread(copying.wait, 30)
    task.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(copies[0])


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


async def test_each_recognised_page_gets_the_time_limit_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[float | None] = []
    reschedule = asyncio.Timeout.reschedule
    async with code_parser(tmp_path) as parser:
        await parser.run("say('parse')")
        monkeypatch.setattr(
            asyncio.Timeout, "reschedule", lambda self, when: moved.append(when) or reschedule(self, when)
        )
        await parser.run("say('parse')")
        usual = len(moved)  # the block that a limit is for sets it, too
        await parser.run("say('ocr')\nsay('ocr')\nsay('parse')")
    assert len(moved) == usual + usual + 2


async def test_file_whose_turn_is_over_is_read_anew_in_a_place_to_stay_in(tmp_path: Path) -> None:
    """Two files that take longer than a turn, and one place to stay in: the second is stopped and begun again."""
    begun: list[str] = []
    first_begun, second_begun = asyncio.Event(), asyncio.Event()
    code = "say(str(__import__('os').getpid()))\nwhile True: pass"

    async with code_parser(tmp_path, turn_s=0.2) as parser:
        first = asyncio.create_task(parser.run(code, "acme", lambda pid: (begun.append(pid), first_begun.set())))
        await first_begun.wait()
        second = asyncio.create_task(parser.run(code, "other", lambda pid: (begun.append(pid), second_begun.set())))
        await second_begun.wait()
        second_begun.clear()
        while len(parser.pool._lanes._waiting) == 0:  # its turn is over, and it waits
            await asyncio.sleep(0.01)
        note = await parser.run("result = 'read'", "third")
        assert note == '"read"', "the place for first turns is free again"
        first.cancel()
        await second_begun.wait()
        assert len(set(begun)) == 3, "in a fresh child"
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)


def test_limit_of_a_line_holds_the_largest_chunk() -> None:
    assert server._LINE_LIMIT_BYTES > 512 * 16 * 4 * 10


async def test_server_that_cannot_start_makes_files_wait_and_says_why(tmp_path: Path, request_for) -> None:  # type: ignore[no-untyped-def]
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('there is no parser here')")
    server = ParserServer(ParserLimits(2 * 1024**3, 60.0, OcrLimits()), broken)
    pool = ParserPool(size=1, time_limit_s=20.0, memory_limit_bytes=2 * 1024**3, server=server)
    await pool.start()
    with pytest.raises(Unavailable, match="there is no parser here"):
        await read_by(pool, request_for(b"hello", "a.txt", "text/plain"))
    await pool.close()


_STARTED_ON_UVLOOP = """
import asyncio, os, sys, time, uvloop
from services.ingest.reading.pool.server import ParserLimits, ParserServer
from services.ingest.reading.recognition import OcrLimits

async def main():
    server = ParserServer(ParserLimits(2 * 1024**3, 60.0, OcrLimits()))
    await server.start()
    await server.close()
    print("started")

os.register_at_fork(after_in_child=lambda: time.sleep(3600))
uvloop.run(main())
"""


def test_start_runs_nothing_in_a_copy_of_the_worker_which_may_wait_there_forever() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STARTED_ON_UVLOOP], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.endswith("started\n"), done.stderr


async def test_child_reads_a_text_in_an_encoding_that_it_has_to_guess(pool: ParserPool, request_for) -> None:  # type: ignore[no-untyped-def]
    text = "Gdzie stoi żółta łódź? Łódź stoi przy nabrzeżu, obok magazynu."
    read = await read_by(pool, request_for(text.encode("iso8859_2"), "a.txt", "text/plain"))
    assert [chunk.text for chunk in read.chunks] == [text]
