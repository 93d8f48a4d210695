"""File to chunks, in one go: what the child process does with a file. Pure computation on local disk; no network, no clock but the
one that measures the stages."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from services.ingest.chunking import chunk, chunker_for
from services.ingest.cleaning import clean
from services.ingest.errors import DocumentRejected
from services.ingest.models import PreparedDocument
from services.ingest.parsers.registry import parse
from services.ingest.tokens import TokenCounter


@dataclass(frozen=True)
class PrepareRequest:
    """A file on local disk and what its chunks have to fit."""

    path: str
    media_type: str
    name: str
    tokenizer_path: str
    """The embedder's tokenizer JSON; empty when its provider publishes none."""
    window_tokens: int


def prepare(request: PrepareRequest, on_stage: Callable[[str], None], tokenizer: TokenCounter) -> PreparedDocument:
    """Parses, cleans and chunks. Raises DocumentRejected."""
    stages = _Stages(on_stage)
    stages.begin("parse")
    parsed = parse(Path(request.path), request.media_type, request.name)
    stages.begin("clean")
    document = clean(parsed)
    if not document.text.strip():
        raise DocumentRejected("NO_TEXT", f"{request.name} holds no text; upload a version that does")
    stages.begin("chunk")
    chunks = chunk(document, tokenizer, window_tokens=request.window_tokens)
    stages.end()
    chunker = chunker_for(document, has_pages=bool(parsed.page_statuses))
    return PreparedDocument(
        document.title, tuple(chunks), chunker, parsed.page_statuses, parsed.warnings, stages.seconds
    )


class _Stages:
    def __init__(self, on_stage: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._on_stage = on_stage
        self._current = ""
        self._since = 0.0

    def begin(self, stage: str) -> None:
        self.end()
        self._current, self._since = stage, time.perf_counter()
        self._on_stage(stage)

    def end(self) -> None:
        if self._current:
            self.seconds[self._current] = round(time.perf_counter() - self._since, 4)
            self._current = ""
