"""A scanner for viruses decides before a file is stored: over a real socket, with clamd's protocol."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.ingest.adapters.clamd import ClamdScanner
from services.ingest.adapters.jetstream.encoding import document_message
from services.ingest.documents.models import Status
from services.ingest.errors import FileInfected, ScannerAway
from tests.doubles.clamd import EICAR, Clamd
from tests.unit.ingest.world import World

TIMEOUT_S = 60.0


@asynccontextmanager
async def listening(clamd: Clamd) -> AsyncIterator[ClamdScanner]:
    server = await asyncio.start_server(clamd.serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield ClamdScanner(f"{host}:{port}", TIMEOUT_S)


async def test_infected_file_is_refused_before_it_is_stored_and_others_are_taken(tmp_path: Path) -> None:
    clamd = Clamd()
    async with listening(clamd) as scanner:
        world = World(tmp_path, scanner=scanner)
        with pytest.raises(FileInfected, match="Eicar-Test-Signature"):
            await world.upload(EICAR, name="invoice.txt")
        assert (world.files.files, world.store.records, world.jobs.jobs) == ({}, {}, {})
        document = await world.ingest(await world.upload("hello" * 100_000))
    assert document.status is Status.READY
    assert not document_message(document).report.warnings
    assert clamd.scanned[1] == b"hello" * 100_000


async def test_scanner_by_a_unix_socket(tmp_path: Path) -> None:
    async with await asyncio.start_unix_server(Clamd().serve, tmp_path / "clamd.ctl"):
        world = World(tmp_path, scanner=ClamdScanner(f"unix:{tmp_path / 'clamd.ctl'}", TIMEOUT_S))
        with pytest.raises(FileInfected):
            await world.upload(EICAR)


@pytest.mark.parametrize("trouble", ["nobody listens", "it hangs up", "the file is too large for it"])
@pytest.mark.parametrize("takes_unscanned", [False, True])
async def test_file_that_cannot_be_scanned_is_refused_or_flagged_by_setting(
    tmp_path: Path, trouble: str, *, takes_unscanned: bool
) -> None:
    clamd = Clamd(size_max=100)
    clamd.is_silent = trouble == "it hangs up"
    content = "hello" * (200_000 if "large" in trouble else 1)
    async with listening(clamd) as listening_one:
        scanner = ClamdScanner("127.0.0.1:1", TIMEOUT_S) if trouble == "nobody listens" else listening_one
        world = World(tmp_path, scanner=scanner, takes_unscanned=takes_unscanned)
        if not takes_unscanned:
            with pytest.raises(ScannerAway) as refused:
                await world.upload(content)
            assert refused.value.retryable
            assert world.files.files == {}
            return
        document = await world.ingest(await world.upload(content))
    (warning,) = document_message(document).report.warnings
    assert "did not look into this file" in warning
