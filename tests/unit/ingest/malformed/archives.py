"""Containers that lie about what is in them, or would unpack to more than fits."""

import struct
from collections.abc import Iterator

from tests.unit.ingest.malformed.case import WORDS, BadFile
from tests.unit.ingest.office_files import (
    docx_of,
    docx_parts,
    epub_parts,
    paragraph,
    pptx_parts,
    sheet_rows,
    xlsx_parts,
    zip_of,
)


def bombs() -> Iterator[BadFile]:
    zeros = bytes(48 * 1024 * 1024)
    body = "<w:p/>" * 8_000_000
    yield BadFile("bomb-body.docx", lambda: zip_of({**docx_parts(""), "word/document.xml": body}), "ARCHIVE_BOMB")
    yield BadFile("bomb-styles.docx", lambda: zip_of({**docx_parts(""), "word/styles.xml": zeros}), "ARCHIVE_BOMB")
    yield BadFile("bomb.pptx", lambda: zip_of({**pptx_parts([""]), "ppt/slides/slide1.xml": zeros}), "ARCHIVE_BOMB")
    yield BadFile("bomb.xlsx", lambda: zip_of({**xlsx_parts(""), "xl/sharedStrings.xml": zeros}), "ARCHIVE_BOMB")
    yield BadFile(
        "bomb.epub", lambda: zip_of({**epub_parts({"c.xhtml": ""}), "OEBPS/text/c.xhtml": zeros}), "ARCHIVE_BOMB"
    )
    nested = zip_of({"inner.zip": zip_of({"zeros": zeros})})
    yield BadFile("nested.docx", lambda: zip_of({**docx_parts(paragraph(WORDS)), "word/x.zip": nested}), keeps=WORDS)
    yield BadFile("nested.zip", lambda: nested, "UNSUPPORTED_TYPE")
    yield BadFile("overlapping.docx", lambda: _overlapping(docx_of(paragraph(WORDS))), "ARCHIVE_BOMB")
    yield BadFile("claims-4-gib.docx", lambda: _with_sizes(docx_of(paragraph(WORDS)), 0xFFFFFFF0), "ARCHIVE_BOMB")
    yield BadFile("claims-too-little.docx", lambda: _with_sizes(docx_of(paragraph(WORDS)), 20), "FILE_DAMAGED")
    yield BadFile(
        "many-parts.docx", lambda: zip_of({**docx_parts(""), **{f"x{i}": b"" for i in range(21_000)}}), "ARCHIVE_BOMB"
    )
    yield BadFile("claims-many-parts.docx", lambda: _with_count(docx_of(paragraph(WORDS)), 65_000), "ARCHIVE_BOMB")


def slips() -> Iterator[BadFile]:
    evil = {"../../../../tmp/evil.sh": "evil", "/etc/cron.d/evil": "evil", "..\\..\\evil.bat": "evil", "a\0b": "evil"}
    yield BadFile("slip.docx", lambda: zip_of({**docx_parts(paragraph(WORDS)), **evil}), keeps=WORDS)
    yield BadFile(
        "slip.xlsx", lambda: zip_of({**xlsx_parts(sheet_rows([["a", "b"], [WORDS, "x"]])), **evil}), keeps=WORDS
    )
    yield BadFile("slip.epub", lambda: zip_of({**epub_parts({"c.xhtml": f"<p>{WORDS}</p>"}), **evil}), keeps=WORDS)
    outside = {"_rels/.rels": docx_parts("")["_rels/.rels"].replace("word/document.xml", "../../../../etc/passwd")}  # type: ignore[arg-type]
    yield BadFile("slip-link.docx", lambda: zip_of({**docx_parts(paragraph(WORDS)), **outside}), keeps=WORDS)
    for target in ("../../../../../etc/passwd", "file:///etc/passwd", "http://127.0.0.1:9/x"):
        book = {k: v.replace("text/c.xhtml", target) if isinstance(v, str) else v  # type: ignore[arg-type]
                for k, v in epub_parts({"c.xhtml": WORDS}).items()}  # fmt: skip
        yield BadFile(f"slip-{target[:4].strip('./')}chapter.epub", lambda book=book: zip_of(book), "FILE_DAMAGED")  # type: ignore[misc]


def encrypted() -> Iterator[BadFile]:
    def ole(stream: str) -> bytes:
        """The header and directory of an OLE file with one stream."""
        header = bytearray(512)
        header[:8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
        struct.pack_into("<HHHHH", header, 24, 0x3E, 3, 0xFFFE, 9, 6)
        return (
            bytes(header)
            + "Root Entry".encode("utf-16-le").ljust(128, b"\0")
            + stream.encode("utf-16-le").ljust(384, b"\0")
        )

    for kind in ("docx", "xlsx", "pptx"):
        yield BadFile(f"password.{kind}", lambda: ole("EncryptedPackage"), "FILE_ENCRYPTED")
    yield BadFile("old.doc", lambda: ole("WordDocument"), "UNSUPPORTED_TYPE")
    yield BadFile("old.xls", lambda: ole("Workbook"), "UNSUPPORTED_TYPE")
    yield BadFile("old.ppt", lambda: ole("PowerPoint Document"), "UNSUPPORTED_TYPE")
    yield BadFile("cut.doc", lambda: ole("WordDocument")[:60], "UNSUPPORTED_TYPE")

    def flagged() -> bytes:
        data = bytearray(docx_of(paragraph(WORDS)))
        at = data.find(b"PK\x01\x02")
        while at >= 0:
            data[at + 8] |= 1
            at = data.find(b"PK\x01\x02", at + 1)
        return bytes(data)

    yield BadFile("zip-password.docx", flagged, "FILE_ENCRYPTED")
    method = (
        '<encryption><EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#">'
        '<EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></EncryptedData></encryption>'
    )
    yield BadFile(
        "drm.epub",
        lambda: zip_of({**epub_parts({"c.xhtml": "x"}), "META-INF/encryption.xml": method}),
        "FILE_ENCRYPTED",
    )


def _overlapping(data: bytes) -> bytes:
    """All entries of the directory point to the first one's bytes."""
    changed = bytearray(data)
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<I", changed, at + 42, 0)
        at = data.find(b"PK\x01\x02", at + 1)
    return bytes(changed)


def _with_sizes(data: bytes, size: int) -> bytes:
    changed = bytearray(data)
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<I", changed, at + 24, size)
        at = data.find(b"PK\x01\x02", at + 1)
    return bytes(changed)


def _with_count(data: bytes, count: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into("<HH", changed, data.rfind(b"PK\x05\x06") + 8, count, count)
    return bytes(changed)
