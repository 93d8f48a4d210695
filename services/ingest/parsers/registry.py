"""Which parser reads which media type."""

from collections.abc import Callable
from pathlib import Path

from services.ingest import detection
from services.ingest.errors import SUPPORTED, DocumentRejected
from services.ingest.models import ParsedDocument
from services.ingest.parsers.html import parse_html
from services.ingest.parsers.markdown import parse_markdown
from services.ingest.parsers.pdf import parse_pdf
from services.ingest.parsers.plain import parse_plain
from services.ingest.parsers.tabular import parse_csv

_PARSERS: dict[str, Callable[[Path, str], ParsedDocument]] = {
    detection.PDF: parse_pdf,
    detection.HTML: parse_html,
    detection.MARKDOWN: parse_markdown,
    detection.CSV: parse_csv,
    detection.PLAIN: parse_plain,
}


def parse(path: Path, media_type: str, name: str) -> ParsedDocument:
    """Reads the file at `path`, uploaded as `name`. Raises DocumentRejected with the reason for its uploader."""
    check_readable(media_type, name)
    return _PARSERS[media_type](path, name)


def check_readable(media_type: str, name: str) -> None:
    """Raises DocumentRejected for a file that no parser reads: without opening it."""
    if media_type == detection.EMPTY:
        raise DocumentRejected("EMPTY_FILE", f"{name} is empty (0 bytes); upload the file again")
    if media_type not in _PARSERS:
        raise DocumentRejected(
            "UNSUPPORTED_TYPE",
            f"{name} is of type {media_type}, which cannot be read. {SUPPORTED}; convert it and try again",
        )
