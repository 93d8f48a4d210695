"""No cell of any table is lost: its text is in a chunk, or a warning counts it."""

import io
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from xml.sax.saxutils import escape as xml_escape

import openpyxl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from services.ingest.reading.child.prepare import prepare
from services.ingest.reading.chunks.tokens import EstimatedTokens
from services.ingest.reading.detection import detect_media_type
from services.ingest.reading.models import PrepareRequest
from tests.unit.ingest.office_files import docx_of, paragraph, pptx_of, shape
from tests.unit.ingest.opendocument_files import cell as odt_cell
from tests.unit.ingest.opendocument_files import opendocument_of
from tests.unit.ingest.opendocument_files import table as odt_table

COUNTED = re.compile(r"hidden|left out|was read up to|only the first")
"""Kinds of warnings that may count a loss."""
_WORDS = st.sampled_from(
    ["Name", "Date", "Place", "Status", "Amount", "Piet Moor", "Quay 4", "AZ-2207/19", "open", "Q1", "Total", "kWh", "Notes:",
     "Applicant:", "Osk", "Unit price", "left wrist", "a@example.org", "Remarks on the state of the equipment " * 5]
)  # fmt: skip
_NUMBERS = st.sampled_from(["12", "4.5 %", "2023", "1999", "$ 4", "31.12.2023", "-3"])
_LETTERS = st.text("bcdfgh", min_size=3, max_size=3).map(lambda letters: f"Wo{letters}rd")
_CELLS = st.one_of(st.just(""), _WORDS, _NUMBERS, st.integers(0, 60).map(lambda n: f"text{n}x"), _LETTERS)
_ROWS: st.SearchStrategy[list[str]] = st.one_of(
    st.lists(_CELLS, max_size=7), st.just([]), st.tuples(_WORDS, _WORDS).map(list)
)
TABLES = st.lists(_ROWS, min_size=1, max_size=14)
COVER = [["Project", "Wall"], [], ["Site manager", "Ines Varg"], [], ["Budget code", "HB-77/2"]]
BELOW = [["Month", "Sum"], ["Jan", "3"], ["Feb", "4"], [], ["Head of sales", "Orla Finch"]]
EMPTY_COLUMN = [["Name", "Dept", "Remarks"], ["Orla", "Stores", ""], ["Piet", "Dock", ""]]


def _xlsx(rows: Sequence[Sequence[str]]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([cell or None for cell in row])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _docx(rows: Sequence[Sequence[str]]) -> bytes:
    inner = "".join(f"<w:tr>{''.join(f'<w:tc>{paragraph(cell)}</w:tc>' for cell in row)}</w:tr>" for row in rows)
    return docx_of(f"{paragraph('Before.')}<w:tbl>{inner}</w:tbl>")


def _pptx(rows: Sequence[Sequence[str]]) -> bytes:
    def written(cell: str) -> str:
        return f"<a:tc><a:txBody><a:p><a:r><a:t>{xml_escape(cell)}</a:t></a:r></a:p></a:txBody></a:tc>"

    inner = "".join(f"<a:tr>{''.join(map(written, row))}</a:tr>" for row in rows)
    return pptx_of([shape(["Before."]) + f"<p:graphicFrame><a:tbl>{inner}</a:tbl></p:graphicFrame>"])


def _odt(rows: Sequence[Sequence[str]]) -> bytes:
    return opendocument_of(
        "text", "<text:p>Before.</text:p>" + odt_table([[odt_cell(xml_escape(c)) for c in r] for r in rows])
    )


def _ods(rows: Sequence[Sequence[str]]) -> bytes:
    return opendocument_of(
        "spreadsheet", odt_table([[odt_cell(xml_escape(c)) for c in r] for r in rows], name="Before.")
    )


def _html(rows: Sequence[Sequence[str]]) -> bytes:
    inner = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<p>Before.</p><table><caption>Caption</caption>{inner}</table>".encode()


def _html_with_names(rows: Sequence[Sequence[str]]) -> bytes:
    first, *rest = rows
    inner = f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in first)}</tr>"
    inner += "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rest)
    return f"<p>Before.</p><table>{inner}</table>".encode()


def _csv(rows: Sequence[Sequence[str]]) -> bytes:
    return "\n".join(";".join(row) for row in rows).encode() + b"\nBefore.;\n"


def _markdown(rows: Sequence[Sequence[str]]) -> bytes:
    width = max(map(len, rows), default=0) or 1
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return ("Before.\n\n" + "\n".join([lines[0], "|---" * width + "|", *lines[1:]])).encode()


WRITERS = {
    "a.xlsx": _xlsx, "a.docx": _docx, "a.pptx": _pptx, "a.odt": _odt, "a.ods": _ods, "a.html": _html, "b.html": _html_with_names,
    "a.csv": _csv, "a.md": _markdown,
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(rows=COVER)
@example(rows=BELOW)
@example(rows=EMPTY_COLUMN)
@given(rows=TABLES)
def test_text_of_every_cell_is_in_a_chunk_or_counted(tmp_path: Path, name: str, rows: list[list[str]]) -> None:
    path = tmp_path / "table"
    path.write_bytes(WRITERS[name](rows))
    if not any(cell for row in rows for cell in row):
        return
    with path.open("rb") as file:
        media_type = detect_media_type(file, name)
    prepared = prepare(PrepareRequest(str(path), media_type, name, "", 512), lambda _: None, EstimatedTokens())
    text = " ".join(" ".join(chunk.text.split()) for chunk in prepared.chunks)
    counted = [warning for warning in prepared.warnings if COUNTED.search(warning)]
    lost = {cell for row in rows for cell in row if " ".join(cell.split()).rstrip(" :") not in text}
    assert not lost or counted


def test_rows_between_empty_ones_keep_label_and_value_together(tmp_path: Path) -> None:
    path = tmp_path / "cover"
    path.write_bytes(_xlsx(COVER))
    with path.open("rb") as file:
        media_type = detect_media_type(file, "cover.xlsx")
    prepared = prepare(PrepareRequest(str(path), media_type, "cover.xlsx", "", 512), lambda _: None, EstimatedTokens())
    assert "\n".join(chunk.text for chunk in prepared.chunks).split("\n") == [
        "Project: Wall",
        "Site manager: Ines Varg",
        "Budget code: HB-77/2",
    ]
