"""Runs the parser in child processes: a few, started when first needed, kept while they behave, killed when they do not."""

import asyncio
import contextlib
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path

import structlog

from kit.errors import Unavailable
from services.ingest.adapters.parser_lanes import ParserLanes
from services.ingest.documents.spool import Scratch
from services.ingest.errors import DocumentRejected
from services.ingest.models import PreparedFile
from services.ingest.reading.child import wire
from services.ingest.reading.child.failures import too_large
from services.ingest.reading.child.prepare import PrepareRequest
from services.ingest.reading.recognition import OcrLimits
from services.ingest.work.put_aside import ChunkLines

_log = structlog.get_logger()
_LINE_LIMIT_BYTES = 16 * 1024 * 1024
_UNFINISHED = {"PARSE_TIMEOUT", "PARSE_CRASHED", "PARSE_TOO_LARGE", "TOO_MANY_CHUNKS"}
"""Reasons after which a child is dead or has not said all that it had to say."""
_PROCESSOR_SHARE = 2
"""Seconds of computing for a second of waiting: recognising text in images uses several cores."""


class ParserPool:
    """At most `size` children, and one for small files while large ones keep those busy. A file has `time_limit_s` and
    `memory_limit_bytes`."""

    def __init__(
        self,
        *,
        size: int,
        time_limit_s: float,
        memory_limit_bytes: int,
        max_chunks: int = 100_000,
        ocr: OcrLimits | None = None,
        recycle_after: int = 200,
    ) -> None:
        self._lanes = ParserLanes(size)
        self._time_limit_s = time_limit_s
        self._memory_limit_bytes = memory_limit_bytes
        self._max_chunks = max_chunks
        self._ocr = ocr or OcrLimits()
        self._recycle_after = recycle_after
        self._idle: list[tuple[Process, int]] = []
        self._all: set[Process] = set()

    async def prepare(self, request: PrepareRequest, on_stage: Callable[[str], None], scratch: Scratch) -> PreparedFile:
        """Chunks of a file, put aside into `scratch`. Raises DocumentRejected, also for a file that crashes the parser or takes it
        too long, and SpoolFull."""
        chunks = ChunkLines(scratch, limit=self._max_chunks, name=request.name)
        size_bytes = (await asyncio.to_thread(Path(request.path).stat)).st_size
        async with self._child(size_bytes) as child:
            try:
                async with asyncio.timeout(self._time_limit_s) as limit:
                    return await _converse(child, request, lambda stage: self._went_on(stage, limit, on_stage), chunks)
            except TimeoutError as error:
                raise DocumentRejected(
                    "PARSE_TIMEOUT",
                    f"{request.name} could not be read within {self._time_limit_s:.0f} seconds; split it or simplify it",
                ) from error
            except (asyncio.IncompleteReadError, ConnectionError, ValueError) as error:
                raise await _died(child, request) from error

    def _went_on(self, stage: str, limit: asyncio.Timeout, on_stage: Callable[[str], None]) -> None:
        """Each page that is read from its picture gets the file's time anew: the child counts what recognition may take."""
        if stage == "ocr":
            limit.reschedule(asyncio.get_running_loop().time() + self._time_limit_s)
        on_stage(stage)

    async def close(self) -> None:
        """Kills all children and waits for their end."""
        for child in list(self._all):
            await self._kill(child)

    @contextlib.asynccontextmanager
    async def _child(self, size_bytes: int) -> AsyncIterator[Process]:
        async with self._lanes.hold(size_bytes):
            child, used = await self._take()
            healthy = False
            try:
                try:
                    yield child
                except DocumentRejected as error:
                    healthy = error.reason not in _UNFINISHED
                    raise
                healthy = True
            finally:
                if healthy and used + 1 < self._recycle_after and child.returncode is None:
                    self._idle.append((child, used + 1))
                else:
                    await asyncio.shield(self._kill(child))

    async def _take(self) -> tuple[Process, int]:
        while self._idle:
            child, used = self._idle.pop()
            if child.returncode is None:
                return child, used
            self._all.discard(child)
        try:
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "services.ingest.reading.child",
                str(self._memory_limit_bytes),
                str(_PROCESSOR_SHARE * self._time_limit_s + self._ocr.threads * self._ocr.time_limit_s),
                json.dumps(asdict(self._ocr)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                limit=_LINE_LIMIT_BYTES,
            )
        except OSError as error:
            raise Unavailable(f"the parser cannot be started: {error}", reason="PARSER_UNAVAILABLE") from error
        self._all.add(child)
        return child, 0

    async def _kill(self, child: Process) -> None:
        self._all.discard(child)
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
        await child.wait()


async def _converse(
    child: Process, request: PrepareRequest, on_stage: Callable[[str], None], chunks: ChunkLines
) -> PreparedFile:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(wire.encode_request(request))
    await child.stdin.drain()
    while True:
        line = await child.stdout.readline()
        if not line.endswith(b"\n"):
            raise asyncio.IncompleteReadError(line, None)
        if wire.is_chunk(line):
            await chunks.append(line)
            continue
        answer = json.loads(line)
        if "stage" in answer:
            on_stage(answer["stage"])
        elif "rejected" in answer:
            if answer["detail"]:
                _log.warning("parser_failed", detail=answer["detail"], media_type=request.media_type)
            raise DocumentRejected(*answer["rejected"])
        else:
            return wire.decode_done(answer["done"], chunks)


async def _died(child: Process, request: PrepareRequest) -> Exception:
    try:
        async with asyncio.timeout(2):
            code = await child.wait()
    except TimeoutError:
        code = None
    _log.warning("parser_child_died", exit_code=code, media_type=request.media_type)
    if code in (-signal.SIGTERM, -signal.SIGINT):
        return Unavailable("the parser was told to stop", reason="PARSER_STOPPED")
    if code == -signal.SIGKILL:  # the kernel's answer to too much memory
        return DocumentRejected("PARSE_TOO_LARGE", too_large(request.name))
    if code == -signal.SIGXCPU:
        return DocumentRejected("PARSE_TIMEOUT", f"{request.name} takes too long to be read; split it or simplify it")
    return DocumentRejected(
        "PARSE_CRASHED",
        f"{request.name} made the parser crash: the file is probably damaged; save it again and upload that",
    )
