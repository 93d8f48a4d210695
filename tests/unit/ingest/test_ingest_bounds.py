"""What a file may ask of its reader. What lies beyond is left out, and said, or ends with a clear reason."""

import time
from pathlib import Path

import pytest
from PIL import Image

from kit.testing.pdf_files import pdf_of
from services.ingest.errors import DocumentRejected
from services.ingest.reading.models import BlockKind
from services.ingest.reading.parsers.messages.mail import parse_mail
from services.ingest.reading.parsers.office import xlsx
from services.ingest.reading.parsers.office.docx import parse_docx
from services.ingest.reading.parsers.office.pptx import parse_pptx
from services.ingest.reading.parsers.pages import pdf, printed_page
from services.ingest.reading.parsers.pages.images import parse_image
from services.ingest.reading.parsers.text.markdown import parse_markdown
from services.ingest.reading.parsers.web.html import parse_html
from services.ingest.reading.recognition import OcrBudget, OcrLimits
from tests.unit.ingest.office_files import docx_of, paragraph, sheet_rows, xlsx_parts, zip_of
from tests.unit.ingest.pdf_files import pdf_of_contents, shown
from tests.unit.ingest.recognizers import ScriptedRecognizer, bytes_of, read_as
from tests.unit.ingest.slow import SLOW_FILES


def _written(tmp_path: Path, name: str, data: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_pdf_that_claims_a_million_pages_is_refused(tmp_path: Path) -> None:
    data = pdf_of([["hello"]]).replace(b"/Count 1 ", b"/Count 1000000 ")
    with pytest.raises(DocumentRejected, match="more than 20000 pages; split it") as raised:
        pdf.parse_pdf(_written(tmp_path, "a.pdf", data), "a.pdf")
    assert raised.value.reason == "TOO_MANY_PAGES"


def test_pages_of_a_picture_are_counted_as_far_as_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [Image.new("L", (40, 40), "white") for _ in range(5)]
    path = _written(tmp_path, "a.tiff", bytes_of(pages[0], "TIFF", save_all=True, append_images=pages[1:]))
    ocr = OcrBudget(ScriptedRecognizer(read_as("words")), OcrLimits(), time.perf_counter)
    assert parse_image(path, "a.tiff", ocr).page_statuses == ("ocr",) * 5
    monkeypatch.setattr(printed_page, "_MAX_PAGES", 4)
    with pytest.raises(DocumentRejected, match="more than 4 pages; split it"):
        parse_image(path, "a.tiff", ocr)


def test_page_of_countless_texts_is_left_to_recognition_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "_MAX_TEXTS", 20)
    crowded = "".join(shown("a", 10 * i, 100) for i in range(21))
    few = "".join(shown(f"line {i}", 10, 700 - 12 * i) for i in range(20))
    parsed = pdf.parse_pdf(_written(tmp_path, "a.pdf", pdf_of_contents([crowded, few])), "a.pdf")
    assert parsed.page_statuses == ("failed", "text")
    assert parsed.warnings == (
        "page 1: its text layer cannot be used (it is made of more than 20 pieces), and text recognition (OCR) is off",
    )


def test_line_of_thousands_of_digits_is_no_line_number(tmp_path: Path) -> None:
    lines = [*"123456", "7" * 5000]
    parsed = pdf.parse_pdf(_written(tmp_path, "a.pdf", pdf_of([lines])), "a.pdf")
    assert "7" * 5000 in "".join(block.text for block in parsed.blocks)


def test_note_is_read_where_it_is_first_referred_to(tmp_path: Path) -> None:
    mark = '<w:p><w:r><w:t>{}</w:t></w:r><w:r><w:footnoteReference w:id="7"/></w:r></w:p>'
    note = f'<w:footnote w:id="7">{paragraph("the note")}</w:footnote>'
    path = _written(tmp_path, "a.docx", docx_of(mark.format("one") + mark.format("two"), footnotes=note))
    assert [block.text for block in parse_docx(path, "a.docx").blocks] == ["one", "Footnote: the note", "two"]


@pytest.mark.parametrize("kind", ["pptx: charts", "pptx: notes"])
def test_part_is_read_where_it_is_first_referred_to(kind: str, tmp_path: Path) -> None:
    parsed = parse_pptx(_written(tmp_path, "a.pptx", SLOW_FILES[kind].make(3)), "a.pptx")
    texts = [block.text for block in parsed.blocks]
    assert len([text for text in texts if text.startswith(("value 0", "note"))]) == 1
    assert "words" in texts


def test_name_of_a_column_is_repeated_as_far_as_it_names(tmp_path: Path) -> None:
    page = f"<table><tr><th>{'h' * 500}</th><th>b</th></tr>" + "<tr><td>x</td><td>y</td></tr>" * 2 + "</table>"
    parsed = parse_html(_written(tmp_path, "a.html", page.encode()), "a.html")
    assert [block.text for block in parsed.blocks] == ["h" * 500, *[f"{'h' * 120}: x; b: y"] * 2]


def test_mail_within_mails_without_end_is_refused(tmp_path: Path) -> None:
    parts = "".join(f"--b{i}\nContent-Type: multipart/mixed; boundary=b{i + 1}\n\n" for i in range(2000))
    path = _written(tmp_path, "a.eml", f"Subject: x\nContent-Type: multipart/mixed; boundary=b0\n\n{parts}".encode())
    with pytest.raises(RecursionError, match="more than 100 parts within parts"):  # the child says TOO_DEEPLY_NESTED
        parse_mail(path, "a.eml")


def test_text_in_a_codec_of_names_is_read_as_utf_8(tmp_path: Path) -> None:
    head = "Subject: x\nContent-Type: text/plain; charset=punycode\n\n"
    parsed = parse_mail(_written(tmp_path, "a.eml", f"{head}abc-9a".encode()), "a.eml")
    assert parsed.blocks[-1].text.strip() == "abc-9a"


def test_merged_cells_are_repeated_as_far_as_a_workbook_may_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sheet_rows([["north", "a"], ["", "b"], ["", "c"], ["", "d"]])
    data = zip_of(xlsx_parts(rows, merged='<mergeCell ref="A1:A4"/>'))
    path = _written(tmp_path, "a.xlsx", data)
    whole = ["north: north; a: b", "north: north; a: c", "north: north; a: d"]
    assert [block.text for block in xlsx.parse_xlsx(path, "a.xlsx").blocks] == ["Data", *whole]
    monkeypatch.setattr(xlsx, "_MAX_CELLS", 7)
    parsed = xlsx.parse_xlsx(path, "a.xlsx")
    assert [warning for warning in parsed.warnings if "merged cells" in warning and "'Data'" in warning]
    assert [block.text for block in parsed.blocks] == ["Data", *whole[:2], "a: d"]


def test_number_as_long_as_a_line_is_shown(tmp_path: Path) -> None:
    rows = f'<row r="1"><c r="A1"><v>{"9" * 400}</v></c><c r="B1"><v>1</v></c></row>'
    parsed = xlsx.parse_xlsx(_written(tmp_path, "a.xlsx", zip_of(xlsx_parts(rows))), "a.xlsx")
    assert parsed.blocks[-1].text == f"{'9' * 400}; 1"


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("title: The Lighthouse", "The Lighthouse"),
        ("title:   'The Lighthouse' ", "The Lighthouse"),
        ('date: x\nTitle: "The Lighthouse"', "The Lighthouse"),
        ("title: The keeper's log", "The keeper's log"),
        ("title:\nauthor: x", "a"),
    ],
)
def test_title_of_a_markdown_file_stands_in_its_front_matter(front: str, title: str, tmp_path: Path) -> None:
    parsed = parse_markdown(_written(tmp_path, "a.md", f"---\n{front}\n---\nword".encode()), "a.md")
    assert parsed.title == title
    assert [block.kind for block in parsed.blocks] == [*[BlockKind.LIST] * len(front.splitlines()), BlockKind.TEXT]
