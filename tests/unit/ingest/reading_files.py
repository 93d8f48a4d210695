"""Reading a file with a pool of parsing children, as the worker does."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from services.ingest.reading.models import Chunk, PreparedFile, PrepareRequest
from services.ingest.reading.pool.children import ParserPool
from services.ingest.spool import ScratchFile


@dataclass(frozen=True)
class ReadFile:
    """What came of it, and the chunks that were put aside."""

    file: PreparedFile
    chunks: tuple[Chunk, ...]


async def read_by(
    pool: ParserPool,
    request: PrepareRequest,
    on_stage: Callable[[str], None] = lambda _: None,
    *,
    tenant_id: str = "acme",
) -> ReadFile:
    """Raises DocumentRejected."""
    with closing(ScratchFile(Path(request.path).parent)) as scratch:
        file = await pool.prepare(tenant_id, request, on_stage, scratch)
        return ReadFile(file, tuple(await file.chunks.read(0, len(file.chunks))))
