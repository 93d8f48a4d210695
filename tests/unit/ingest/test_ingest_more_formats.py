"""What OpenDocument, rich text, JSON, messages of Outlook and packed files become."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.testing.pdf_files import pdf_of
from services.ingest.errors import DocumentRejected
from services.ingest.reading import detection
from services.ingest.reading.models import BlockKind, ParsedDocument
from services.ingest.reading.parsers.registry import parse
from tests.unit.ingest.office_files import docx_of, xlsx_of, zip_of
from tests.unit.ingest.office_files import paragraph as word_paragraph
from tests.unit.ingest.opendocument_files import (
    cell,
    number_cell,
    opendocument_of,
    opendocument_parts,
    paragraph,
    table,
)
from tests.unit.ingest.outlook_files import msg_of

Read = Callable[[bytes, str], ParsedDocument]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(data: bytes, name: str) -> ParsedDocument:
        path = tmp_path / "spooled"
        path.write_bytes(data)
        return parse(path, detection.detect_media_type(io.BytesIO(data), name), name)

    return read


def _texts(document: ParsedDocument) -> list[str]:
    return [block.text for block in document.blocks]


# -- OpenDocument --


def test_odt_headings_lists_tables_and_notes_are_what_they_are(read: Read) -> None:
    noted = "<text:note-citation>1</text:note-citation><text:note-body><text:p>In summer.</text:p></text:note-body>"
    note = f"<text:note>{noted}</text:note>"
    body = (
        '<text:tracked-changes><text:p>Deleted</text:p></text:tracked-changes><text:h text:outline-level="2">Ferries</text:h>'
        f'<text:p>They leave<text:s text:c="2"/>at <text:span>seven</text:span>{note}.<office:annotation><text:p>Sure?</text:p>'
        "</office:annotation></text:p><text:list><text:list-item><text:p>One</text:p><text:list><text:list-item><text:p>Two</text:p>"
        "</text:list-item></text:list></text:list-item></text:list>"
        + table(
            [
                [cell("Line"), cell("Guests", 'table:number-columns-spanned="2"'), "<table:covered-table-cell/>"],
                [cell("Norderney"), cell("500"), cell("300")],
            ]
        )
    )
    document = read(opendocument_of("text", body, title="The timetable"), "a.odt")
    assert document.title == "The timetable"
    assert [(block.kind, block.level, block.text) for block in document.blocks] == [
        (BlockKind.HEADING, 2, "Ferries"),
        (BlockKind.TEXT, 0, "They leave  at seven."),
        (BlockKind.TEXT, 0, "Footnote: In summer."),
        (BlockKind.LIST, 0, "- One"),
        (BlockKind.LIST, 0, "  - Two"),
        (BlockKind.TABLE, 0, "Line: Norderney; Guests: 500; Guests: 300"),
    ]


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ('style:text-position="super 58%"', "Up to 10⁶ litres."),
        ('style:text-position="33% 58%"', "Up to 10⁶ litres."),
        ('style:text-position="-33% 58%"', "Up to 10₆ litres."),
        ('style:text-line-through-style="solid"', "Up to 10 litres."),
        ('style:text-line-through-style="none" style:text-position="0% 100%"', "Up to 106 litres."),
    ],
)
def test_odt_digits_that_stand_raised_join_no_number_and_struck_text_is_left_out(
    read: Read, properties: str, text: str
) -> None:
    style = f'<style:style style:name="T1"><style:text-properties {properties}/></style:style>'
    span = '<text:span text:style-name="T1">6</text:span>'
    body = paragraph(f"Up to 10{span} litres.") + table([[cell("Tank"), cell(f"Up to 10{span} litres.")]])
    document = read(opendocument_of("text", body, styles=style), "a.odt")
    assert _texts(document) == [text, f"Tank: {text}"]


def test_odt_pictures_are_reported_as_left_out(read: Read) -> None:
    document = read(opendocument_of("text", paragraph("Words<draw:frame><draw:image/></draw:frame>")), "a.odt")
    assert document.warnings == ("1 picture was left out",)


def test_ods_sheets_keep_their_names_and_values_as_they_are_typed(read: Read) -> None:
    hidden = '<style:style style:name="ta2"><style:table-properties table:display="false"/></style:style>'
    ships = [
        [cell("Ship"), cell("Guests"), cell("Price"), cell("Built"), cell("Open")],
        [
            cell("Wega"),
            number_cell(12345, "12,345"),
            number_cell(1234.5, "1.234,50"),
            cell("1.3.2024", 'office:value-type="date" office:date-value="2024-03-01"'),
            cell("TRUE", 'office:value-type="boolean"'),
        ],
        [cell("", 'table:number-columns-repeated="16384"')],
    ]
    data = opendocument_of(
        "spreadsheet",
        table(ships, name="Fleet") + table([[cell("x")]], name="Secret", attributes='table:style-name="ta2"'),
        styles=hidden,
    )
    document = read(data, "a.ods")
    assert _texts(document) == ["Fleet", "Ship: Wega; Guests: 12345; Price: 1234.50; Built: 2024-03-01; Open: TRUE"]
    assert document.warnings == ("1 hidden sheet was left out",)


@pytest.mark.parametrize(
    ("kind", "value", "shown", "text"),
    [
        ("currency", -1234.5, "-1.234,50 €", "-1234.50 €"),
        ("currency", -1234.5, "($1,234.50)", "-$1234.50"),
        ("percentage", 0.255, "25,5 %", "25.5 %"),
        ("float", 1012, "1 012 kg", "1012 kg"),
        ("float", 1234567, "1.2M", "1.2M"),
        ("float", 7, "seven", "seven"),
    ],
)
def test_ods_number_keeps_its_currency_and_unit(read: Read, kind: str, value: float, shown: str, text: str) -> None:
    rows = [
        [cell("Ship"), cell("Sum")],
        [cell("Wega"), cell(shown, f'office:value-type="{kind}" office:value="{value}"')],
    ]
    assert _texts(read(opendocument_of("spreadsheet", table(rows)), "a.ods")) == [f"Ship: Wega; Sum: {text}"]


def test_ods_cell_over_several_rows_counts_for_each_of_them(read: Read) -> None:
    rows = [
        [cell("Line"), cell("Ship")],
        [cell("Norderney", 'table:number-rows-spanned="2"'), cell("Wega")],
        ["<table:covered-table-cell/>", cell("Vega")],
    ]
    document = read(opendocument_of("spreadsheet", table(rows)), "a.ods")
    assert _texts(document) == ["Line: Norderney; Ship: Wega", "Line: Norderney; Ship: Vega"]


def test_ods_row_repeated_beyond_all_use_is_cut_and_reported(read: Read) -> None:
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell("a" * 200) * 2}</table:table-row>'
    document = read(opendocument_of("spreadsheet", f'<table:table table:name="S">{row}</table:table>'), "a.ods")
    assert "was read up to row" in document.warnings[0]


def test_opendocument_is_known_by_its_first_part_and_its_password_by_its_manifest(read: Read) -> None:
    assert _texts(read(opendocument_of("text", paragraph("Words")), "a.zip")) == ["Words"]
    parts = opendocument_parts("text", paragraph("x"))
    entry = '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><m:encryption-data/></m:manifest>'
    with pytest.raises(DocumentRejected) as rejected:
        read(zip_of({**parts, "META-INF/manifest.xml": entry}), "a.odt")
    assert rejected.value.reason == "FILE_ENCRYPTED"


# -- rich text --


def test_rtf_paragraphs_and_tables_are_read_and_what_is_lost_is_said(read: Read) -> None:
    code = (
        rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0 Arial;}}{\info{\title The timetable}}"
        rb"\pard They leave \b at\b0  \'f1\'e5\'ec\'fc \u1055?.\par\trowd\cellx100\cellx200 Ship\cell Guests\cell\row"
        rb"\trowd Wega\cell 500\cell\row{\pict 0102}{\footnote lost}\pard End.\par}"
    )
    document = read(code, "letter.doc")
    assert (document.title, _texts(document)) == (
        "The timetable",
        ["They leave at семь П.", "Ship: Wega; Guests: 500", "End."],
    )
    assert document.warnings == ("1 picture was left out", "1 footnote was left out")


# -- JSON --


def test_json_records_become_rows_with_long_texts_under_them(read: Read) -> None:
    port = {"city": "Norddeich", "depth_m": 4.50}
    records = [
        {"name": "Wega", "built": 1990, "open": True, "none": None, "port": port, "tags": ["car", "train"]},
        {"name": "Vega", "log": "It was late. " * 40, "crew": [{"name": "Anna", "rank": "captain"}]},
    ]
    document = read(json.dumps(records).encode(), "ships.json")
    assert [(block.kind, block.text) for block in document.blocks] == [
        (
            BlockKind.ROW,
            "name: Wega; built: 1990; open: true; port.city: Norddeich; port.depth_m: 4.5; tags: car, train",
        ),
        (BlockKind.ROW, "name: Vega"),
        (BlockKind.TEXT, "log: " + ("It was late. " * 40).strip()),
        (BlockKind.ROW, "crew; name: Anna; rank: captain"),
    ]


def test_json_lines_that_are_broken_are_counted(read: Read) -> None:
    document = read(b'{"a": 1}\nbroken\n\n{"a": 12345678901234567890}\n', "a.jsonl")
    assert _texts(document) == ["a: 1", "a: 12345678901234567890"]
    assert document.warnings == ("1 lines are no JSON and were left out",)
    assert _texts(read(b'{"a": 1}\n{"a": 2}\n', "a.json")) == ["a: 1", "a: 2"]


def test_json_that_only_begins_like_an_export_is_read_as_what_it_is(read: Read) -> None:
    assert _texts(read(b'{"name": "x", "messages": "none"}', "a.json")) == ["name: x; messages: none"]


@pytest.mark.parametrize(("data", "name"), [(b"{", "a.json"), (b"no", "a.jsonl")])
def test_what_is_no_json_is_damaged(read: Read, data: bytes, name: str) -> None:
    with pytest.raises(DocumentRejected) as rejected:
        read(data, name)
    assert rejected.value.reason == "FILE_DAMAGED"


# -- Outlook --


def test_message_of_outlook_is_read_with_its_fields_and_attachments(read: Read) -> None:
    data = msg_of(
        {0x0037: "The ferry", 0x0C1A: "Anna", 0x0C1F: "anna@example.org", 0x0E04: "Ben", 0x1000: "It is late.\r\n\r\nSorry."},
        sent_s=1_704_103_200,
        attachments={"notes.txt": b"From the bridge.", "photo.jpg": b"\xff\xd8" * 3000},
    )  # fmt: skip
    document = read(data, "mail.msg")
    assert document.title == "The ferry"
    assert _texts(document) == [
        'From: "Anna" <anna@example.org>',
        "It is late.",
        "Sorry.",
        "Attachment: photo.jpg",
        "Attachment: notes.txt",
        "From the bridge.",
    ]
    assert document.warnings == ("the attachment photo.jpg was not read; upload it on its own",)
    assert document.blocks[1].context == (
        'From: "Anna" <anna@example.org>; To: Ben; Date: 2024-01-01 10:00 UTC',
        "The ferry",
    )
    assert document.blocks[0].metadata == {"author": "Anna", "date": "2024-01-01T10:00:00Z"}


def test_message_of_outlook_without_plain_text_is_read_from_its_page(read: Read) -> None:
    page = msg_of({0x0037: "The ferry"}, binary={0x1013: "<p>Zu spät.</p>".encode()})
    assert _texts(read(page, "a.msg"))[-1] == "Zu spät."


HELLO = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
)
"""[MS-OXRTFCP] 3.1.1."""
REACHING_INTO_ITSELF = bytes.fromhex("1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0")
"""[MS-OXRTFCP] 3.1.2: a copy that is longer than what was there when it began."""


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        (HELLO, "hello world"),
        (REACHING_INTO_ITSELF, "WXYZWXYZWXYZWXYZWXYZ"),
        (b"\x1c\0\0\0\x10\0\0\0MELA\0\0\0\0{\\rtf1 As it is.}", "As it is."),
    ],
    ids=["packed", "reaching into itself", "not packed"],
)
def test_message_of_outlook_with_rich_text_only_is_unpacked(read: Read, packed: bytes, text: str) -> None:
    message = msg_of({0x0037: "The ferry"}, binary={0x1009: packed})
    assert _texts(read(message, "a.msg"))[-1] == text


def test_page_packed_in_rich_text_is_read_without_its_marks(read: Read) -> None:
    code = (
        rb"{\rtf1\ansi\ansicpg1252\fromhtml1 \deff0{\fonttbl{\f0 Arial;}}{\*\htmltag64 <p>}\htmlrtf {\htmlrtf0 Zu sp\'e4t."
        rb"{\*\htmltag72 </p>}\htmlrtf\par}\htmlrtf0 {\*\htmltag64 <p>}Ahoi{\*\htmltag72 </p>}}"
    )
    packed = (len(code) + 12).to_bytes(4, "little") + len(code).to_bytes(4, "little") + b"MELA" + bytes(4) + code
    assert _texts(read(msg_of({0x0037: "The ferry"}, binary={0x1009: packed}), "a.msg"))[-2:] == ["Zu spät.", "Ahoi"]


@pytest.mark.parametrize("packed", [b"packed", HELLO[:-8], HELLO[:8] + b"XXXX" + HELLO[12:]])
def test_damaged_rich_text_of_a_message_is_reported_and_the_rest_is_read(read: Read, packed: bytes) -> None:
    message = read(msg_of({0x0037: "The ferry"}, binary={0x1009: packed}), "a.msg")
    assert _texts(message) == ["Subject: The ferry"]
    assert message.warnings == ("the rich text of the message is damaged and was left out; save it as .html",)


# -- gzip --


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"It is late.", "a.txt.gz"),
        (docx_of(word_paragraph("It is late.")), "a.docx.gz"),
        (pdf_of([["It is late."]]), "a.pdf.gz"),
        (xlsx_of([["It is late."]]), "a.xlsx.GZ"),
        (b'{"a": "It is late."}', "a.jsonl.gz"),
    ],
    ids=["txt", "docx", "pdf", "xlsx", "jsonl"],
)
def test_file_packed_by_gzip_is_read_as_what_it_is(read: Read, data: bytes, name: str) -> None:
    document = read(gzip.compress(data), name)
    assert document.title == "a"
    assert "It is late." in _texts(document)[-1]


def test_gzip_that_was_cut_off_gives_what_stands_before_with_a_warning(read: Read) -> None:
    packed = gzip.compress(b"".join(b"Line %d is here.\n\n" % i for i in range(2000)))
    document = read(packed[: len(packed) // 2], "a.log.gz")
    assert _texts(document)[0] == "Line 0 is here."
    assert document.warnings == ("the file was cut off or changed where it is packed; its end is missing",)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(bytes(8 * 1024 * 1024)), "ARCHIVE_BOMB"),
        (gzip.compress(gzip.compress(b"words")), "UNSUPPORTED_TYPE"),
        (gzip.compress(b"\0" * 257 + b"ustar"), "UNSUPPORTED_TYPE"),
        (b"\x1f\x8b\x08\0garbage", "FILE_DAMAGED"),
        (gzip.compress(b""), "EMPTY_FILE"),
    ],
    ids=["bomb", "packed twice", "archive", "garbage", "empty"],
)
def test_gzip_that_holds_no_document_is_refused_with_its_reason(read: Read, data: bytes, reason: str) -> None:
    with pytest.raises(DocumentRejected) as rejected:
        read(data, "a.txt.gz")
    assert rejected.value.reason == reason


def test_odt_table_in_a_table_keeps_its_columns_and_layouts_their_lists(tmp_path: Path) -> None:
    inner = table([[cell("Zone"), cell("Price")], [cell("North"), cell("77")]])
    nested = f"<table:table-cell><text:p>Prices</text:p>{inner}</table:table-cell>"
    body = table([[cell("Offer"), cell("Details")], [cell("A 1"), nested]])
    layout = "<text:list><text:list-item><text:p>Item</text:p></text:list-item></text:list><text:h>Head</text:h>"
    body += table([[f"<table:table-cell>{layout}</table:table-cell>"]])
    path = tmp_path / "a.odt"
    path.write_bytes(opendocument_of("text", body))
    assert [block.text for block in parse(path, detection.ODT, "a.odt").blocks] == [
        "Offer: A 1; Details: Prices",
        "Zone: North; Price: 77",
        "- Item",
        "Head",
    ]


def test_ods_formula_without_a_value_is_said(tmp_path: Path) -> None:
    formula = '<table:table-cell table:formula="of:=SUM([.B1:.B2])"/>'
    path = tmp_path / "a.ods"
    path.write_bytes(opendocument_of("spreadsheet", table([[cell("Total"), formula]])))
    assert parse(path, detection.ODS, "a.ods").warnings == ("1 uncomputed formula was left out",)


def test_odt_numbered_lists_have_their_numbers(read: Read) -> None:
    numbered = "".join(
        f'<text:list-level-style-number text:level="{level}" {look}/>'
        for level, look in ((1, 'style:num-format="1" style:num-suffix="."'),
                            (2, 'style:num-format="a" style:num-prefix="(" style:num-suffix=")" text:display-levels="2"'))
    )  # fmt: skip
    styles = f'<text:list-style style:name="L1">{numbered}</text:list-style>'

    def item(text: str, inner: str = "", attributes: str = "") -> str:
        return f"<text:list-item {attributes}><text:p>{text}</text:p>{inner}</text:list-item>"

    seventh = item("New", "", 'text:start-value="7"')
    nested = f"<text:list>{item('north')}{item('south', '<text:p>more</text:p>')}</text:list>"
    body = f'<text:list text:style-name="L1">{item("Open")}{item("Wait", nested)}</text:list><text:p>Break.</text:p>'
    body += f'<text:list text:style-name="L1" text:continue-numbering="true">{item("Close")}</text:list>'
    body += f'<text:list text:style-name="L1">{seventh}{item("Next")}</text:list>'
    body += f'<text:list text:style-name="L9">{item("bullet")}</text:list>'
    assert [block.text for block in read(opendocument_of("text", body, styles=styles), "a.odt").blocks] == [
        "1. Open", "2. Wait", "  (2.a) north", "  (2.b) south", "  more", "Break.", "3. Close", "7. New", "8. Next", "- bullet"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (r"4.1 x 10{\super 6} cells", "4.1 x 10⁶ cells"),
        (r"25\super 2\nosupersub  percent", "25 ² percent"),
        (r"25{\up6 3} kg, H{\sub 2}O", "25 ³ kg, H2O"),
        (r"10{\super -4\plain  m", "10⁻⁴ m"),
        (r"{\strike 300}450, {\deleted gone}{\v secret}due", "450, due"),
        (r"{\b0\strike0 kept}", "kept"),
        (r"{\*\unknown \super 2}5 {\super a}", "5 a"),
        (r"caf\'e9 10{\super\u54?\'b2}", "café 10⁶²"),
        (r"{\pntext 1.\tab}Open", "1.\tOpen"),
    ],
)
def test_rtf_digits_that_stand_raised_join_no_number_and_unseen_text_is_left_out(
    read: Read, code: str, text: str
) -> None:
    assert [block.text for block in read(rb"{\rtf1\ansi " + code.encode() + rb"\par}", "a.rtf").blocks] == [text]


def test_rtf_says_what_a_reader_does_not_see(read: Read) -> None:
    parsed = read(rb"{\rtf1\ansi {\strike a}{\deleted b}{\v c}{\v d} e\par}", "a.rtf")
    assert parsed.warnings == (
        "1 struck-out passage was left out",
        "1 deleted passage was left out",
        "2 hidden passages were left out",
    )
