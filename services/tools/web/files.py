"""Tells files of the web, such as PDF and office files, from its pages."""

from urllib.parse import unquote, urlsplit

from services.tools.web.pages import WebDocument

PAGE_BYTES_MAX = 4 * 1024 * 1024
FILE_BYTES_MAX = 12 * 1024 * 1024
"""As many as the reader of files takes (reading.proto)."""
_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPEN = "application/vnd.oasis.opendocument."
_EXTENSIONS = {
    "application/pdf": ".pdf",
    "application/x-pdf": ".pdf",
    f"{_OFFICE}wordprocessingml.document": ".docx",
    f"{_OFFICE}presentationml.presentation": ".pptx",
    f"{_OFFICE}spreadsheetml.sheet": ".xlsx",
    "application/vnd.ms-word.document.macroenabled.12": ".docm",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": ".pptm",
    "application/vnd.ms-excel.sheet.macroenabled.12": ".xlsm",
    f"{_OPEN}text": ".odt",
    f"{_OPEN}spreadsheet": ".ods",
    f"{_OPEN}presentation": ".odp",
    "application/epub+zip": ".epub",
    "application/rtf": ".rtf",
    "text/rtf": ".rtf",
    # Of the old kinds, the reader says what to do.
    "application/msword": ".doc",
    "application/vnd.ms-excel": ".xls",
    "application/vnd.ms-powerpoint": ".ppt",
}
_ANY_FILE = (
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/x-download",
    "application/force-download",
    "application/download",
    "application/zip",
    "application/x-zip-compressed",
)
"""What servers say of files that they do not know."""
_NAME_CHARACTERS_MAX = 120


def bytes_max(content_type: str) -> int:
    """The most bytes that are read of a document of a type."""
    return FILE_BYTES_MAX if content_type in _EXTENSIONS or content_type in _ANY_FILE else PAGE_BYTES_MAX


def file_name(document: WebDocument) -> str:
    """What a file is called, with the extension of its kind; empty for a page."""
    last = unquote(urlsplit(document.url).path).rpartition("/")[2]
    name = "".join(each for each in last if each.isprintable())[-_NAME_CHARACTERS_MAX:]
    stem, _, suffix = name.rpartition(".")
    own = f".{suffix.lower()}" if stem else ""
    extension = _EXTENSIONS.get(document.content_type, "")
    if not extension and document.content_type in _ANY_FILE:
        extension = own if own in _EXTENSIONS.values() else ".pdf" if document.body.startswith(b"%PDF-") else ""
    if not extension:
        return ""
    return name if own == extension else f"{name or 'file'}{extension}"
