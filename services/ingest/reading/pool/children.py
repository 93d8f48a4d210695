"""Runs the parser in child processes: a few, each for one tenant, kept while they behave, killed when they do not."""

import asyncio
import contextlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from kit.errors import Unavailable
from services.ingest.errors import DocumentRejected
from services.ingest.fairness import FairShares
from services.ingest.ports import Scratch
from services.ingest.reading.models import PreparedFile, PrepareRequest
from services.ingest.reading.pool.chunk_lines import ChunkLines
from services.ingest.reading.pool.deaths import Cause, cause_of, machine_kills, verdict
from services.ingest.reading.pool.lanes import SMALL_BYTES, ParserLanes, Place
from services.ingest.reading.pool.server import ChildEnded, Ending, ParserChild, ParserLimits, ParserServer
from services.ingest.reading.recognition import OcrLimits
from services.ingest.spool import off_loop_if_large

_log = structlog.get_logger()
_PROCESSOR_SHARE = 2
"""Seconds of computing for a second of waiting: recognising text in images uses several cores."""
_COPIES = ("", "files that are read")
"""All count as one document, so that a scan which is read for an hour never takes what is for chunks and vectors."""
_UNCOUNTED_BYTES = 2**62
_ENDING_TIMEOUT_S = 5.0
"""A child that has hung up is dead within a moment."""
_UNFINISHED = ("PARSE_TIMEOUT", "PARSE_TOO_LARGE", "TOO_MANY_CHUNKS")
"""Reasons after which a child is dead or has not said all that it had to say."""


@dataclass(eq=False)
class _Kept:
    """A child and whose it is."""

    child: ParserChild
    tenant_id: str
    tokenizer_path: str
    file_count: int = 0


class _TurnOver(Exception):
    """The file has to wait for a place to stay in."""


class _Died(Exception):
    def __init__(self, cause: Cause) -> None:
        super().__init__(cause)
        self.cause = cause


class ParserPool:
    """At most `size` children, and one for first turns while files that take long keep those busy. A file has `time_limit_s` and
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
        turn_s: float = 5.0,
        server: ParserServer | None = None,
        memory: FairShares | None = None,
        usual_encoding: str = "",
    ) -> None:
        """`memory`: what the copies are counted in that children read; they wait until there is room. `usual_encoding`: of texts
        that do not say theirs; "" to guess."""
        self._usual_encoding = usual_encoding
        self._lanes = ParserLanes(size)
        self._memory = memory or FairShares(_UNCOUNTED_BYTES, _UNCOUNTED_BYTES)
        self._child_limit = size + 1
        self._time_limit_s = time_limit_s
        self._memory_limit_bytes = memory_limit_bytes
        self._max_chunks = max_chunks
        self._recycle_after = recycle_after
        self._turn_s = turn_s
        ocr = ocr or OcrLimits()
        processor_limit_s = _PROCESSOR_SHARE * time_limit_s + ocr.threads * ocr.time_limit_s
        self._server = server or ParserServer(ParserLimits(memory_limit_bytes, processor_limit_s, ocr))
        self._idle: list[_Kept] = []
        self._all: set[_Kept] = set()

    async def start(self) -> None:
        """Starts the children's server ahead of the first file and logs what confines them. Where it cannot, files say so."""
        try:
            await self._server.start()
        except Unavailable as error:
            _log.warning("parser_not_started", error=error.message)

    async def prepare(
        self, tenant_id: str, request: PrepareRequest, on_stage: Callable[[str], None], scratch: Scratch
    ) -> PreparedFile:
        """Chunks of a tenant's file, put aside into `scratch`. Raises DocumentRejected, also for a file that crashes the parser
        twice or takes it too long, SpoolFull, and Unavailable for what is the machine's fault."""
        request = replace(request, usual_encoding=self._usual_encoding)
        deaths: Counter[Cause] = Counter()
        had_turn = False
        while True:
            try:
                return await self._try(tenant_id, request, on_stage, scratch, had_turn=had_turn)
            except _TurnOver:
                had_turn = True
            except _Died as death:
                deaths[death.cause] += 1
                if death.cause.is_final or deaths[death.cause] > 1:
                    raise verdict(death.cause, request.name) from death

    async def close(self) -> None:
        """Kills all children and waits for their end."""
        for kept in list(self._all):
            await self._end(kept)
        await self._server.close()

    async def _try(
        self,
        tenant_id: str,
        request: PrepareRequest,
        on_stage: Callable[[str], None],
        scratch: Scratch,
        *,
        had_turn: bool,
    ) -> PreparedFile:
        chunks = ChunkLines(scratch, limit=self._max_chunks, name=request.name)
        size_bytes = Path(request.path).stat().st_size  # noqa: ASYNC240 - it was just written
        async with (
            self._lanes.hold(tenant_id, size_bytes, had_turn=had_turn) as place,
            self._room(place, size_bytes),
            self._child(tenant_id, request.tokenizer_path) as child,
            _nameless(Path(request.path), size_bytes) as file,
        ):
            kills = machine_kills()
            try:
                return await self._converse(child, request, file, on_stage, place, chunks)
            except ChildEnded as error:
                ending = await _ending_of(child)
                if ending is None:  # it lives, and does not say what it should: it will be killed
                    cause = Cause.CRASH
                else:
                    cause = cause_of(ending, self._memory_limit_bytes, machine_killed=machine_kills() > kills)
                _log.warning(
                    "parser_child_died",
                    cause=cause.value,
                    exit_code=ending.exit_code if ending else None,
                    media_type=request.media_type,
                )
                raise _Died(cause) from error

    @contextlib.asynccontextmanager
    async def _room(self, place: Place, size_bytes: int) -> AsyncIterator[None]:
        """Holds the memory that a copy of the file takes. Small files do not wait for it: there are no more of them than places.
        A file that waits in the place for first turns leaves when its turn is over, as one that is read there does."""
        if size_bytes <= SMALL_BYTES:
            yield
            return
        loop = asyncio.get_running_loop()

        def end_turn() -> None:
            if not place.end_turn():
                limit.reschedule(loop.time())

        limit = asyncio.timeout(None)
        timer = loop.call_later(self._turn_s, end_turn)
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with limit:
                    await stack.enter_async_context(self._memory.hold(*_COPIES, size_bytes))
            except TimeoutError as error:
                raise _TurnOver from error
            finally:
                timer.cancel()
            yield

    async def _converse(
        self,
        child: ParserChild,
        request: PrepareRequest,
        file: int,
        on_stage: Callable[[str], None],
        place: Place,
        chunks: ChunkLines,
    ) -> PreparedFile:
        """Closes `file`."""
        loop = asyncio.get_running_loop()
        is_over = False

        def end_turn() -> None:
            nonlocal is_over
            if not place.end_turn():
                is_over = True
                limit.reschedule(loop.time())

        def went_on(stage: str) -> None:
            """Each page that is read from its picture gets the file's time anew: the child counts what recognition may take."""
            if stage == "ocr" and not is_over:
                limit.reschedule(loop.time() + self._time_limit_s)
            on_stage(stage)

        limit = asyncio.timeout(self._time_limit_s)
        timer = loop.call_later(self._turn_s, end_turn)
        try:
            async with limit:
                return await child.prepare(request, file, went_on, chunks)
        except TimeoutError as error:
            raise _TurnOver if is_over else verdict(Cause.TIME_LIMIT, request.name) from error
        finally:
            timer.cancel()

    @contextlib.asynccontextmanager
    async def _child(self, tenant_id: str, tokenizer_path: str) -> AsyncIterator[ParserChild]:
        """A child that has read no other tenant's file."""
        kept = await self._take(tenant_id, tokenizer_path)
        is_healthy = False
        try:
            try:
                yield kept.child
            except DocumentRejected as error:
                is_healthy = error.reason not in _UNFINISHED
                raise
            is_healthy = True
        finally:
            kept.file_count += 1
            if is_healthy and kept.file_count < self._recycle_after and kept.child.is_alive:
                self._idle.append(kept)
            else:
                await asyncio.shield(self._end(kept))

    async def _take(self, tenant_id: str, tokenizer_path: str) -> _Kept:
        for kept in reversed(self._idle):
            if (kept.tenant_id, kept.tokenizer_path) == (tenant_id, tokenizer_path) and kept.child.is_alive:
                self._idle.remove(kept)
                return kept
        while self._idle and len(self._all) >= self._child_limit:
            await self._end(self._idle.pop(0))
        kept = _Kept(await self._server.fork(tokenizer_path), tenant_id, tokenizer_path)
        self._all.add(kept)
        return kept

    async def _end(self, kept: _Kept) -> None:
        if kept in self._all:
            self._all.discard(kept)
            await kept.child.end()


async def _ending_of(child: ParserChild) -> Ending | None:
    """How a child that broke off has ended; None when it goes on."""
    try:
        async with asyncio.timeout(_ENDING_TIMEOUT_S):
            return await child.wait()
    except TimeoutError:
        return None


@contextlib.asynccontextmanager
async def _nameless(path: Path, size_bytes: int) -> AsyncIterator[int]:
    """An open copy in memory, that is all its reader can get at: Linux lets a process open a file that it holds anew, but not under
    the name that the file has in a folder that is closed to it."""
    is_copied = sys.platform == "linux"
    file = os.memfd_create("document", os.MFD_CLOEXEC) if is_copied else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if is_copied:
            await off_loop_if_large(size_bytes, _copy, path, file)
        yield file
    finally:
        os.close(file)


def _copy(path: Path, to: int) -> None:
    with path.open("rb") as source, open(to, "wb", closefd=False) as target:
        shutil.copyfileobj(source, target, 1024 * 1024)
