"""What Word, PowerPoint, Excel and e-book files become."""

import datetime as dt
import io
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest

from services.ingest.errors import DocumentRejected
from services.ingest.reading import detection
from services.ingest.reading.child.prepare import prepare
from services.ingest.reading.chunks.chunking import chunk
from services.ingest.reading.chunks.tokens import EstimatedTokens
from services.ingest.reading.cleaning import clean
from services.ingest.reading.models import BlockKind, CleanDocument, ParsedDocument, PrepareRequest
from services.ingest.reading.parsers.registry import check_readable, parse
from tests.unit.ingest.office_files import (
    docx_of,
    docx_parts,
    epub_of,
    epub_parts,
    paragraph,
    pptx_of,
    pptx_parts,
    relationships,
    shape,
    xlsx_of,
    xlsx_parts,
    zip_of,
)

Read = Callable[[bytes, str], ParsedDocument]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(data: bytes, name: str) -> ParsedDocument:
        path = tmp_path / "spooled"
        path.write_bytes(data)
        return parse(path, detection.detect_media_type(io.BytesIO(path.read_bytes()), name), name)

    return read


def _texts(document: ParsedDocument) -> list[str]:
    return [block.text for block in document.blocks]


def _run(xml: str) -> str:
    return f"<w:p>{xml}</w:p>"


def _cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


# -- Word --


def test_docx_headings_come_from_styles_and_outline_levels(read: Read) -> None:
    based = '<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="Kapitel"/><w:basedOn w:val="H2"/></w:style>'
    body = (
        paragraph("Ferries", "H1")
        + paragraph("Winter", "Own")
        + paragraph("Marked only", "", '<w:outlineLvl w:val="2"/>')
        + paragraph("Not one", "H1", '<w:outlineLvl w:val="9"/>')
        + paragraph("Words.")
    )
    document = read(docx_of(body, styles=based), "a.docx")
    found = [(block.kind, block.level, block.text) for block in document.blocks]
    assert found == [
        (BlockKind.HEADING, 1, "Ferries"),
        (BlockKind.HEADING, 2, "Winter"),
        (BlockKind.HEADING, 3, "Marked only"),
        (BlockKind.TEXT, 0, "Not one"),
        (BlockKind.TEXT, 0, "Words."),
    ]


def test_docx_title_stands_above_its_headings_and_names_the_document(read: Read) -> None:
    style = '<w:style w:type="paragraph" w:styleId="T"><w:name w:val="Title"/></w:style>'
    document = read(docx_of(paragraph("Annual Report", "T") + paragraph("Costs", "H1"), styles=style), "a.docx")
    assert document.title == "Annual Report"
    assert [(block.text, block.level) for block in document.blocks] == [("Annual Report", 1), ("Costs", 2)]


def test_docx_lists_have_the_numbers_that_word_shows(read: Read) -> None:
    levels = "".join(
        f'<w:lvl w:ilvl="{depth}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/></w:lvl>'
        for depth, kind, text in ((0, "decimal", "%1."), (1, "lowerLetter", "%1.%2)"), (2, "bullet", "o"))
    )
    numbering = (
        f'<w:abstractNum w:abstractNumId="5">{levels}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="5"/></w:num>'
    )

    def item(text: str, depth: int) -> str:
        return paragraph(text, "", f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="1"/></w:numPr>')

    body = item("one", 0) + item("sub", 1) + item("sub", 1) + item("dot", 2) + item("two", 0) + item("again", 1)
    document = read(docx_of(body, numbering=numbering), "a.docx")
    assert _texts(document) == ["1. one", "  1.a) sub", "  1.b) sub", "    - dot", "2. two", "  2.a) again"]


def test_docx_shows_what_a_reader_sees(read: Read) -> None:
    deleted = "<w:del><w:r><w:delText>deleted</w:delText></w:r></w:del>"
    hidden = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>"
    body = (
        _run(f"<w:r><w:t>Kept </w:t></w:r>{deleted}<w:ins><w:r><w:t>inserted</w:t></w:r></w:ins>")
        + _run(f'{hidden}<w:hyperlink r:id="x"><w:r><w:t>link text</w:t></w:r></w:hyperlink>')
        + _run("<w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r>")
        + "<w:sdt><w:sdtContent>" + paragraph("In a control.") + "</w:sdtContent></w:sdt>"
    )  # fmt: skip
    assert _texts(read(docx_of(body), "a.docx")) == ["Kept inserted", "link text", "a\tb\nc", "In a control."]


def test_docx_footnotes_follow_their_paragraph_and_running_headers_are_left_out(read: Read) -> None:
    note = f'<w:footnote w:id="2">{paragraph("See the statutes.")}</w:footnote>'
    body = _run('<w:r><w:t>Members vote.</w:t><w:footnoteReference w:id="2"/></w:r>') + paragraph("Next.")
    parts = docx_parts(body, footnotes=note)
    parts["word/header1.xml"] = "<w:hdr>Running header</w:hdr>"
    assert _texts(read(zip_of(parts), "a.docx")) == ["Members vote.", "Footnote: See the statutes.", "Next."]


def test_docx_table_rows_carry_column_names_and_merged_cells_are_filled_in(read: Read) -> None:
    rows = (
        "<w:tr><w:trPr><w:tblHeader/></w:trPr>" + _cell("Ship") + _cell("2024", '<w:gridSpan w:val="2"/>') + "</w:tr>"
        "<w:tr><w:trPr><w:tblHeader/></w:trPr>" + _cell("") + _cell("Trips") + _cell("Guests") + "</w:tr>"
        "<w:tr>" + _cell("Wega", '<w:vMerge w:val="restart"/>') + _cell("10") + _cell("500") + "</w:tr>"
        "<w:tr>" + _cell("", "<w:vMerge/>") + _cell("12") + _cell("600") + "</w:tr>"
        "<w:tr><w:trPr><w:del/></w:trPr>" + _cell("Deleted") + _cell("0") + _cell("0") + "</w:tr>"
    )
    document = read(docx_of(f"<w:tbl>{rows}</w:tbl>"), "a.docx")
    assert _texts(document) == [
        "Ship: Wega; 2024 / Trips: 10; 2024 / Guests: 500",
        "Ship: Wega; 2024 / Trips: 12; 2024 / Guests: 600",
    ]


def test_docx_table_of_one_column_is_text(read: Read) -> None:
    assert _texts(read(docx_of(f"<w:tbl><w:tr>{_cell('Boxed words.')}</w:tr></w:tbl>"), "a.docx")) == ["Boxed words."]


def test_docx_in_strict_form_is_read_too(read: Read) -> None:
    parts = docx_parts(paragraph("Strict words.", "H1"))
    strict = {
        name: str(part).replace(
            "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
            "http://purl.oclc.org/ooxml/wordprocessingml/main",
        )
        for name, part in parts.items()
    }
    assert [block.kind for block in read(zip_of(strict), "a.docx").blocks] == [BlockKind.HEADING]


# -- PowerPoint --


def test_pptx_slides_are_pages_with_title_body_table_and_notes(read: Read) -> None:
    table = (
        "<p:graphicFrame><a:tbl>"
        + "".join(
            "<a:tr>" + "".join(f"<a:tc><a:txBody><a:p><a:r><a:t>{c}</a:t></a:r></a:p></a:txBody></a:tc>" for c in row) + "</a:tr>"
            for row in (("Ship", "Guests"), ("Wega", "500"))
        )
        + "</a:tbl></p:graphicFrame>"
    )  # fmt: skip
    first = shape(["Body one", "Body two"], "body") + shape(["The title"], "title") + shape(["7"], "sldNum") + table
    data = pptx_of([first, "", f"<p:grpSp>{shape(['Grouped words'])}</p:grpSp>"], notes={1: "Say hello."})
    document = read(data, "talk.pptx")
    assert document.title == "The title"
    assert document.page_statuses == ("text", "empty", "text")
    assert [(block.kind, block.page, block.text) for block in document.blocks] == [
        (BlockKind.HEADING, 1, "The title"),
        (BlockKind.LIST, 1, "- Body one"),
        (BlockKind.LIST, 1, "- Body two"),
        (BlockKind.TABLE, 1, "Ship: Wega; Guests: 500"),
        (BlockKind.TEXT, 1, "Say hello."),
        (BlockKind.TEXT, 3, "Grouped words"),
    ]


def test_pptx_chunks_stay_on_their_slide(tmp_path: Path) -> None:
    path = tmp_path / "talk.pptx"
    path.write_bytes(pptx_of([shape([f"Title {n}"], "title") + shape([f"Words of slide {n}."]) for n in (1, 2, 3)]))
    prepared = prepare(
        PrepareRequest(str(path), detection.PPTX, "talk.pptx", "", 256), lambda _: None, EstimatedTokens()
    )
    assert prepared.chunker == "pages"
    assert [(chunk.page, chunk.heading_path) for chunk in prepared.chunks] == [
        (n, (f"Title {n}",)) for n in (1, 2, 3)
    ]  # fmt: skip


# -- Excel --


def _workbook(fill: Callable[[openpyxl.Workbook], None]) -> bytes:
    book = openpyxl.Workbook()
    fill(book)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_xlsx_cells_are_written_as_they_are_shown(read: Read) -> None:
    def fill(book: openpyxl.Workbook) -> None:
        sheet = book.active
        sheet.append(["Day", "Time", "Share", "Price", "Count", "Open"])
        sheet.append([dt.date(2024, 3, 1), dt.datetime.fromisoformat("2024-03-01T07:30"), 0.125, 9.5, 12345, True])
        sheet["C2"].number_format, sheet["D2"].number_format = "0.0%", '#,##0.00 "EUR"'

    (row,) = read(_workbook(fill), "a.xlsx").blocks
    assert (
        row.text == "Day: 2024-03-01; Time: 2024-03-01 07:30; Share: 12.5%; Price: 9.50 EUR; Count: 12345; Open: TRUE"
    )
    assert row.kind is BlockKind.ROW


def test_xlsx_captions_notes_and_header_rows_are_told_apart(read: Read) -> None:
    def fill(book: openpyxl.Workbook) -> None:
        sheet = book.active
        sheet.title = "Traffic"
        for row in (["Traffic report"], [], ["In millions", "2023", None, "Total"], [None, "Cars", "Trucks", None], [],
                    ["North", 5, 6, 11], ["South", 7, 8, 15], ["(a) Estimated."]):  # fmt: skip
            sheet.append(row)
        sheet["B3"] = "Year 2023"
        sheet.merge_cells("B3:C3")
        book.create_sheet("Secret").sheet_state = "hidden"

    document = read(_workbook(fill), "a.xlsx")
    assert _texts(document) == [
        "Traffic",
        "Traffic report",
        "In millions: North; Year 2023 / Cars: 5; Year 2023 / Trucks: 6; Total: 11",
        "In millions: South; Year 2023 / Cars: 7; Year 2023 / Trucks: 8; Total: 15",
        "(a) Estimated.",
    ]
    assert document.warnings == ("1 hidden sheet was left out",)


def test_xlsx_tables_side_by_side_keep_their_own_columns(read: Read) -> None:
    rows = [["Ship", "Guests", "", "", "Port", "Depth"], ["Wega", "many", "", "", "Norddeich", "4 m"]]
    assert _texts(read(xlsx_of(rows), "a.xlsx")) == ["Data", "Ship: Wega; Guests: many", "Port: Norddeich; Depth: 4 m"]


def test_xlsx_cell_merged_over_rows_counts_for_each_of_them(read: Read) -> None:
    def fill(book: openpyxl.Workbook) -> None:
        for row in (["Line", "Ship"], ["Norderney", "Wega"], [None, "Vega"]):
            book.active.append(row)
        book.active.merge_cells("A2:A3")

    assert _texts(read(_workbook(fill), "a.xlsx")) == ["Line: Norderney; Ship: Wega", "Line: Norderney; Ship: Vega"]


def test_xlsx_small_sheets_are_passages_of_their_own_and_say_their_name_once(read: Read) -> None:
    def fill(book: openpyxl.Workbook) -> None:
        book.active.title = "Cups"
        later = book.create_sheet("Cups since 67")
        for sheet, count in ((book.active, 13), (later, 0)):
            for row in ([sheet.title], ["Team", "Cups"], ["Leafs", count]):
                sheet.append(row)

    passages = chunk(clean(read(_workbook(fill), "a.xlsx")), EstimatedTokens(), window_tokens=512)
    assert [(each.heading_path, each.text) for each in passages] == [
        (("Cups",), "Cups\n\nTeam: Leafs; Cups: 13"),
        (("Cups since 67",), "Cups since 67\n\nTeam: Leafs; Cups: 0"),
    ]


# -- e-books --


def test_epub_chapters_come_in_spine_order_with_titles_from_the_contents(read: Read) -> None:
    chapters = {
        "b.xhtml": "<p>First in the spine.</p>",
        "a.xhtml": "<h1>Own heading</h1><p>Second.</p><script>x()</script>",
    }
    document = read(epub_of(chapters, toc={"b.xhtml": "Chapter One", "a.xhtml#x": "Chapter Two"}), "a.epub")
    assert document.title == "The Lighthouse"
    assert _texts(document) == ["Chapter One", "First in the spine.", "Own heading", "Second."]


def test_epub_with_obfuscated_fonts_is_not_protected(read: Read) -> None:
    font = '<e><EncryptionMethod xmlns="http://www.w3.org/2001/04/xmlenc#" Algorithm="http://www.idpf.org/2008/embedding"/></e>'
    parts = {**epub_parts({"c.xhtml": "<p>Words.</p>"}), "META-INF/encryption.xml": font}
    assert _texts(read(zip_of(parts), "a.epub")) == ["Words."]


def test_epub_without_one_of_its_chapters_is_read_with_a_warning(read: Read) -> None:
    parts = epub_parts({"a.xhtml": "<p>Here.</p>", "b.xhtml": "<p>Gone.</p>"})
    del parts["OEBPS/text/b.xhtml"]
    document = read(zip_of(parts), "a.epub")
    assert _texts(document) == ["Here."]
    assert document.warnings == ("the chapter OEBPS/text/b.xhtml is missing or damaged and was left out",)


# -- kinds --


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (docx_of(""), "letter.bin", detection.DOCX),
        (docx_of(""), "letter.xlsx", detection.DOCX),
        (pptx_of([""]), "talk", detection.PPTX),
        (xlsx_of([["a"]]), "table.zip", detection.XLSX),
        (epub_of({"c.xhtml": ""}), "book.zip", detection.EPUB),
        (zip_of({"a.txt": "words"}), "a.zip", detection.ZIP),
        (zip_of({"a.txt": "words"}), "a.docx", detection.DOCX),
        (docx_of("")[:-30], "cut.docx", detection.DOCX),
        (zip_of({"[Content_Types].xml": "", "_rels/.rels": relationships({})}), "a.zip", detection.ZIP),
    ],
)
def test_container_is_known_by_its_parts(tmp_path: Path, data: bytes, name: str, expected: str) -> None:
    path = tmp_path / "spooled"
    path.write_bytes(data)
    assert detection.detect_media_type(io.BytesIO(path.read_bytes()), name) == expected


@pytest.mark.parametrize(
    ("media_type", "advice"),
    [
        ("application/msword", "save it as .docx"),
        ("application/vnd.ms-excel", "save it as .xlsx"),
        ("application/vnd.ms-powerpoint", "save it as .pptx"),
        ("application/zip", "unpack it"),
    ],
)
def test_refusal_says_what_to_do_with_the_file(media_type: str, advice: str) -> None:
    with pytest.raises(DocumentRejected, match=advice) as rejected:
        check_readable(media_type, "a.doc")
    assert rejected.value.reason == "UNSUPPORTED_TYPE"


def test_text_of_an_office_file_keeps_its_structure_through_cleaning(read: Read) -> None:
    cleaned: CleanDocument = clean(read(docx_of(paragraph("Ferries", "H1") + paragraph("They leave.")), "a.docx"))
    assert cleaned.text == "Ferries\n\nThey leave."
    assert cleaned.sections[1].path == (("Ferries", 0),)


# -- what a reader of Word sees, in odd places --


def test_docx_paragraphs_are_one_where_the_mark_between_them_was_deleted(read: Read) -> None:
    deleted = "<w:rPr><w:del w:id='9' w:author='A'/></w:rPr>"
    body = paragraph("Disputes go to the court ", "", deleted) + paragraph("of Tarsk.", "H1") + paragraph("End.")
    document = read(docx_of(body), "a.docx")
    assert [(block.kind, block.text) for block in document.blocks] == [
        (BlockKind.HEADING, "Disputes go to the court of Tarsk."),
        (BlockKind.TEXT, "End."),
    ]


def test_docx_text_that_is_crossed_out_is_left_out_and_counted(read: Read) -> None:
    struck = "<w:r><w:rPr><w:strike/></w:rPr><w:t>300</w:t></w:r>"
    off = '<w:r><w:rPr><w:strike w:val="0"/></w:rPr><w:t> 450 a day.</w:t></w:r>'
    document = read(docx_of(_run(f"<w:r><w:t>The fee is </w:t></w:r>{struck}{struck}{off}")), "a.docx")
    assert _texts(document) == ["The fee is  450 a day."]
    assert document.warnings == ("1 struck-out passage was left out",)


def test_docx_symbols_and_check_boxes_give_their_characters(read: Read) -> None:
    def symbol(font: str, code: str) -> str:
        return f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'

    def box(state: str) -> str:
        return f"<w:r><w:fldChar><w:ffData><w:checkBox>{state}</w:checkBox></w:ffData></w:fldChar></w:r>"

    body = _run(symbol("Symbol", "F06D") + "<w:r><w:t>m </w:t></w:r>" + symbol("Wingdings", "F0FE"))
    body += _run(
        box('<w:default w:val="0"/><w:checked/>') + "<w:r><w:t> yes </w:t></w:r>" + box('<w:default w:val="0"/>')
    )
    assert _texts(read(docx_of(body), "a.docx")) == ["μm ☑", "[x] yes [ ]"]


def test_docx_table_in_a_table_keeps_its_columns(read: Read) -> None:
    inner = f"<w:tbl><w:tr>{_cell('Zone')}{_cell('Price')}</w:tr><w:tr>{_cell('North')}{_cell('77')}</w:tr></w:tbl>"
    nested = f"<w:tc>{paragraph('Prices')}{inner}{paragraph('')}</w:tc>"
    table = f"<w:tbl><w:tr>{_cell('Offer')}{_cell('Details')}</w:tr><w:tr>{_cell('A 1')}{nested}</w:tr></w:tbl>"
    assert _texts(read(docx_of(table), "a.docx")) == ["Offer: A 1; Details: Prices", "Zone: North; Price: 77"]
    layout = f"<w:tbl><w:tr><w:tc>{paragraph('Above')}{inner}{paragraph('')}</w:tc></w:tr></w:tbl>"
    assert _texts(read(docx_of(layout), "a.docx")) == ["Above", "Zone: North; Price: 77"]


def test_docx_footnote_in_a_table_is_read(read: Read) -> None:
    note = f'<w:footnote w:id="2">{paragraph("Without tax.")}</w:footnote>'
    noted = '<w:tc><w:p><w:r><w:t>77</w:t><w:footnoteReference w:id="2"/></w:r></w:p></w:tc>'
    table = f"<w:tbl><w:tr>{_cell('Zone')}{_cell('Price')}</w:tr><w:tr>{_cell('North')}{noted}</w:tr></w:tbl>"
    assert _texts(read(docx_of(table, footnotes=note), "a.docx")) == [
        "Zone: North; Price: 77",
        "Footnote: Without tax.",
    ]


def test_pptx_hidden_slide_is_read_and_said(read: Read) -> None:
    parts = pptx_parts([shape(["Shown."]), shape(["Not shown."])])
    parts["ppt/slides/slide2.xml"] = str(parts["ppt/slides/slide2.xml"]).replace("<p:sld ", '<p:sld show="0" ')
    document = read(zip_of(parts), "a.pptx")
    assert _texts(document) == ["Shown.", "Not shown."]
    assert document.warnings == ("slide 2 is hidden; what is on it was read",)


def test_xlsx_says_what_is_hidden_and_which_formulas_have_no_value(read: Read) -> None:
    def fill(book: openpyxl.Workbook) -> None:
        sheet = book.active
        sheet.title = "Costs"
        for row in (["Item", "Sum", "Secret"], ["Rope", 4, "x"], ["Buoy", 8, "y"], ["Total", "=SUM(B2:B3)", None]):
            sheet.append(row)
        sheet["A5"], sheet["B5"] = "Time", dt.timedelta(hours=26, minutes=30)
        sheet.row_dimensions[3].hidden = True
        sheet.column_dimensions["C"].hidden = True

    document = read(_workbook(fill), "a.xlsx")
    assert _texts(document) == [
        "Costs",
        "Item: Rope; Sum: 4; Secret: x",
        "Item: Buoy; Sum: 8; Secret: y",
        "Total",
        "Item: Time; Sum: 26:30:00",
    ]
    hidden, formulas = document.warnings
    assert "'Costs' has 1 hidden row and 1 hidden column" in hidden
    assert formulas.startswith("1 formula of the sheet 'Costs' has no stored value and was left out; open the file")


def test_docx_hidden_text_is_counted(read: Read) -> None:
    hidden = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r>"
    parsed = read(docx_of(f"<w:p>{hidden}<w:r><w:t>shown</w:t></w:r></w:p>"), "a.docx")
    assert [block.text for block in parsed.blocks] == ["shown"]
    assert parsed.warnings == ("1 hidden passage was left out",)


def test_pptx_numbered_paragraphs_have_their_numbers(read: Read) -> None:
    def item(text: str, numbering: str, depth: int = 0) -> str:
        return f'<a:p><a:pPr lvl="{depth}">{numbering}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'

    arabic, letters = '<a:buAutoNum type="arabicPeriod" startAt="3"/>', '<a:buAutoNum type="alphaLcParenR"/>'
    paragraphs = (
        item("Open", arabic) + item("inner", letters, 1) + item("Wait", arabic) + item("Note", "") + item("New", arabic)
    )
    slide = f"<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody>{paragraphs}</p:txBody></p:sp>"
    assert [block.text for block in read(pptx_of([slide]), "a.pptx").blocks] == [
        "3. Open",
        "  a) inner",
        "4. Wait",
        "Note",
        "3. New",
    ]


@pytest.mark.parametrize("is_shared", [False, True])
def test_xlsx_digits_that_stand_raised_join_no_number_and_struck_text_is_left_out(read: Read, is_shared: bool) -> None:
    raised = '<r><t xml:space="preserve">4.1 x 10</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>6</t></r>'
    struck = '<r><rPr><strike/></rPr><t>300</t></r><r><t xml:space="preserve"> 450</t></r>'
    texts = [raised, struck]
    kind = 't="s"' if is_shared else 't="inlineStr"'
    cells = "".join(
        f'<c r="{column}1" {kind}>{f"<v>{at}</v>" if is_shared else f"<is>{text}</is>"}</c>'
        for at, (column, text) in enumerate(zip("AB", texts, strict=True))
    )
    parts = xlsx_parts(f'<row r="1">{cells}</row>')
    if is_shared:
        space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        of_texts = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
        entry = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{of_texts}"/></Types>'
        parts["[Content_Types].xml"] = str(parts["[Content_Types].xml"]).replace("</Types>", entry)
        parts["xl/sharedStrings.xml"] = f'<sst xmlns="{space}">{"".join(f"<si>{text}</si>" for text in texts)}</sst>'
    parsed = read(zip_of(parts), "a.xlsx")
    assert [block.text for block in parsed.blocks if block.kind is not BlockKind.HEADING] == ["4.1 x 10⁶: 450"]
    assert parsed.warnings == ("1 struck-out passage was left out",)
