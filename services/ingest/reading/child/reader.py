"""The parsing child: reads the files of one tenant, one after the other, until its worker hangs up."""

import os
import socket
import sys
from dataclasses import dataclass
from typing import BinaryIO

from services.ingest.errors import DocumentRejected
from services.ingest.reading.child import wire
from services.ingest.reading.child.failures import too_deep, too_large, unreadable, where
from services.ingest.reading.child.prepare import prepare
from services.ingest.reading.child.sandbox import allow_processor_time
from services.ingest.reading.chunks.languages import LanguageDetector
from services.ingest.reading.chunks.tokens import TokenCounter
from services.ingest.reading.recognition import OcrLimits, TextRecognizer


@dataclass(frozen=True)
class Tools:
    """What a child is forked with. `processor_limit_s` and `ocr` are for each file."""

    tokenizer: TokenCounter
    recognizer: TextRecognizer
    detector: LanguageDetector
    ocr: OcrLimits
    processor_limit_s: float


def read_files(requests: socket.socket, answers: BinaryIO, tools: Tools) -> None:
    """Serves until the worker closes its end, or a file took all the memory."""
    while True:
        line, handles, _, _ = socket.recv_fds(requests, wire.REQUEST_BYTES, 1)
        if not handles:
            return
        try:
            if not _read_file(line, handles[0], answers, tools):
                return  # a fresh process has all its memory
        finally:
            os.close(handles[0])


def _read_file(line: bytes, handle: int, answers: BinaryIO, tools: Tools) -> bool:
    """Answers one request. False when this process should not go on."""

    def say(answer: bytes) -> None:
        answers.write(answer)
        answers.flush()

    request = wire.decode_request(line, path_of(handle))
    allow_processor_time(tools.processor_limit_s)
    try:
        document = prepare(
            request,
            lambda stage: say(wire.stage_line(stage)),
            tools.tokenizer,
            tools.recognizer,
            tools.ocr,
            tools.detector,
        )
    except DocumentRejected as error:
        say(wire.rejected_line(error.reason, error.message))
    except MemoryError:
        say(wire.rejected_line("PARSE_TOO_LARGE", too_large(request.name)))
        return False
    except RecursionError:
        say(wire.rejected_line("TOO_DEEPLY_NESTED", too_deep(request.name)))
    except Exception as error:
        say(wire.rejected_line("PARSE_FAILED", unreadable(request.name), where(error)))
    else:
        answers.writelines(wire.result_lines(document))
        answers.flush()
    return True


def path_of(handle: int) -> str:
    """A name under which this process can open its own open file anew."""
    return f"/proc/self/fd/{handle}" if sys.platform == "linux" else f"/dev/fd/{handle}"
