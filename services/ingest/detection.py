"""Finds out what a file is by looking at its bytes. The extension only decides between kinds of text, which no magic number
tells apart, and names the culprit when a file is not what it claims to be."""

import re
from pathlib import Path

from services.ingest.decoding import looks_binary

PDF = "application/pdf"
HTML = "text/html"
MARKDOWN = "text/markdown"
CSV = "text/csv"
PLAIN = "text/plain"
EMPTY = "application/x-empty"
BINARY = "application/octet-stream"
SUPPORTED_MEDIA_TYPES = frozenset({PDF, HTML, MARKDOWN, CSV, PLAIN})

_HEAD_BYTES = 64 * 1024
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"{\\rtf", "application/rtf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!", "application/vnd.rar"),
    (b"\x7fELF", "application/x-executable"),
    (b"%!PS", "application/postscript"),
)
_ZIP_BY_EXTENSION = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".epub": "application/epub+zip",
}
_TEXT_BY_EXTENSION = {
    "": PLAIN,
    ".txt": PLAIN,
    ".text": PLAIN,
    ".log": PLAIN,
    ".rst": PLAIN,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": HTML,
    ".csv": CSV,
    ".tsv": CSV,
    ".pdf": PDF,  # claims to be one and is not: its parser says so
    ".eml": "message/rfc822",
}
_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)


def detect_media_type(path: Path, name: str) -> str:
    """The media type of the file at `path` that was uploaded as `name`. Reads its first 64 KiB."""
    with path.open("rb") as file:
        return media_type_of(file.read(_HEAD_BYTES), name)


def media_type_of(head: bytes, name: str) -> str:
    """The media type of a file that begins with `head`."""
    extension = Path(name).suffix.lower()
    if not head:
        return EMPTY
    if b"%PDF-" in head[:1024]:
        return PDF
    for magic, media_type in _MAGIC:
        if head.startswith(magic):
            return _ZIP_BY_EXTENSION.get(extension, media_type) if media_type == "application/zip" else media_type
    if looks_binary(head):
        return PDF if extension == ".pdf" else BINARY
    return _kind_of_text(head, extension)


def _kind_of_text(head: bytes, extension: str) -> str:
    by_extension = _TEXT_BY_EXTENSION.get(extension, f"text/x-{extension[1:]}")
    if by_extension in (PLAIN, PDF) and _HTML_START.match(head.removeprefix(b"\xef\xbb\xbf")):
        return HTML
    return by_extension
