"""Slides of OpenDocument, and what reports say of pictures that are not read."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from services.ingest.errors import DocumentRejected
from services.ingest.reading import detection
from services.ingest.reading.models import BlockKind, ParsedDocument
from services.ingest.reading.parsers.registry import parse
from services.ingest.reading.parsers.titles import title_or_name
from tests.unit.ingest import office_files
from tests.unit.ingest.opendocument_files import cell, opendocument_of, paragraph, table

Read = Callable[[bytes, str], ParsedDocument]
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/picture"
COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006"
VML = '<w:r><w:pict xmlns:v="urn:schemas-microsoft-com:vml"><v:shape><v:imagedata/></v:shape></w:pict></w:r>'
PICTURE = f'<w:r><w:drawing><pic:pic xmlns:pic="{DRAWING}"/></w:drawing></w:r>'


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(data: bytes, name: str) -> ParsedDocument:
        path = tmp_path / "spooled"
        path.write_bytes(data)
        return parse(path, detection.detect_media_type(io.BytesIO(data), name), name)

    return read


def frame(kind: str, content: str) -> str:
    return f'<draw:frame presentation:class="{kind}"><draw:text-box>{content}</draw:text-box></draw:frame>'


def test_odp_slides_are_pages_with_titles_lists_tables_and_notes(read: Read) -> None:
    items = "".join(f"<text:list-item>{paragraph(each)}</text:list-item>" for each in ("One", "Two"))
    said = frame("notes", paragraph("Say hello.")) + frame("page-number", paragraph("1"))
    notes = f"<presentation:notes>{said}</presentation:notes>"
    first = frame("outline", f"<text:list>{items}</text:list>") + frame("title", paragraph("Ferries")) + notes
    timetable = table([[cell("Line"), cell("Time")], [cell("Juist"), cell("9:00")]])
    group = f"<draw:g><draw:custom-shape>{paragraph('In a group')}</draw:custom-shape></draw:g>"
    second = f"{group}<draw:frame>{timetable}</draw:frame>"
    slides = "".join(f"<draw:page>{each}</draw:page>" for each in (first + frame("footer", paragraph("F")), second, ""))
    document = read(opendocument_of("presentation", slides), "a.odp")
    assert (document.title, document.page_statuses) == ("Ferries", ("text", "text", "empty"))
    assert [(block.kind, block.page, block.text) for block in document.blocks] == [
        (BlockKind.HEADING, 1, "Ferries"),
        (BlockKind.LIST, 1, "- One"),
        (BlockKind.LIST, 1, "- Two"),
        (BlockKind.TEXT, 1, "Say hello."),
        (BlockKind.TEXT, 2, "In a group"),
        (BlockKind.TABLE, 2, "Line: Juist; Time: 9:00"),
    ]


def test_odp_pictures_and_charts_are_reported(read: Read) -> None:
    chart = "<draw:frame><draw:object/><draw:image/></draw:frame>"
    picture = "<draw:frame><draw:image/></draw:frame>"
    document = read(opendocument_of("presentation", f"<draw:page>{chart}{picture}{picture}</draw:page>"), "a.odp")
    assert document.warnings == ("2 pictures were left out", "1 chart or other object was left out")


def test_odp_without_slides_is_damaged(read: Read) -> None:
    with pytest.raises(DocumentRejected, match="it has no slides"):
        read(opendocument_of("presentation", ""), "a.odp")


def test_pictures_of_word_are_counted_once_also_where_an_older_program_has_another(read: Read) -> None:
    both = (
        f'<mc:AlternateContent xmlns:mc="{COMPATIBILITY}"><mc:Choice Requires="wpg">{PICTURE}</mc:Choice>'
        f"<mc:Fallback>{VML}</mc:Fallback></mc:AlternateContent>"
    )
    document = read(office_files.docx_of(office_files.paragraph("Words") + f"<w:p>{both}{VML}</w:p>"), "a.docx")
    assert document.warnings == ("2 pictures were left out",)


def test_pictures_on_slides_are_counted(read: Read) -> None:
    slide = office_files.shape(["Ferries"], "title") + "<p:pic/><p:grpSp><p:pic/></p:grpSp>"
    assert read(office_files.pptx_of([slide, slide]), "a.pptx").warnings == ("4 pictures were left out",)


def test_pictures_on_sheets_are_counted(read: Read) -> None:
    parts = office_files.xlsx_parts(office_files.sheet_rows([["Line", "Guests"], ["Juist", "500"]]))
    parts["xl/worksheets/_rels/sheet1.xml.rels"] = office_files.relationships(
        {"rId1": ("drawing", "../drawings/drawing1.xml")}
    )
    parts["xl/drawings/_rels/drawing1.xml.rels"] = office_files.relationships({"rId1": ("image", "../media/a.png")})
    document = read(office_files.zip_of(parts), "a.xlsx")
    assert document.warnings == ("1 picture was left out",)
    assert "Line: Juist; Guests: 500" in [block.text for block in document.blocks]


def test_comments_headers_and_footers_of_word_are_counted(read: Read) -> None:
    parts = office_files.docx_parts(office_files.paragraph("Words"))
    word = parts["word/footnotes.xml"]
    space = str(word).partition(">")[0].removeprefix("<w:footnotes")
    parts["word/comments.xml"] = f"<w:comments{space}><w:comment/><w:comment/></w:comments>"
    parts["word/header1.xml"] = f"<w:hdr{space}>{office_files.paragraph('Office of Ferries')}</w:hdr>"
    parts["word/footer1.xml"] = f"<w:ftr{space}>{office_files.paragraph('')}</w:ftr>"
    parts["word/_rels/document.xml.rels"] = office_files.relationships(
        {kind: (kind.rstrip("1"), f"{kind}.xml") for kind in ("comments", "header1", "footer1")}
    )
    document = read(office_files.zip_of(parts), "a.docx")
    assert document.warnings == ("2 comments were left out", "1 page header was left out")


def test_comments_on_slides_and_sheets_are_counted(read: Read) -> None:
    slides = office_files.pptx_parts([office_files.shape(["Ferries"], "title")])
    slides["ppt/comments/comment1.xml"] = '<p:cmLst xmlns:p="p"><p:cm/><p:cm/></p:cmLst>'
    slides["ppt/slides/_rels/slide1.xml.rels"] = office_files.relationships(
        {"rId1": ("comments", "../comments/comment1.xml")}
    )
    assert read(office_files.zip_of(slides), "a.pptx").warnings == ("2 comments were left out",)
    sheets = office_files.xlsx_parts(office_files.sheet_rows([["Line", "Guests"], ["Juist", "500"]]))
    sheets["xl/comments1.xml"] = '<comments xmlns="s"><commentList><comment/></commentList></comments>'
    sheets["xl/worksheets/_rels/sheet1.xml.rels"] = office_files.relationships(
        {"rId1": ("comments", "../comments1.xml")}
    )
    assert read(office_files.zip_of(sheets), "a.xlsx").warnings == ("1 comment was left out",)


@pytest.mark.parametrize("found", ["10811.exe", "Adobe Photoshop PDF", "report-final.RTF", "Microsoft Word - a.doc"])
def test_title_that_a_program_made_is_none(found: str) -> None:
    assert title_or_name(found, "ferries.pdf") == "ferries"


def test_title_with_a_dot_in_it_stays() -> None:
    assert title_or_name("What is Node.js", "a.pdf") == "What is Node.js"


def test_comments_of_opendocument_are_counted(read: Read) -> None:
    note = f"<office:annotation>{paragraph('Is it?')}</office:annotation>"
    text = read(opendocument_of("text", paragraph(f"Words{note}")), "a.odt")
    assert ([block.text for block in text.blocks], text.warnings) == (["Words"], ("1 comment was left out",))
    sheet = read(
        opendocument_of("spreadsheet", table([[f"<table:table-cell>{note}{paragraph('a')}</table:table-cell>"]])),
        "a.ods",
    )
    assert ("Is it" in sheet.blocks[0].text, sheet.warnings) == (False, ("1 comment was left out",))
    slide = read(opendocument_of("presentation", f"<draw:page>{paragraph('a')}{note}</draw:page>"), "a.odp")
    assert ([block.text for block in slide.blocks], slide.warnings) == (["a"], ("1 comment was left out",))
