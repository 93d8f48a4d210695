"""Reading a file as ingestion does, without a system around it."""

from pathlib import Path

from services.ingest.errors import DocumentRejected
from services.ingest.reading.cleaning import clean
from services.ingest.reading.detection import detect_media_type
from services.ingest.reading.models import CleanDocument
from services.ingest.reading.parsers.registry import parse


def read_file(path: Path) -> CleanDocument:
    """The cleaned text of a file. Raises Unread with the reason."""
    try:
        with path.open("rb") as file:
            media_type = detect_media_type(file, path.name)
        return clean(parse(path, media_type, path.name))
    except DocumentRejected as rejected:
        raise Unread(f"{rejected.reason}: {rejected.message}") from rejected


class Unread(Exception):
    """A file that ingestion refuses."""
