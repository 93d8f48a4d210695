"""How the worker, the server of parsing children and the children talk: one JSON object a line. JSON and not pickle, because a
child that a hostile file took over must not be able to run anything in the worker."""

import json
from collections.abc import Iterator
from typing import Any

from services.ingest.reading.chunks.languages import languages_of
from services.ingest.reading.models import Chunk, ChunkFile, LineBox, PreparedDocument, PreparedFile, PrepareRequest

_CHUNK_BEGINS = b'{"chunk":'

REQUEST_BYTES = 256 * 1024
"""More than any request takes. Each is sent at once, together with its file descriptors."""

OUT_OF_MEMORY = 71
"""Exit status of a child that had no memory left to say so."""


def fork_line(tokenizer_path: str) -> bytes:
    """Asks the server for a child that counts with this tokenizer."""
    return _line({"tokenizer_path": tokenizer_path})


def decode_fork(line: bytes) -> str:
    """The path of the tokenizer."""
    return str(json.loads(line)["tokenizer_path"])


def sandbox_line(report: dict[str, str]) -> bytes:
    """The server's first words: what confines its children."""
    return _line({"sandbox": report})


def ending_line(exit_code: int, peak_bytes: int) -> bytes:
    """How a child ended: the negative number of a signal, or its exit status; and the most memory it had."""
    return _line({"exit_code": exit_code, "peak_bytes": peak_bytes})


def request_line(request: PrepareRequest) -> bytes:
    """Asks a child to read the file that is sent along."""
    sent = ("media_type", "name", "window_tokens", "usual_encoding")
    return _line({field: getattr(request, field) for field in sent})


def decode_request(line: bytes, path: str) -> PrepareRequest:
    """`path` is where the child finds the file. It has its tokenizer already."""
    return PrepareRequest(path=path, tokenizer_path="", **json.loads(line))


def stage_line(stage: str) -> bytes:
    return _line({"stage": stage})


def rejected_line(reason: str, message: str, detail: str = "") -> bytes:
    """`detail` is for the log, when the parser itself is at fault."""
    return _line({"rejected": [reason, message], "detail": detail})


def result_lines(document: PreparedDocument) -> Iterator[bytes]:
    """A line a chunk, then one that says what it was."""
    for chunk in document.chunks:
        yield _line({"chunk": chunk})
    yield _line(
        {
            "done": {
                "title": document.title,
                "chunker": document.chunker,
                "page_statuses": document.page_statuses,
                "warnings": document.warnings,
                "stage_seconds": document.stage_seconds,
                "token_count": sum(chunk.token_count for chunk in document.chunks),
                "languages": languages_of(document.chunks),
            }
        }
    )


def decode(line: bytes) -> dict[str, Any]:
    """An answer of the child's, who may have been taken over. Raises ValueError, also for numbers that are none."""
    answer = json.loads(line, parse_constant=_refused)
    if not isinstance(answer, dict):
        raise ValueError("the answer is no object")  # noqa: TRY004 - as for all that is no answer
    return answer


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def is_chunk(line: bytes) -> bool:
    """Whether a line of the child's holds a chunk, which `decode_chunk` reads."""
    return line.startswith(_CHUNK_BEGINS)


def decode_chunk(line: bytes) -> Chunk:
    value: dict[str, Any] = decode(line)["chunk"]
    boxes = tuple(LineBox(box["start"], box["end"], box["page"], tuple(box["box"])) for box in value["boxes"])
    return Chunk(**{**value, "boxes": boxes, "heading_path": tuple(value["heading_path"])})


def decode_done(value: dict[str, Any], chunks: ChunkFile) -> PreparedFile:
    return PreparedFile(
        chunks=chunks,
        token_count=value["token_count"],
        languages=tuple(value["languages"]),
        chunker=value["chunker"],
        page_statuses=tuple(value["page_statuses"]),
        warnings=tuple(value["warnings"]),
        stage_seconds=dict(value["stage_seconds"]),
        title=str(value["title"]),
    )


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=vars).encode("utf-8", "replace") + b"\n"
