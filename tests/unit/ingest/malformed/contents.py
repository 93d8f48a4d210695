"""Office files, exports and pictures that are whole, but say what makes no sense."""

import struct
import zlib
from collections.abc import Callable, Iterator

from tests.unit.ingest.malformed.case import WORDS, BadFile
from tests.unit.ingest.malformed.good import telegram_export, telegram_message
from tests.unit.ingest.office_files import (
    docx_of,
    docx_parts,
    epub_of,
    epub_parts,
    paragraph,
    pptx_parts,
    shape,
    xlsx_parts,
    zip_of,
)


def telegram() -> Iterator[BadFile]:
    good = telegram_message(1, f'"{WORDS}"')
    for label, other in (
        ("text-is-number", telegram_message(2, "12")),
        ("text-is-null", telegram_message(2, "null")),
        ("text-is-object", telegram_message(2, '{"a": [1]}')),
        ("text-of-odd-pieces", telegram_message(2, '[1, null, {"text": 5}, ["x"], {"type": "link"}]')),
        ("replies-to-itself", telegram_message(2, '"x"', ', "reply_to_message_id": 2')),
        (
            "replies-in-a-circle",
            telegram_message(2, '"x"', ', "reply_to_message_id": 3')
            + ","
            + telegram_message(3, '"y"', ', "reply_to_message_id": 2'),
        ),
        ("same-id", telegram_message(1, '"again"')),
        ("odd-date", '{"id": 2, "date": "yesterday", "date_unixtime": "99999999999", "text": "x"}'),
        ("huge-number", '{"id": 1e999, "date_unixtime": 123456789012345678901234567890, "text": "x"}'),
        ("no-objects", '1, "x", null, [], [[]]'),
        ("odd-poll", telegram_message(2, '""', ', "poll": {"question": 5, "answers": [1, {"text": null}]}')),
        ("odd-fields", '{"id": {}, "type": [], "from": 5, "text": "x", "forwarded_from": [1], "media_type": {}}'),
    ):
        yield BadFile(f"{label}.json", lambda other=other: telegram_export(f"{good},{other}"), keeps=WORDS)  # type: ignore[misc]
    yield BadFile("not-a-number.json", lambda: telegram_export(f'{good},{{"id": NaN}}'), keeps=WORDS)
    yield BadFile("garbage-behind.json", lambda: telegram_export(good) + b"}}}]", keeps=WORDS)
    yield BadFile("no-messages.json", lambda: telegram_export(""), "NO_TEXT")
    yield BadFile("mark.json", lambda: b"\xef\xbb\xbf" + telegram_export(good), keeps=WORDS)
    yield BadFile("many-empty.json", lambda: telegram_export(good + ',{"id":2,"text":""}' * 20_000), keeps=WORDS)


def sheets() -> Iterator[BadFile]:
    good = f'<row r="1"><c r="A1" t="inlineStr"><is><t>{WORDS}</t></is></c></row>'

    def sheet(rows: str, **more: str) -> Callable[[], bytes]:
        return lambda: zip_of(xlsx_parts(good + rows, **more))

    yield BadFile("claims-all-cells.xlsx", sheet("", dimension="A1:XFD1048576"), keeps=WORDS)
    yield BadFile("last-row.xlsx", sheet('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'), keeps=WORDS)
    yield BadFile("row-beyond.xlsx", sheet('<row r="99999999999"><c r="A99999999999"><v>1</v></c></row>'), keeps=WORDS)
    yield BadFile(
        "wide-rows.xlsx",
        sheet("".join(f'<row r="{i}"><c r="XFD{i}"><v>1</v></c></row>' for i in range(2, 100))),
        keeps=WORDS,
    )
    yield BadFile("merged-whole.xlsx", sheet("", merged='<mergeCell ref="A1:XFD1048576"/>' * 2000), keeps=WORDS)
    yield BadFile("odd-reference.xlsx", sheet('<row r="x"><c r="1A"><v>1</v></c></row>'), "FILE_DAMAGED", WORDS)
    yield BadFile(
        "odd-types.xlsx",
        sheet('<row r="2"><c r="A2" t="s"><v>99</v></c><c r="B2" t="e"><v>#REF!</v></c><c t="zz"><v/></c></row>'),
        "FILE_DAMAGED",
        WORDS,
    )
    yield BadFile(
        "odd-numbers.xlsx",
        sheet(
            '<row r="2"><c r="A2"><v>1e999</v></c><c r="B2"><v>NaN</v></c><c r="C2" t="d"><v>2024-99-99</v></c></row>'
        ),
        "FILE_DAMAGED",
        WORDS,
    )
    yield BadFile(
        "missing-sheet.xlsx", lambda: zip_of({k: v for k, v in xlsx_parts(good).items() if "sheet1" not in k})
    )
    yield BadFile(
        "no-workbook.xlsx", lambda: zip_of({"[Content_Types].xml": "<Types/>", "xl/x.xml": "<x/>"}), "FILE_DAMAGED"
    )
    shared = (
        '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>'
        + "z" * 30_000
        + "</t></si></sst>"
    )
    cells = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(2, 5000))
    links = str(xlsx_parts("")["xl/_rels/workbook.xml.rels"]).replace(
        "</Relationships>",
        '<Relationship Id="s" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings" '
        'Target="sharedStrings.xml"/></Relationships>',
    )
    types = str(xlsx_parts("")["[Content_Types].xml"]).replace(
        "</Types>",
        '<Override PartName="/xl/sharedStrings.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/></Types>',
    )
    yield BadFile("repeated-text.xlsx", lambda: zip_of({**xlsx_parts(good + cells), "xl/sharedStrings.xml": shared,
                  "xl/_rels/workbook.xml.rels": links, "[Content_Types].xml": types}))  # fmt: skip


def office_oddities() -> Iterator[BadFile]:
    yield BadFile("no-body.docx", lambda: zip_of({**docx_parts(""), "word/document.xml": "<x/>"}), "FILE_DAMAGED")
    yield BadFile("empty-body.docx", lambda: docx_of(""), "NO_TEXT")
    yield BadFile("not-xml.docx", lambda: zip_of({**docx_parts(""), "word/document.xml": "words"}), "FILE_DAMAGED")
    yield BadFile(
        "broken-styles.docx",
        lambda: zip_of({**docx_parts(paragraph(WORDS)), "word/styles.xml": "<w:styles"}),
        keeps=WORDS,
    )
    unclosed = str(docx_parts(paragraph(WORDS))["word/document.xml"]).replace(
        "</w:body></w:document>", "<w:p><w:r><w:t>rest"
    )
    yield BadFile("unclosed.docx", lambda: zip_of({**docx_parts(""), "word/document.xml": unclosed}), keeps=WORDS)
    circle = "".join(
        f'<w:style w:type="paragraph" w:styleId="{a}"><w:name w:val="{a}"/><w:basedOn w:val="{b}"/></w:style>'
        for a, b in (("X", "Y"), ("Y", "X"))
    )
    yield BadFile("circular-styles.docx", lambda: docx_of(paragraph(WORDS, "X"), styles=circle), keeps=WORDS)
    listed = '<w:numPr><w:ilvl w:val="999999"/><w:numId w:val="77"/></w:numPr>'
    yield BadFile("unknown-list.docx", lambda: docx_of(paragraph(WORDS, "", listed)), keeps=WORDS)
    span = (
        '<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="999999999"/></w:tcPr>'
        + paragraph(WORDS)
        + "</w:tc></w:tr></w:tbl>"
    )
    yield BadFile("wide-cell.docx", lambda: docx_of(span), keeps=WORDS)
    note = "<w:p><w:r><w:t>" + WORDS + '</w:t><w:footnoteReference w:id="404"/></w:r></w:p>'
    yield BadFile("unknown-note.docx", lambda: docx_of(note), keeps=WORDS)
    yield BadFile(
        "unknown-encoding.docx",
        lambda: zip_of({**docx_parts(""), "word/document.xml": b'<?xml version="1.0" encoding="klingon"?><x/>'}),
        "FILE_DAMAGED",
    )
    parts = pptx_parts([shape([WORDS]), shape(["x"])])
    yield BadFile(
        "missing-slide.pptx", lambda: zip_of({k: v for k, v in parts.items() if "slide2" not in k}), keeps=WORDS
    )
    yield BadFile(
        "missing-slides.pptx", lambda: zip_of({k: v for k, v in parts.items() if "slides/" not in k}), "FILE_DAMAGED"
    )
    ids = '<p:sldId r:id="rId1"/>' * 50_000
    many = str(parts["ppt/presentation.xml"]).replace("<p:sldIdLst>", f"<p:sldIdLst>{ids}")
    yield BadFile("same-slide.pptx", lambda: zip_of({**parts, "ppt/presentation.xml": many}), keeps=WORDS)
    book = epub_parts({"c.xhtml": f"<p>{WORDS}</p>"})
    yield BadFile("no-spine.epub", lambda: zip_of({**book, "OEBPS/book.opf": "<package/>"}), "FILE_DAMAGED")
    yield BadFile("no-container.epub", lambda: zip_of({k: v for k, v in book.items() if "META" not in k}), keeps=WORDS)
    yield BadFile(
        "missing-chapter.epub", lambda: zip_of({k: v for k, v in book.items() if "c.xhtml" not in k}), "FILE_DAMAGED"
    )
    yield BadFile("script-only.epub", lambda: epub_of({"c.xhtml": "<script>x</script>"}), "NO_TEXT")


def images() -> Iterator[BadFile]:
    def png(width: int, height: int, data: bytes = b"") -> bytes:
        header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        chunks = (header, b"IDAT" + data, b"IEND")
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks
        )

    yield BadFile("huge.png", lambda: png(2_000_000_000, 2_000_000_000))
    yield BadFile("bomb.png", lambda: png(30_000, 30_000, zlib.compress(bytes(10_000_000))))
    yield BadFile("zero.png", lambda: png(0, 0))
    yield BadFile("lying.png", lambda: png(1000, 1000, zlib.compress(b"short")))
    yield BadFile("cut.png", lambda: png(10, 10)[:20])
    yield BadFile("cut.jpg", lambda: b"\xff\xd8\xff\xe0\x00\x10JFIF")
    yield BadFile(
        "claims.jpg", lambda: b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x11\0\x02\x11\0\x03\x11\0\xff\xd9"
    )
    yield BadFile("circle.tiff", lambda: b"II*\0\x08\0\0\0" + b"\0\0" + b"\x08\0\0\0")
    yield BadFile("cut.gif", lambda: b"GIF89a\xff\xff\xff\xff")
