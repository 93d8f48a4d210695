"""Text that is put behind the text of a document: notes that grow."""

from collections.abc import AsyncIterator

from services.ingest.documents.models import Document
from services.ingest.errors import BadUpload
from services.ingest.reading.detection import MARKDOWN, PLAIN

_BETWEEN = b"\n\n"
"""A blank line: what is added is a paragraph of its own."""


def check_appendable(document: Document) -> None:
    """Raises BadUpload for what is no plain text."""
    if document.content.media_type not in (PLAIN, MARKDOWN):
        raise BadUpload(
            f"{document.name} is {document.content.media_type}, which cannot be appended to; upload the whole file"
        )


def append_text(name: str, present: bytes, added: bytes) -> bytes:
    """Both as one text. Raises BadUpload for what is no UTF-8."""
    for text, what in ((present, f"the text of {name}"), (added, "the appended text")):
        try:
            text.decode()
        except UnicodeDecodeError as error:
            raise BadUpload(f"{what} is not UTF-8; upload the whole file instead") from error
    return present.rstrip(b"\n") + _BETWEEN + added if present.strip() else added


def has_appended(present: bytes, added: bytes) -> bool:
    """Whether the text was appended before: it stands behind a blank line, or is the beginning."""
    return present.startswith(added) or _BETWEEN + added in present


async def one_piece(data: bytes) -> AsyncIterator[bytes]:
    """The data as an upload brings it."""
    yield data
