"""The worker's end of the parsing children: starts their server, asks it for children, and talks with each."""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import structlog

import services
from kit.errors import Unavailable
from services.ingest.errors import DocumentRejected
from services.ingest.reading.child import wire
from services.ingest.reading.models import PreparedFile, PrepareRequest
from services.ingest.reading.pool.chunk_lines import ChunkLines
from services.ingest.reading.recognition import OcrLimits

_log = structlog.get_logger()
_LINE_LIMIT_BYTES = 16 * 1024 * 1024
_START_TIMEOUT_S = 120.0
"""Half a second of work, on a machine that may be starting everything else."""
_ROOT = Path(next(iter(services.__path__))).absolute().parent
"""The folder that this package is in: a checkout, or where it is installed."""
_PROGRAM = Path(wire.__file__).with_name("__main__.py")
_ENVIRONMENT = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {
    "TOKENIZERS_PARALLELISM": "false"
}
"""All that the children's server gets to know of ours. A library that started threads when loaded could not be copied, and
tokenising must not take the cores that the embedder works on."""


@dataclass(frozen=True)
class ParserLimits:
    """What one file may cost. `processor_limit_s` is time of all its threads."""

    memory_limit_bytes: int
    processor_limit_s: float
    ocr: OcrLimits


@dataclass(frozen=True)
class Ending:
    """How a child ended: its exit status or the negative number of a signal, None when nobody knows."""

    exit_code: int | None
    peak_bytes: int = 0


class ChildEnded(Exception):
    """The child ended, or broke off, in the middle of an answer."""


class ParserServer:
    """Starts the server when first needed, and again when it has died."""

    def __init__(self, limits: ParserLimits, program: Path = _PROGRAM) -> None:
        self._limits = limits
        self._program = program
        self._process: Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = asyncio.Lock()
        self._closed = False
        self.sandbox: dict[str, str] = {}
        """What confines its children, in words: known once it has started."""

    async def start(self) -> None:
        """Raises Unavailable."""
        async with self._lock:
            await self._running()

    async def fork(self, tokenizer_path: str) -> "ParserChild":
        """A fresh child that counts with this tokenizer. Raises Unavailable."""
        async with self._lock:
            try:
                try:
                    ours = _asked_to_fork(await self._running(), tokenizer_path)
                except OSError:  # the server has just died, and the event loop does not know it yet
                    await self._end()
                    ours = _asked_to_fork(await self._running(), tokenizer_path)
            except OSError as error:
                raise _unavailable(error) from error
        return await ParserChild.connected(*ours)

    async def close(self) -> None:
        """Ends the server, and with it all children that are left."""
        self._closed = True
        async with self._lock:
            await self._end()

    async def _running(self) -> socket.socket:
        if self._closed:
            raise Unavailable("the worker is stopping", reason="PARSER_STOPPED")
        if self._process is None or self._process.poll() is not None or self._control is None:
            await self._end()
            try:
                async with asyncio.timeout(_START_TIMEOUT_S):
                    self._control = await self._launched()
            except BaseException as error:
                await asyncio.shield(self._end())
                if isinstance(error, OSError | ValueError):  # a TimeoutError among them
                    raise _unavailable(error) from error
                raise
        return self._control

    async def _launched(self) -> socket.socket:
        control, theirs = socket.socketpair()
        control.setblocking(False)
        with theirs:
            # Not by the event loop: uvloop's child runs Python before it becomes the program, and waits forever for a lock that
            # one of our other threads held when it was copied, and our loop for it. Popen's shares our memory and runs none.
            self._process = Popen(  # noqa: S603, ASYNC220 - our own program; it takes a millisecond
                [sys.executable, "-I", str(self._program), str(_ROOT), json.dumps(asdict(self._limits))],
                stdin=theirs.fileno(),
                stdout=DEVNULL,
                stderr=PIPE,
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
        try:
            line = await asyncio.get_running_loop().sock_recv(control, _LINE_LIMIT_BYTES)
        except BaseException:
            control.close()
            raise
        if not line:
            control.close()
            assert self._process.stderr is not None
            said = await asyncio.to_thread(self._process.stderr.read)
            lines = said.decode(errors="replace").strip().splitlines()
            raise OSError(f"its server ended: {lines[-1] if lines else 'without a word'}")
        self.sandbox = json.loads(line)["sandbox"]
        _log.info("parser_sandbox", **self.sandbox)
        return control

    async def _end(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
            assert self._process.stderr is not None
            self._process.stderr.close()
            self._process = None


class ParserChild:
    """A process that reads the files of one tenant, one after the other."""

    def __init__(
        self,
        requests: socket.socket,
        answers: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        life: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._requests = requests
        self._answers, self._answers_end = answers
        self._life, self._life_end = life
        self._ending: asyncio.Task[Ending] | None = None

    @classmethod
    async def connected(cls, requests: socket.socket, answers: socket.socket, life: socket.socket) -> "ParserChild":
        """On our ends of its three sockets."""
        requests.setblocking(False)
        async with contextlib.AsyncExitStack() as on_failure:  # a stop in between leaves none of them open
            for end in (requests, answers, life):
                on_failure.callback(end.close)
            answers_streams = await asyncio.open_unix_connection(sock=answers, limit=_LINE_LIMIT_BYTES)
            on_failure.callback(answers_streams[1].close)
            made = cls(requests, answers_streams, await asyncio.open_unix_connection(sock=life))
            on_failure.pop_all()
            return made

    @property
    def is_alive(self) -> bool:
        """As far as can be known without waiting."""
        return self._ending is None and not self._answers.at_eof()

    async def prepare(
        self, request: PrepareRequest, file: int, on_stage: Callable[[str], None], chunks: ChunkLines
    ) -> PreparedFile:
        """Chunks of an open file, added to `chunks`. Raises DocumentRejected, SpoolFull and ChildEnded."""
        try:
            socket.send_fds(self._requests, [wire.request_line(request)], [file])
            return await self._answer(request, on_stage, chunks)
        except (OSError, ValueError, KeyError, TypeError) as error:  # hung up, or what is no answer
            raise ChildEnded(repr(error)) from error

    async def _answer(
        self, request: PrepareRequest, on_stage: Callable[[str], None], chunks: ChunkLines
    ) -> PreparedFile:
        while True:
            line = await self._answers.readline()
            if not line.endswith(b"\n"):
                raise ChildEnded("the answer breaks off")
            if wire.is_chunk(line):
                await chunks.append(line)
                continue
            answer = wire.decode(line)
            if "stage" in answer:
                on_stage(answer["stage"])
            elif "rejected" in answer:
                if answer["detail"]:
                    _log.warning("parser_failed", detail=answer["detail"], media_type=request.media_type)
                raise DocumentRejected(*answer["rejected"])
            else:
                return wire.decode_done(answer["done"], chunks)

    async def wait(self) -> Ending:
        """How it ended. One that has hung up is dead within a moment."""
        line = await self._life.readline()
        if not line:
            return Ending(None)  # with its server
        report = json.loads(line)
        return Ending(report["exit_code"], report["peak_bytes"])

    async def end(self) -> None:
        """Has it killed, and returns when it is dead. To be called once."""
        try:
            with contextlib.suppress(OSError):
                self._life_end.write_eof()
            await self._life.read()
        finally:
            self._requests.close()
            self._answers_end.close()
            self._life_end.close()


def _asked_to_fork(control: socket.socket, tokenizer_path: str) -> list[socket.socket]:
    """Our ends of the three sockets of the child to come. Raises OSError."""
    with contextlib.ExitStack() as on_failure, contextlib.ExitStack() as theirs:
        pairs = [socket.socketpair() for _ in range(3)]
        for ours, other in pairs:
            on_failure.enter_context(ours)
            theirs.enter_context(other)
        socket.send_fds(control, [wire.fork_line(tokenizer_path)], [other.fileno() for _, other in pairs])
        on_failure.pop_all()
    return [ours for ours, _ in pairs]


def _environment() -> dict[str, str]:
    """LD_LIBRARY_PATH is what some interpreters are found by."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return _ENVIRONMENT | kept


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(
        f"the parser cannot be started: {str(error) or type(error).__name__}", reason="PARSER_UNAVAILABLE"
    )
