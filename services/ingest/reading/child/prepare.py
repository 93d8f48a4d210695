"""File to chunks, in one go: what the child process does with a file. Pure computation on local disk; no network, no clock but the
one that measures the stages."""

import time
from collections.abc import Callable
from pathlib import Path

from services.ingest.errors import DocumentRejected
from services.ingest.reading.chunks.chunking import chunk, chunker_for
from services.ingest.reading.chunks.languages import LanguageDetector, with_languages
from services.ingest.reading.chunks.tokens import TokenCounter
from services.ingest.reading.cleaning import clean
from services.ingest.reading.decoding import known_encodings
from services.ingest.reading.detection import without_charset
from services.ingest.reading.models import PreparedDocument, PrepareRequest
from services.ingest.reading.parsers.registry import parse
from services.ingest.reading.recognition import OcrBudget, OcrLimits, Picture, RecognizedPicture, TextRecognizer


def prepare(
    request: PrepareRequest,
    on_stage: Callable[[str], None],
    tokenizer: TokenCounter,
    recognizer: TextRecognizer | None = None,
    ocr_limits: OcrLimits | None = None,
    detector: LanguageDetector | None = None,
) -> PreparedDocument:
    """Parses, cleans and chunks; pictures of text are read with `recognizer`. Raises DocumentRejected. The stage "ocr" is announced
    for each page that is read from its picture: it is also the sign of life of a long scan."""
    stages = _Stages(on_stage)
    ocr = OcrBudget(_Staged(recognizer, stages), ocr_limits or OcrLimits(), time.perf_counter) if recognizer else None
    stages.begin("parse")
    media_type, named = without_charset(request.media_type)
    with known_encodings(named=named, usual=request.usual_encoding):
        parsed = parse(Path(request.path), media_type, request.name, ocr)
    stages.begin("clean")
    document = clean(parsed)
    if not document.text.strip():
        raise DocumentRejected("NO_TEXT", f"{request.name} holds no text; upload a version that does")
    stages.begin("chunk")
    chunks = chunk(document, tokenizer, window_tokens=request.window_tokens)
    if detector:
        chunks = with_languages(chunks, detector)
    stages.end()
    chunker = chunker_for(document, has_pages=bool(parsed.page_statuses))
    return PreparedDocument(
        document.title, tuple(chunks), chunker, parsed.page_statuses, parsed.warnings, stages.seconds
    )


class _Staged:
    """A recogniser whose time is counted as a stage of its own."""

    def __init__(self, recognizer: TextRecognizer, stages: "_Stages") -> None:
        self._recognizer = recognizer
        self._stages = stages
        self.scripts = recognizer.scripts
        self.missing = recognizer.missing

    def read(self, picture: Picture, time_limit_s: float) -> RecognizedPicture:
        self._stages.begin("ocr")
        try:
            return self._recognizer.read(picture, time_limit_s)
        finally:
            self._stages.begin("parse", is_announced=False)


class _Stages:
    def __init__(self, on_stage: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._on_stage = on_stage
        self._current = ""
        self._since = 0.0

    def begin(self, stage: str, *, is_announced: bool = True) -> None:
        self.end()
        self._current, self._since = stage, time.perf_counter()
        if is_announced:
            self._on_stage(stage)

    def end(self) -> None:
        if self._current:
            spent = self.seconds.get(self._current, 0.0) + time.perf_counter() - self._since
            self.seconds[self._current] = round(spent, 4)
            self._current = ""
