"""How long it takes until searches are answered again after a restart, and after one of the two indexes was lost; how long a backup
with indexes and its restore take; and what so many chunks take of memory and disk."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.corpus import SampleDocument, make_documents, make_queries
from bench.filling import COLLECTION, fill
from bench.report import Figure, Part
from bench.uploading import Ingested, ingest
from evals.system import RunningSystem, running_system
from evals.tables import Table

SIZES = (10_000, 100_000)
_UPLOADED = "uploaded"
_ANSWERED_WITHIN_S = 3600.0
_COMMAND_TIMEOUT_S = 600.0
_POLL_S = 0.1
_LEXICAL = "lexical"
READ_AGAIN = 2_000
"""Chunks of the store whose files are read and embedded again: that takes as long as ingestion, in proportion to their number."""
_WORDS_PER_CHUNK, _DOCUMENT_CHUNKS = 270, 16
"""Of ingestion's documents, as the multilingual model cuts them."""


@dataclass(frozen=True)
class Measured:
    """One size."""

    chunks: int
    memory_mib: float
    """Resident, of the retriever, after some searches."""
    disk_mib: float
    """Both indexes."""
    backup_mib: float
    seconds: dict[str, float]


def measure() -> Part:
    """All sizes, one after the other."""
    again = _read_again(READ_AGAIN)
    found = [_measured(chunks) for chunks in SIZES]
    return Part(
        title="Recovery",
        about=(
            "A store that was filled through `IndexChunks`, without files and records. A restart, and the loss of an index, are "
            "over when searches over both indexes answer without `degraded`. Where both indexes are lost, as after the restore of "
            "a backup without them, all documents are read and embedded again, beginning a minute after the start: that was "
            "measured from the start on, with files that were uploaded."
        ),
        figures=tuple(
            Figure(f"{name} at {each.chunks:,} chunks, s".replace(",", " "), f"{seconds:.1f}")
            for each in found
            for name, seconds in each.seconds.items()
        ),
        tables=(
            Table(
                ("chunks", "ingestion", "restored without indexes, from the start until all is searched"),
                [(str(again.chunks), f"{again.ingested_s:.0f} s", f"{again.recovered_s:.0f} s")],
            ),
            Table(
                (
                    "chunks",
                    "memory of the retriever, MiB",
                    "indexes on disk, MiB",
                    "backup with indexes, MiB",
                    *found[0].seconds,
                ),
                [
                    (
                        f"{each.chunks:,}".replace(",", " "),
                        f"{each.memory_mib:.0f}",
                        f"{each.disk_mib:.0f}",
                        f"{each.backup_mib:.0f}",
                        *(f"{seconds:.1f} s" for seconds in each.seconds.values()),
                    )
                    for each in found
                ],
            ),
        ),
    )


@dataclass(frozen=True)
class ReadAgain:
    """A store that was ingested, and restored from a backup without its indexes."""

    chunks: int
    ingested_s: float
    recovered_s: float


def _read_again(chunks: int) -> ReadAgain:
    with _folder() as folder:
        data, backup, other = folder / "data", folder / "backup.tar", folder / "restored"
        documents = make_documents(3, chunks // _DOCUMENT_CHUNKS, chunks * _WORDS_PER_CHUNK)
        with running_system(data) as system:
            ingested = asyncio.run(_ingested(system, documents))
        _timed(data, "backup", str(backup), "--anyway")
        _timed(other, "restore", str(backup))
        return ReadAgain(ingested.chunks, ingested.seconds, _until_answered(other, _UPLOADED))


async def _ingested(system: RunningSystem, documents: Sequence[SampleDocument]) -> Ingested:
    async with system.http() as client:
        return await ingest(client, _UPLOADED, documents)


def _measured(chunks: int) -> Measured:
    with _folder() as folder:
        data, backup, other = folder / "data", folder / "backup.tar", folder / "restored"
        with running_system(data) as system:
            asyncio.run(_filled(system, chunks))
            asyncio.run(_answers(system))
            memory_mib = _resident_mib(system)
        seconds = {"restart": _until_answered(data)}
        seconds["backup"] = _timed(data, "backup", str(backup), "--indexes", "--anyway")
        seconds["restore"] = _timed(other, "restore", str(backup))
        disk_mib = _size_mib(data / "retriever")
        shutil.rmtree(data / "retriever" / _LEXICAL)
        seconds["lexical index lost"] = _until_answered(data)
        return Measured(chunks, memory_mib, disk_mib, backup.stat().st_size / 1024**2, seconds)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="groundwork-recovery-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


async def _filled(system: RunningSystem, chunks: int) -> None:
    async with system.channel("retriever") as retriever, system.channel("reranker") as reranker:
        await fill(retriever, reranker, chunks)


def _until_answered(data: Path, collection_id: str = COLLECTION) -> float:
    began = time.perf_counter()
    with running_system(data) as system:
        asyncio.run(_answers(system, collection_id))
        return time.perf_counter() - began


async def _answers(system: RunningSystem, collection_id: str = COLLECTION) -> None:
    """Until a search finds something with both engines and is not degraded."""
    queries = make_queries(2, 5)
    async with asyncio.timeout(_ANSWERED_WITHIN_S), system.http() as client:
        while True:
            whole = 0
            for query in queries:
                body = {"query": query, "collection_ids": [collection_id], "rerank": "off", "strategy": "hybrid"}
                answer = await client.post("/v1/search", json=body)
                whole += answer.is_success and bool(answer.json()["hits"]) and not answer.json()["degraded"]
            if whole == len(queries):
                return
            await asyncio.sleep(_POLL_S)


def _timed(data: Path, *words: str) -> float:
    """Seconds that a command took on a data directory."""
    environment = {**os.environ, "GROUNDWORK_DATA_DIR": str(data)}
    command = [str(Path(sys.executable).with_name("groundwork")), *words]
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, timeout=_COMMAND_TIMEOUT_S, capture_output=True)
    return time.perf_counter() - began


def _resident_mib(system: RunningSystem) -> float:
    return float(psutil.Process(system.services()["retriever"]["pid"]).memory_info().rss) / 1024**2


def _size_mib(folder: Path) -> float:
    return sum(each.stat().st_blocks * 512 for each in folder.rglob("*") if each.is_file()) / 1024**2
