"""A parsing child whose parser has a hole: it runs its file as Python code. All else is the real thing: the worker's pool, the
server, the confinement."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from services.ingest.errors import DocumentRejected
from services.ingest.reading.models import PrepareRequest
from services.ingest.reading.pool.children import ParserPool
from services.ingest.reading.pool.server import ParserLimits, ParserServer
from services.ingest.reading.recognition import OcrLimits
from tests.unit.ingest.reading_files import read_by

_PROGRAM = """
import json, sys

if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    from services.ingest.errors import DocumentRejected
    from services.ingest.reading.child import reader, server
    from services.ingest.reading.recognition import OcrLimits

    def run(request, say, *_):
        names = {"say": say, "result": None}
        with open(request.path) as file:
            exec(file.read(), names)
        raise DocumentRejected("RAN", json.dumps(names["result"]))

    reader.prepare = run
    from services.ingest.reading.child import landlock, seccomp
    if "@without@" == "files":
        landlock.version = lambda: 0
    elif "@without@" == "calls":
        seccomp.architecture = lambda: None
    limits = json.loads(sys.argv[2])
    server.main(limits["memory_limit_bytes"], limits["processor_limit_s"], OcrLimits(**limits["ocr"]))
"""


class CodeParser:
    """Runs code in parsing children."""

    def __init__(self, pool: ParserPool, server: ParserServer, folder: Path) -> None:
        self.pool = pool
        self.server = server
        self._folder = folder

    def path_of(self, tenant_id: str) -> Path:
        """Where a tenant's code lies while it is run."""
        return self._folder / f"{tenant_id}.py"

    async def run(self, code: str, tenant_id: str = "acme", on_stage: Callable[[str], None] = lambda _: None) -> str:
        """JSON of what the code left in `result`."""
        path = self.path_of(tenant_id)
        path.write_text(code)
        request = PrepareRequest(str(path), "text/plain", "code.py", "", 64)
        try:
            await read_by(self.pool, request, on_stage, tenant_id=tenant_id)
        except DocumentRejected as rejected:
            if rejected.reason != "RAN":
                raise
            return rejected.message
        raise AssertionError("the parser gives no document")


@asynccontextmanager
async def code_parser(
    folder: Path,
    *,
    memory_limit_bytes: int = 2 * 1024**3,
    turn_s: float = 60.0,
    time_limit_s: float = 60.0,
    without: str = "",
) -> AsyncIterator[CodeParser]:
    """`without` "files" is a kernel without Landlock, "calls" one without seccomp."""
    program = folder / "program.py"
    program.write_text(_PROGRAM.replace("@without@", without))
    server = ParserServer(ParserLimits(memory_limit_bytes, 60.0, OcrLimits()), program)
    pool = ParserPool(
        size=1, time_limit_s=time_limit_s, memory_limit_bytes=memory_limit_bytes, turn_s=turn_s, server=server
    )
    try:
        await pool.start()
        yield CodeParser(pool, server, folder)
    finally:
        await pool.close()
