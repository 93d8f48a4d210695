"""Nothing that is uploaded may hurt the worker: each bad file goes through the real child and ends with a reason that helps whoever
sent it, or with what could be read of it."""

import io
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.ingest.errors import DocumentRejected
from services.ingest.reading.detection import detect_media_type
from services.ingest.reading.models import PrepareRequest
from services.ingest.reading.parsers.registry import check_readable
from services.ingest.reading.pool.children import ParserPool
from tests.unit.ingest.malformed import bad_files
from tests.unit.ingest.malformed.case import WORDS, BadFile
from tests.unit.ingest.malformed.good import good_files
from tests.unit.ingest.reading_files import ReadFile, read_by

TIME_LIMIT_S = 30.0
MEMORY_LIMIT_BYTES = 1024**3
WINDOW_TOKENS = 256
_CASES = bad_files()
_PYTHON = re.compile(r"\b\w+(Error|Exception)\b|Traceback|object at 0x|<class")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool() -> AsyncIterator[ParserPool]:
    """One pool for all files, as in a worker: what one of them leaves behind, the next one meets."""
    made = ParserPool(size=1, time_limit_s=TIME_LIMIT_S, memory_limit_bytes=MEMORY_LIMIT_BYTES)
    yield made
    await made.close()


async def _read(pool: ParserPool, path: Path, name: str) -> ReadFile | DocumentRejected:
    try:
        media_type = detect_media_type(io.BytesIO(path.read_bytes()), name)  # noqa: ASYNC240 - one file at a time
        check_readable(media_type, name)
        return await read_by(pool, PrepareRequest(str(path), media_type, name, "", WINDOW_TOKENS))
    except DocumentRejected as rejected:
        return rejected


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
async def test_bad_file_is_refused_with_a_reason_or_read_in_part(
    pool: ParserPool, tmp_path: Path, case: BadFile
) -> None:
    path = tmp_path / "spooled"
    path.write_bytes(case.make())
    outcome = await _read(pool, path, case.name)
    if isinstance(outcome, DocumentRejected):
        assert outcome.reason == case.reason or not (case.reason or case.keeps), outcome
        assert outcome.reason not in ("PARSE_FAILED", "PARSE_CRASHED", "PARSE_TIMEOUT", "PARSE_TOO_LARGE"), outcome
        assert case.name in outcome.message
        assert not _PYTHON.search(outcome.message), outcome.message
    else:
        assert case.keeps or not case.reason, "was read although it should have been refused"
        text = " ".join(" ".join(chunk.text.split()) for chunk in outcome.chunks)
        assert case.keeps in text
        assert all(chunk.token_count <= WINDOW_TOKENS for chunk in outcome.chunks)
        assert not any(
            "\ud800" <= char <= "\udfff" or char == "\0" for chunk in outcome.chunks for char in chunk.embedded_text
        )


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", good_files())
async def test_good_file_is_read_after_all_the_bad_ones(pool: ParserPool, tmp_path: Path, name: str) -> None:
    path = tmp_path / "spooled"
    path.write_bytes(good_files()[name])
    outcome = await _read(pool, path, name)
    assert isinstance(outcome, ReadFile)
    assert any(WORDS in chunk.text for chunk in outcome.chunks)
    assert not outcome.file.warnings


def test_corpus_is_large_and_its_names_are_unique() -> None:
    names = [case.name for case in _CASES]
    assert len(names) >= 150
    assert len(names) == len(set(names))
