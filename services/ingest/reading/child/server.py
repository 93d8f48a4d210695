"""Starts parsing children: a process that has loaded all parsers, has never seen a document, and copies itself (fork) for each
child. A fresh interpreter would take half a second for what a copy has at once; so each tenant can have a child of its own.

It speaks with its worker over a socket. A request comes with three file descriptors: `requests` and `answers` are the child's,
`life` is kept here: a parent that closes or shuts its other end wants the child dead, and reads there how it ended. So no process
id leaves this process, and none can be mistaken for a later one."""

import contextlib
import gc
import os
import selectors
import signal
import socket
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from services.ingest.reading.child import sandbox, wire
from services.ingest.reading.child.reader import Tools, read_files
from services.ingest.reading.child.sandbox import Plan
from services.ingest.reading.chunks.languages import LanguageDetector
from services.ingest.reading.chunks.tokens import EstimatedTokens, TokenCounter
from services.ingest.reading.recognition import OcrLimits, TextRecognizer

_CHILD_FDS = 3


def main(memory_limit_bytes: int, processor_limit_s: float, ocr: OcrLimits) -> None:
    """Serves until the worker closes the socket on standard input."""
    control = socket.socket(fileno=os.dup(0))
    os.dup2(1, 0)  # standard output is /dev/null, and so is what a library writes there
    network = sandbox.prepare_server()
    detector, recognizer, load_tokenizer = _loaded_detector(), _recognizer(ocr.threads), cache(_load_tokenizer)
    _load_parsers()
    plan, report = _settled(sandbox.plans(memory_limit_bytes))
    os.dup2(1, 2)  # until here it was for the worker, to say why this process ended
    control.sendall(wire.sandbox_line({**report, "network": network}))

    def read(requests: socket.socket, answers: socket.socket, tokenizer: TokenCounter) -> None:
        sandbox.confine(plan)
        with os.fdopen(answers.detach(), "wb") as file:  # written to as a file: the child may not send
            read_files(requests, file, Tools(tokenizer, recognizer, detector, ocr, processor_limit_s))

    gc.collect()
    gc.freeze()  # a collection in a child would copy the pages that it shares with this process
    _Server(control, read, load_tokenizer).run()


class _Server:
    """Forks, and tells of ends."""

    def __init__(
        self,
        control: socket.socket,
        read: Callable[[socket.socket, socket.socket, TokenCounter], None],
        load_tokenizer: Callable[[str], TokenCounter],
    ) -> None:
        self._control = control
        self._read = read
        self._load_tokenizer = load_tokenizer
        self._children: dict[int, socket.socket] = {}
        """Process id to `life`."""
        self._events = selectors.DefaultSelector()
        self._ended, ended = socket.socketpair()
        for end in (self._ended, ended):
            end.setblocking(False)
        self._wakeup = ended
        signal.set_wakeup_fd(ended.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        self._events.register(self._control, selectors.EVENT_READ, self._fork)
        self._events.register(self._ended, selectors.EVENT_READ, self._reap)
        with contextlib.suppress(EOFError):
            while True:
                for key, _ in self._events.select():
                    key.data()

    def _fork(self) -> None:
        line, handles, _, _ = socket.recv_fds(self._control, wire.REQUEST_BYTES, _CHILD_FDS)
        if len(handles) != _CHILD_FDS:
            raise EOFError
        requests, answers, life = (socket.socket(fileno=handle) for handle in handles)
        tokenizer = self._load_tokenizer(wire.decode_fork(line))
        pid = os.fork()
        if not pid:
            life.close()
            self._be_child(requests, answers, tokenizer)
        requests.close()
        answers.close()
        self._children[pid] = life
        self._events.register(life, selectors.EVENT_READ, lambda: self._kill(pid))

    def _be_child(self, requests: socket.socket, answers: socket.socket, tokenizer: TokenCounter) -> None:
        """Never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._events.close()
            for other in (self._control, self._ended, self._wakeup, *self._children.values()):
                other.close()
            self._read(requests, answers, tokenizer)
            code = 0
        except MemoryError:
            code = wire.OUT_OF_MEMORY
        finally:
            os._exit(code)

    def _kill(self, pid: int) -> None:
        if pid in self._children:  # not reaped yet, so that the number is still its own
            self._events.unregister(self._children[pid])
            os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._ended.recv(4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if not pid:
                    return
                life = self._children.pop(pid)
                with contextlib.suppress(KeyError):
                    self._events.unregister(life)
                with contextlib.suppress(OSError):
                    life.send(wire.ending_line(os.waitstatus_to_exitcode(status), 1024 * usage.ru_maxrss))
                life.close()


def _settled(plans: Iterable[Plan]) -> tuple[Plan, dict[str, str]]:
    """The strictest plan under which a child can read what it needs, and what it means in words."""
    refusals: list[str] = []
    for plan in plans:
        refusal = _tried(plan)
        if not refusal:
            return plan, sandbox.described(plan, refusals)
        refusals.append(refusal)
    raise SystemExit(f"no child can be started: {refusals}")


def _tried(plan: Plan) -> str:
    """Why a child cannot work under a plan; empty when it can."""
    receiving, sending = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            sandbox.confine(plan)
            for name in sandbox.needed_files():
                Path(name).open("rb").close()
            os.write(sending, b"ok")
        except BaseException as error:  # whatever it is, the parent reads it
            os.write(sending, str(error).encode())
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as file:
        answer = file.read().decode()
    _, status = os.waitpid(pid, 0)
    return "" if answer == "ok" else answer or f"it ended with {os.waitstatus_to_exitcode(status)}"


def _load_parsers() -> None:
    """What parsers import when first needed, for all children at once; not text recognition, which starts threads."""
    import chardet  # noqa: F401, PLC0415
    import openpyxl  # noqa: F401, PLC0415
    import pypdfium2  # noqa: F401, PLC0415
    from PIL import Image  # noqa: PLC0415

    Image.init()


def _load_tokenizer(path: str) -> TokenCounter:
    if not path:
        return EstimatedTokens()
    from services.ingest.adapters.tokenizer import open_tokenizer  # noqa: PLC0415 - tens of megabytes, when needed

    return open_tokenizer(Path(path))


def _recognizer(threads: int) -> TextRecognizer:
    from services.ingest.adapters.rapidocr import RapidOcr  # noqa: PLC0415 - it loads its models when first used
    from services.ingest.adapters.tesseract import ByScript, Tesseract  # noqa: PLC0415 - as above

    return ByScript(RapidOcr(threads=threads), Tesseract(threads=threads))


def _loaded_detector() -> LanguageDetector:
    from kit.language.detection import FastTextLanguages  # noqa: PLC0415 - as above

    detector = FastTextLanguages()
    detector.detect("a word, for it to load its model")
    return detector
