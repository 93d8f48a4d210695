"""Which tables have names of columns and which are forms: the share that is told right of 100 small tables of both kinds."""

import io
from collections.abc import Sequence, Set
from pathlib import Path

import openpyxl
import pytest
from openpyxl.styles import Font

from services.ingest.reading.detection import detect_media_type
from services.ingest.reading.parsers.registry import parse
from services.ingest.reading.parsers.tables.column_headers import names_columns
from tests.unit.ingest.office_files import docx_of, pptx_of

TABLES = Path(__file__).parents[2] / "data" / "small_tables.txt"
LEAST_RIGHT = 0.95


def read_tables() -> list[tuple[bool, list[list[str]]]]:
    """The tables, each with whether its first row names its columns."""
    tables: list[tuple[bool, list[list[str]]]] = []
    for line in TABLES.read_text("utf-8").splitlines():
        if line in ("header", "form"):
            tables.append((line == "header", []))
        elif not line.startswith("#"):
            tables[-1][1].append([cell.strip() for cell in line.split("|")])
    return tables


def test_headers_and_forms_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    tables = read_tables()
    wrong = [rows[0] for is_header, rows in tables if names_columns(rows) != is_header]
    right = 1 - len(wrong) / len(tables)
    with capsys.disabled():
        print(f"\n{right:.0%} of {len(tables)} small tables are read with the right header; wrong: {wrong}")
    assert len(tables) == 100
    assert sum(is_header for is_header, _ in tables) == 50
    assert right >= LEAST_RIGHT


FORM = (("Injured person", "Piet Moor"), ("Place", "Dock 4"), ("Berth", "C7"))
SHAPELESS = (("North", "Oslo Fjord"), ("South", "Rome Port"), ("East", "Riga Quay"))


def _docx_table(rows: Sequence[Sequence[str]], look: str = "", bold: Set[tuple[int, int]] = frozenset()) -> bytes:
    def cell(text: str, at: tuple[int, int]) -> str:
        properties = "<w:rPr><w:b/></w:rPr>" if at in bold else ""
        return f"<w:tc><w:p><w:r>{properties}<w:t>{text}</w:t></w:r></w:p></w:tc>"

    inner = "".join(
        f"<w:tr>{''.join(cell(text, (y, x)) for x, text in enumerate(row))}</w:tr>" for y, row in enumerate(rows)
    )
    style = (
        '<w:style w:type="table" w:styleId="Grid1"><w:name w:val="Grid 1"/><w:tblStylePr w:type="firstRow"><w:rPr><w:b/></w:rPr>'
        "</w:tblStylePr></w:style>"
    )
    return docx_of(f'<w:tbl><w:tblPr><w:tblStyle w:val="Grid1"/>{look}</w:tblPr>{inner}</w:tbl>', styles=style)


def _pptx_table(rows: Sequence[Sequence[str]], first_row: str) -> bytes:
    inner = "".join(
        f"<a:tr>{''.join(f'<a:tc><a:txBody><a:p><a:r><a:t>{c}</a:t></a:r></a:p></a:txBody></a:tc>' for c in row)}</a:tr>"
        for row in rows
    )
    return pptx_of([f'<p:graphicFrame><a:tbl><a:tblPr firstRow="{first_row}"/>{inner}</a:tbl></p:graphicFrame>'])


def _xlsx_table(rows: Sequence[Sequence[str]], bold: Set[tuple[int, int]] = frozenset(), filtered: str = "") -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(list(row))
    for y, x in bold:
        book.active.cell(y + 1, x + 1).font = Font(bold=True)
    book.active.auto_filter.ref = filtered or None
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


HEADER_TEXT = ["North: South; Oslo Fjord: Rome Port", "North: East; Oslo Fjord: Riga Quay"]
FORM_TEXT = ["North: Oslo Fjord", "South: Rome Port", "East: Riga Quay"]
FIRST_ROW, FIRST_COLUMN = frozenset({(0, 0), (0, 1)}), frozenset({(0, 0), (1, 0), (2, 0)})


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (_docx_table(SHAPELESS, '<w:tblLook w:val="04A0" w:firstRow="1"/>'), "a.docx", HEADER_TEXT),
        (_docx_table(SHAPELESS, '<w:tblLook w:val="0480" w:firstRow="0"/>'), "a.docx", FORM_TEXT),
        (_docx_table(SHAPELESS, bold=FIRST_ROW), "a.docx", HEADER_TEXT),
        (_docx_table(SHAPELESS, bold=FIRST_COLUMN), "a.docx", FORM_TEXT),
        (_pptx_table(SHAPELESS, "1"), "a.pptx", HEADER_TEXT),
        (_pptx_table(SHAPELESS, "0"), "a.pptx", FORM_TEXT),
        (_xlsx_table(SHAPELESS, FIRST_ROW), "a.xlsx", HEADER_TEXT),
        (_xlsx_table(SHAPELESS, FIRST_COLUMN), "a.xlsx", FORM_TEXT),
        (_xlsx_table(SHAPELESS, filtered="A1:B3"), "a.xlsx", HEADER_TEXT),
        (_xlsx_table(FORM), "a.xlsx", ["Injured person: Piet Moor", "Place: Dock 4", "Berth: C7"]),
        (_pptx_table(FORM, "0"), "a.pptx", ["Injured person: Piet Moor", "Place: Dock 4", "Berth: C7"]),
        (b"Injured person,Piet Moor\nPlace,Dock 4\nBerth,C7\n", "a.csv",
         ["Injured person: Piet Moor", "Place: Dock 4", "Berth: C7"]),
    ],
)  # fmt: skip
def test_marks_of_a_file_decide_then_the_shape(tmp_path: Path, data: bytes, name: str, expected: list[str]) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert [block.text for block in parse(path, detect_media_type(io.BytesIO(data), name), name).blocks] == expected


CREW = (("Name", "Department", "Phone"), ("Ines Varg", "Stores", "221"), ("Tomo Lind", "Yard", "310"))
CREW_TEXT = ["Name: Ines Varg; Department: Stores; Phone: 221", "Name: Tomo Lind; Department: Yard; Phone: 310"]
PRICES = (("Part", "Price"), ("Valve", "12.5"), ("Pump", "88"))
PRICES_TEXT = ["Part: Valve; Price: 12.5", "Part: Pump; Price: 88"]
SIGNED = (("Prepared by", "Orla Finch"), ("Date", "2026-05-04"))
SIGNED_TEXT = ["Prepared by: Orla Finch", "Date: 2026-05-04"]
GAP = ((),)
UNKNOWN_APART = (*CREW, *GAP, ("Tide gauge", "Osk pier"))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((*CREW, *GAP, *SIGNED), [*CREW_TEXT, *SIGNED_TEXT]),
        ((*CREW, *SIGNED), [*CREW_TEXT, *SIGNED_TEXT]),
        ((*PRICES, *GAP, *SIGNED), [*PRICES_TEXT, *SIGNED_TEXT]),
        ((*PRICES, *SIGNED), [*PRICES_TEXT, *SIGNED_TEXT]),
        (UNKNOWN_APART, [*CREW_TEXT, "Tide gauge: Osk pier"]),
        ((*CREW, ("Tide gauge", "Osk pier"), *SIGNED), [*CREW_TEXT, "Tide gauge: Osk pier", *SIGNED_TEXT]),
        ((*CREW, ("Signed:", "Orla Finch")), [*CREW_TEXT, "Signed: Orla Finch"]),
        (
            (*CREW, *GAP, (*SIGNED[0], *SIGNED[1]), ("Approved by", "Piet Moor", "Place", "Osk")),
            [*CREW_TEXT, "Prepared by: Orla Finch; Date: 2026-05-04", "Approved by: Piet Moor; Place: Osk"],
        ),
        ((*CREW, *GAP, ("Piet Moor", "Yard")), [*CREW_TEXT, "Name: Piet Moor; Department: Yard"]),
        ((*PRICES, ("Total", "100.5")), [*PRICES_TEXT, "Part: Total; Price: 100.5"]),
        ((*CREW, *GAP, ("Rhea Moor", "Office", "118")), [*CREW_TEXT, "Name: Rhea Moor; Department: Office; Phone: 118"]),
    ],
    ids=[
        "apart", "close", "apart, two columns", "close, two columns", "unknown label apart", "unknown label above known ones",
        "colon", "two labels a row", "record without its last cell", "total", "records below a gap",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.xlsx", "a.csv", "a.docx"])
def test_a_form_below_a_table_has_no_names_of_columns(
    tmp_path: Path, rows: tuple[tuple[str, ...], ...], expected: list[str], name: str
) -> None:
    if name == "a.xlsx":
        data = _xlsx_table(rows)
    elif name == "a.csv":
        data = "\n".join(",".join(row) for row in rows).encode()
    else:
        data = _docx_table([row for row in rows if row])
        if rows == UNKNOWN_APART:  # a table of a text has no gaps
            return
    path = tmp_path / name
    path.write_bytes(data)
    assert [block.text for block in parse(path, detect_media_type(io.BytesIO(data), name), name).blocks] == expected
