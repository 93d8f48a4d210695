"""Which parser reads which media type."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from services.ingest.errors import SUPPORTED, DocumentRejected
from services.ingest.reading import detection
from services.ingest.reading.models import ParsedDocument
from services.ingest.reading.parsers.messages.mail import parse_mail, parse_mailbox
from services.ingest.reading.parsers.messages.outlook import parse_outlook
from services.ingest.reading.parsers.office.docx import parse_docx
from services.ingest.reading.parsers.office.opendocument import parse_odt
from services.ingest.reading.parsers.office.opendocument_sheets import parse_ods
from services.ingest.reading.parsers.office.opendocument_slides import parse_odp
from services.ingest.reading.parsers.office.package import encrypted
from services.ingest.reading.parsers.office.pptx import parse_pptx
from services.ingest.reading.parsers.office.rtf import parse_rtf
from services.ingest.reading.parsers.office.xlsx import parse_xlsx
from services.ingest.reading.parsers.pages.images import parse_image
from services.ingest.reading.parsers.pages.pdf import parse_pdf
from services.ingest.reading.parsers.records.calendars import parse_calendar
from services.ingest.reading.parsers.records.json_records import parse_json, parse_json_lines, parse_telegram_or_json
from services.ingest.reading.parsers.records.tabular import parse_csv
from services.ingest.reading.parsers.records.xml_records import parse_xml_file
from services.ingest.reading.parsers.text.markdown import parse_markdown
from services.ingest.reading.parsers.text.markup import parse_markup
from services.ingest.reading.parsers.text.notebooks import parse_notebook
from services.ingest.reading.parsers.text.plain import parse_plain
from services.ingest.reading.parsers.text.source_code import parse_code
from services.ingest.reading.parsers.text.subtitles import parse_subtitles
from services.ingest.reading.parsers.text.tex import parse_tex
from services.ingest.reading.parsers.web.epub import parse_epub
from services.ingest.reading.parsers.web.html import parse_html
from services.ingest.reading.recognition import OcrBudget
from services.ingest.reading.source import Source, unpacked_gzip

_PARSERS: dict[str, Callable[[Source, str], ParsedDocument]] = {
    detection.HTML: parse_html,
    detection.MARKDOWN: parse_markdown,
    detection.CSV: parse_csv,
    detection.PLAIN: parse_plain,
    detection.DOCX: parse_docx,
    detection.PPTX: parse_pptx,
    detection.XLSX: parse_xlsx,
    detection.EPUB: parse_epub,
    detection.TELEGRAM: parse_telegram_or_json,
    detection.MAIL: parse_mail,
    detection.OUTLOOK: parse_outlook,
    detection.JSON: parse_json,
    detection.JSON_LINES: parse_json_lines,
    detection.ODT: parse_odt,
    detection.ODS: parse_ods,
    detection.ODP: parse_odp,
    detection.RTF: parse_rtf,
    detection.CODE: parse_code,
    detection.MARKUP: parse_markup,
    detection.TEX: parse_tex,
    detection.XML: parse_xml_file,
    detection.NOTEBOOK: parse_notebook,
    detection.CALENDAR: parse_calendar,
    detection.MAILBOX: parse_mailbox,
    detection.SUBTITLES: parse_subtitles,
}
_PICTURED: dict[str, Callable[[Source, str, OcrBudget | None], ParsedDocument]] = {
    detection.PDF: parse_pdf,
    **dict.fromkeys(detection.IMAGES, parse_image),
}
# What to do with the files that people have and no parser reads.
_ADVICE = {
    "application/msword": "is a Word file of the old kind (.doc); save it as .docx and upload that",
    "application/vnd.ms-excel": "is an Excel file of the old kind (.xls); save it as .xlsx and upload that",
    "application/vnd.ms-powerpoint": "is a PowerPoint file of the old kind (.ppt); save it as .pptx and upload that",
    "image/heic": "is a photograph in the HEIC format; save it as .jpg and upload that",
    "image/avif": "is a picture in the AVIF format; save it as .png and upload that",
    detection.TAR: "is an archive; unpack it and upload the documents in it",
    detection.ZIP: "is an archive; unpack it and upload the documents in it",
    "application/x-7z-compressed": "is an archive; unpack it and upload the documents in it",
    "application/vnd.rar": "is an archive; unpack it and upload the documents in it",
    "application/postscript": "is a PostScript file; print or convert it to PDF and upload that",
    "application/x-executable": "is a program, which holds no document to read",
}
# The same for those that no bytes tell apart, by their extensions.
_ADVICE_BY_EXTENSION = {
    **dict.fromkeys(
        (".mp3", ".m4a", ".wav", ".ogg", ".flac"), "is a recording; upload a transcript (.txt, .srt or .vtt)"
    ),
    **dict.fromkeys(
        (".mp4", ".mov", ".mkv", ".avi", ".webm"), "is a film; upload a transcript or subtitles (.srt, .vtt)"
    ),
    **dict.fromkeys(
        (".pages", ".numbers", ".key"), "is an iWork file; export it as .docx, .xlsx, .pptx or PDF and upload that"
    ),
    **dict.fromkeys((".dwg", ".dxf", ".vsd", ".vsdx", ".pub"), "is a drawing; export it as PDF and upload that"),
    **dict.fromkeys((".mobi", ".azw", ".azw3"), "is an e-book for one reader; convert it to EPUB and upload that"),
    **dict.fromkeys(
        (".db", ".sqlite", ".mdb", ".accdb", ".parquet"), "is a database; export its tables as CSV and upload those"
    ),
    ".xlsb": "is a binary Excel file; save it as .xlsx and upload that",
    ".one": "is a notebook of OneNote; export it as PDF or .docx and upload that",
    ".pst": "is a store of Outlook; export its messages as .msg or .eml and upload those",
}


def parse(source: Source, media_type: str, name: str, ocr: OcrBudget | None = None) -> ParsedDocument:
    """Reads a file, uploaded as `name`, or the one that is packed in it; pictures of text as far as `ocr` allows. Raises
    DocumentRejected with the reason for its uploader."""
    check_readable(media_type, name)
    media_type, _ = detection.without_charset(media_type)
    if media_type == detection.GZIP:
        return _unpacked(source, name, ocr)
    if media_type in _PICTURED:
        return _PICTURED[media_type](source, name, ocr)
    return _PARSERS[media_type](source, name)


def _unpacked(source: Source, name: str, ocr: OcrBudget | None) -> ParsedDocument:
    inner = unpacked_gzip(source, name)
    with inner.open("rb") as file:
        media_type = detection.detect_media_type(file, inner.name)
    if media_type == detection.GZIP:
        raise DocumentRejected("UNSUPPORTED_TYPE", f"{name} is packed twice; unpack it and upload the document in it")
    parsed = parse(inner, media_type, inner.name, ocr)
    if inner.is_whole:
        return parsed
    return replace(
        parsed, warnings=(*parsed.warnings, "the file was cut off or changed where it is packed; its end is missing")
    )


def check_readable(media_type: str, name: str) -> None:
    """Raises DocumentRejected for a file that no parser reads: without opening it."""
    media_type, _ = detection.without_charset(media_type)
    if media_type == detection.EMPTY:
        raise DocumentRejected("EMPTY_FILE", f"{name} is empty (0 bytes); upload the file again")
    if media_type == detection.ENCRYPTED_OFFICE:
        raise encrypted(name)
    if media_type in _ADVICE:
        raise DocumentRejected("UNSUPPORTED_TYPE", f"{name} {_ADVICE[media_type]}. {SUPPORTED}")
    if media_type not in _PARSERS and media_type not in _PICTURED and media_type != detection.GZIP:
        if advice := _ADVICE_BY_EXTENSION.get(Path(name).suffix.lower()):
            raise DocumentRejected("UNSUPPORTED_TYPE", f"{name} {advice}. {SUPPORTED}")
        raise DocumentRejected(
            "UNSUPPORTED_TYPE",
            f"{name} is of type {media_type}, which cannot be read. {SUPPORTED}; convert it and try again",
        )
