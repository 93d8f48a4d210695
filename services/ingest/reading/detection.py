"""Finds out what a file is by looking at its bytes. The extension only decides between kinds of text, which no magic number
tells apart, and names the culprit when a file is not what it claims to be."""

import re
import struct
from pathlib import Path
from typing import IO

from services.ingest.reading.decoding import looks_binary
from services.ingest.reading.zip_directory import read_zip_directory

PDF = "application/pdf"
HTML = "text/html"
MARKDOWN = "text/markdown"
CSV = "text/csv"
PLAIN = "text/plain"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
EPUB = "application/epub+zip"
TELEGRAM = "application/vnd.telegram.export+json"
JSON = "application/json"
MAIL = "message/rfc822"
JSON_LINES = "application/jsonl"
RTF = "application/rtf"
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODP = "application/vnd.oasis.opendocument.presentation"
OUTLOOK = "application/vnd.ms-outlook"
CODE = "text/x-source"
XML = "application/xml"
MARKUP = "text/x-markup"
TEX = "text/x-tex"
NOTEBOOK = "application/x-ipynb+json"
CALENDAR = "text/calendar"
MAILBOX = "application/mbox"
SUBTITLES = "text/vtt"
GZIP = "application/gzip"
ZIP = "application/zip"
TAR = "application/x-tar"
OLE = "application/x-ole-storage"
ENCRYPTED_OFFICE = "application/x-encrypted-office"
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/tiff", "image/bmp", "image/webp"})
EMPTY = "application/x-empty"
BINARY = "application/octet-stream"

_HEAD_BYTES = 64 * 1024
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (b"{\\rtf", RTF),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"II+\x00", "image/tiff"),  # BigTIFF
    (b"MM\x00+", "image/tiff"),
    (b"\x1f\x8b", GZIP),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!", "application/vnd.rar"),
    (b"\x7fELF", "application/x-executable"),
    (b"%!PS", "application/postscript"),
)
_TAR_MARK, _TAR_MARK_AT = b"ustar", 257
_ZIP_BY_EXTENSION = {
    ".docx": DOCX,
    ".docm": DOCX,
    ".pptx": PPTX,
    ".pptm": PPTX,
    ".ppsx": PPTX,
    ".xlsx": XLSX,
    ".xlsm": XLSX,
    ".epub": EPUB,
    ".odt": ODT,
    ".ods": ODS,
    ".odp": ODP,
}
_ZIP_BY_FOLDER = {"word/": DOCX, "ppt/": PPTX, "xl/": XLSX}
# Names of the streams that tell what an OLE file is ([MS-OFFCRYPTO], [MS-DOC], [MS-XLS], [MS-PPT], [MS-OXMSG]).
_OLE_BY_STREAM = {
    "EncryptedPackage": ENCRYPTED_OFFICE,
    "WordDocument": "application/msword",
    "Workbook": "application/vnd.ms-excel",
    "Book": "application/vnd.ms-excel",
    "PowerPoint Document": "application/vnd.ms-powerpoint",
    "__properties_version1.0": OUTLOOK,
}
_OLE_DIRECTORY_BYTES = 4096
_TEXT_BY_EXTENSION = {
    "": PLAIN,
    ".txt": PLAIN,
    ".text": PLAIN,
    ".log": PLAIN,
    **dict.fromkeys((".adoc", ".asciidoc", ".org", ".wiki", ".mediawiki", ".rst", ".rest"), MARKUP),
    **dict.fromkeys((".tex", ".latex", ".ltx"), TEX),
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": HTML,
    ".csv": CSV,
    ".tsv": CSV,
    ".pdf": PDF,  # claims to be one and is not: its parser says so
    ".json": JSON,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
    ".geojson": JSON,
    **dict.fromkeys((".jsonc", ".webmanifest"), JSON),
    **dict.fromkeys((".eml", ".mht", ".mhtml"), MAIL),
    ".mbox": MAILBOX,
    ".ics": CALENDAR,
    ".ipynb": NOTEBOOK,
    ".xml": XML,
    ".rss": XML,
    ".atom": XML,
    ".svg": XML,
    ".srt": SUBTITLES,
    ".vtt": SUBTITLES,
    ".xls": CSV,  # some programs export tables under this name
}
_CODE = frozenset(
    re.findall(
        r"\S+",
        """
        .ada .adb .asm .awk .bash .bat .bicep .c .cc .cfg .clj .cls .cmake .cmd .conf .cpp .cs .css .cxx .d
        .dart .diff .el .elm .env .erl .ex .exs .f90 .fish .fs .go .gradle .graphql .groovy .h .hcl .hh .hpp
        .hrl .hs .hxx .ini .java .jl .js .json5 .jsx .kt .kts .less .lisp .lua .m .mjs .ml .mm .nim .nix .pas .patch
        .php .pl .pm .properties .proto .ps1 .py .pyi .pyx .r .rb .rs .s .sass .scala .scm .scss .sh .sol .sql
        .swift .tcl .tf .toml .ts .tsx .v .vb .vbs .vhd .vue .yaml .yml .zig .zsh
        """,
    )
)
"""Extensions of files whose lines stay lines."""
_CODE_NAMES = frozenset(
    ("containerfile", "dockerfile", "gemfile", "jenkinsfile", "makefile", "rakefile", "vagrantfile")
)
"""Names without an extension of such files."""
_HTML_START = re.compile(
    # Each comment ends at its first mark, or else a match would try all ways to divide many comments.
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)

_XML_START = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml\s")
_TEXTS = frozenset((PLAIN, CODE, MARKUP, TEX, MARKDOWN, HTML, CSV, JSON, JSON_LINES, SUBTITLES, CALENDAR))
"""What is decoded as one text."""
_MAILBOX_START = re.compile(rb"From \S+ [^\r\n]*\d{4}[^\r\n]*\r?\n[!-9;-~]+:")
# Of one chat: its name or type comes first. Of all chats: a greeting, personal data, contacts, then "chats".
_TELEGRAM_START = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{(?=.{0,2000}?"(?:messages|chats|personal_information|about)"\s*:)'
    rb'\s*"(?:name|type|id|about|personal_information|profile_pictures|chats|messages)"\s*:',
    re.DOTALL,
)


def detect_media_type(file: IO[bytes], name: str) -> str:
    """The media type of a file that was uploaded as `name`. Reads its first 64 KiB, and a container's directory."""
    file.seek(0)
    head = file.read(_HEAD_BYTES)
    found = media_type_of(head, name)
    if found == OLE:
        return _kind_of_ole(file, head)
    return _kind_of_zip(file, found) if head.startswith(b"PK") else found


def with_charset(media_type: str, charset: str) -> str:
    """The media type of a text with the encoding that its uploader names; that of others as it is."""
    return f"{media_type}; charset={charset}" if charset and media_type in _TEXTS else media_type


def without_charset(media_type: str) -> tuple[str, str]:
    """A media type, and the encoding that it names; "" where it names none."""
    bare, _, charset = media_type.partition("; charset=")
    return bare, charset


def _kind_of_zip(file: IO[bytes], by_extension: str) -> str:
    directory = read_zip_directory(file)
    if directory is None:
        return by_extension  # cut off: what it claims to be is the best guess
    if "[Content_Types].xml" in directory.names:
        folders = (
            kind for folder, kind in _ZIP_BY_FOLDER.items() if any(n.startswith(folder) for n in directory.names)
        )
        return next(folders, by_extension)
    if "META-INF/container.xml" in directory.names:
        return EPUB
    return _kind_of_opendocument(file) or by_extension


def _kind_of_opendocument(file: IO[bytes]) -> str:
    """What the first part of an OpenDocument file says: stored as it is, behind a header of 30 bytes and its name (ODF 1.2 part 3,
    3.3)."""
    file.seek(30)
    name, _, kind = file.read(200).partition(b"application/vnd.oasis.opendocument.")
    return next(
        (
            media_type
            for media_type in (ODT, ODS, ODP)
            if name == b"mimetype" and kind.startswith(media_type.rpartition(".")[2].encode())
        ),
        "",
    )


def _kind_of_ole(file: IO[bytes], head: bytes) -> str:
    """Looks for the names of streams in the directory's first sectors ([MS-CFB], 2.2 and 2.6)."""
    if len(head) < 76:
        return OLE
    (sector_shift,) = struct.unpack_from("<H", head, 30)
    (first_sector,) = struct.unpack_from("<I", head, 48)
    if sector_shift not in (9, 12):
        return OLE
    file.seek((first_sector + 1) << sector_shift)
    directory = file.read(_OLE_DIRECTORY_BYTES)
    kinds = (kind for name, kind in _OLE_BY_STREAM.items() if name.encode("utf-16-le") in directory)
    return next(kinds, OLE)


def media_type_of(head: bytes, name: str) -> str:
    """The media type of a file that begins with `head`."""
    extension = Path(name).suffix.lower()
    if not head:
        return EMPTY
    if b"%PDF-" in head[:1024]:
        return PDF
    if found := _type_by_later_mark(head):
        return found
    for magic, media_type in _MAGIC:
        if head.startswith(magic):
            return _ZIP_BY_EXTENSION.get(extension, media_type) if media_type == ZIP else media_type
    if looks_binary(head):
        return PDF if extension == ".pdf" else _ZIP_BY_EXTENSION.get(extension, BINARY)
    return CODE if Path(name).name.lower() in _CODE_NAMES else _kind_of_text(head, extension)


def _type_by_later_mark(head: bytes) -> str:
    """Of files whose mark is not at the very beginning, or too short to be one; "" for others."""
    if head.startswith(_TAR_MARK, _TAR_MARK_AT):
        return TAR
    if head[:2] == b"BM" and head[6:10] == b"\0\0\0\0":
        return "image/bmp"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:8] == b"ftyp" and head[8:12] in (b"heic", b"heix", b"mif1", b"avif"):
        return "image/avif" if head[8:12] == b"avif" else "image/heic"
    return ""


def _kind_of_text(head: bytes, extension: str) -> str:
    """Readable text that no extension names is plain text, unless its name claims that it is an office file."""
    unnamed = CODE if extension in _CODE else _ZIP_BY_EXTENSION.get(extension, PLAIN)
    by_extension = _TEXT_BY_EXTENSION.get(extension, unnamed)
    if by_extension in (PLAIN, JSON) and _TELEGRAM_START.match(head):
        return TELEGRAM
    may_be_page = by_extension in (PLAIN, PDF) or extension in (".xls", ".xml", *_ZIP_BY_EXTENSION)
    if may_be_page and _HTML_START.match(head.removeprefix(b"\xef\xbb\xbf")):
        return HTML
    if by_extension == PLAIN and _MAILBOX_START.match(head):
        return MAILBOX
    if by_extension == PLAIN and extension not in _TEXT_BY_EXTENSION and _XML_START.match(head):
        return XML
    return by_extension
