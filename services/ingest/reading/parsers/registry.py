"""Which parser reads which media type."""

from collections.abc import Callable
from pathlib import Path

from services.ingest.errors import SUPPORTED, DocumentRejected
from services.ingest.reading import detection
from services.ingest.reading.models import ParsedDocument
from services.ingest.reading.parsers.docx import parse_docx
from services.ingest.reading.parsers.epub import parse_epub
from services.ingest.reading.parsers.html import parse_html
from services.ingest.reading.parsers.images import parse_image
from services.ingest.reading.parsers.mail import parse_mail
from services.ingest.reading.parsers.markdown import parse_markdown
from services.ingest.reading.parsers.package import encrypted
from services.ingest.reading.parsers.pdf import parse_pdf
from services.ingest.reading.parsers.plain import parse_plain
from services.ingest.reading.parsers.pptx import parse_pptx
from services.ingest.reading.parsers.tabular import parse_csv
from services.ingest.reading.parsers.telegram import parse_telegram
from services.ingest.reading.parsers.xlsx import parse_xlsx
from services.ingest.reading.recognition import OcrBudget

_PARSERS: dict[str, Callable[[Path, str], ParsedDocument]] = {
    detection.HTML: parse_html,
    detection.MARKDOWN: parse_markdown,
    detection.CSV: parse_csv,
    detection.PLAIN: parse_plain,
    detection.DOCX: parse_docx,
    detection.PPTX: parse_pptx,
    detection.XLSX: parse_xlsx,
    detection.EPUB: parse_epub,
    detection.TELEGRAM: parse_telegram,
    detection.MAIL: parse_mail,
}
_PICTURED: dict[str, Callable[[Path, str, OcrBudget | None], ParsedDocument]] = {
    detection.PDF: parse_pdf,
    **dict.fromkeys(detection.IMAGES, parse_image),
}
# What to do with the files that people have and no parser reads.
_ADVICE = {
    "application/msword": "is a Word file of the old kind (.doc); save it as .docx and upload that",
    "application/vnd.ms-excel": "is an Excel file of the old kind (.xls); save it as .xlsx and upload that",
    "application/vnd.ms-powerpoint": "is a PowerPoint file of the old kind (.ppt); save it as .pptx and upload that",
    "application/vnd.ms-outlook": "is an Outlook message (.msg); save it as .eml or .pdf and upload that",
    "application/vnd.oasis.opendocument.text": "is an OpenDocument text (.odt); save it as .docx and upload that",
    "application/vnd.oasis.opendocument.spreadsheet": "is an OpenDocument spreadsheet (.ods); save it as .xlsx and upload that",
    "application/vnd.oasis.opendocument.presentation": "is an OpenDocument presentation (.odp); save it as .pptx and upload that",
    "image/heic": "is a photograph in the HEIC format; save it as .jpg and upload that",
    "image/avif": "is a picture in the AVIF format; save it as .png and upload that",
    "application/rtf": "is a rich text file (.rtf); save it as .docx and upload that",
    detection.ZIP: "is an archive; unpack it and upload the documents in it",
    detection.JSON: "is JSON, of which only exports of Telegram (result.json) are read; save it as .csv or .txt and upload that",
}


def parse(path: Path, media_type: str, name: str, ocr: OcrBudget | None = None) -> ParsedDocument:
    """Reads the file at `path`, uploaded as `name`; pictures of text as far as `ocr` allows. Raises DocumentRejected with the
    reason for its uploader."""
    check_readable(media_type, name)
    if media_type in _PICTURED:
        return _PICTURED[media_type](path, name, ocr)
    return _PARSERS[media_type](path, name)


def check_readable(media_type: str, name: str) -> None:
    """Raises DocumentRejected for a file that no parser reads: without opening it."""
    if media_type == detection.EMPTY:
        raise DocumentRejected("EMPTY_FILE", f"{name} is empty (0 bytes); upload the file again")
    if media_type == detection.ENCRYPTED_OFFICE:
        raise encrypted(name)
    if media_type in _ADVICE:
        raise DocumentRejected("UNSUPPORTED_TYPE", f"{name} {_ADVICE[media_type]}. {SUPPORTED}")
    if media_type not in _PARSERS and media_type not in _PICTURED:
        raise DocumentRejected(
            "UNSUPPORTED_TYPE",
            f"{name} is of type {media_type}, which cannot be read. {SUPPORTED}; convert it and try again",
        )
