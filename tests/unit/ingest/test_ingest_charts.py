"""Charts of presentations and workbooks: their numbers are text that can be found."""

import io
import zipfile
from pathlib import Path

import openpyxl
import pytest
from lxml import etree
from openpyxl.chart import BarChart, Reference

from services.ingest.reading import detection
from services.ingest.reading.models import ParsedDocument
from services.ingest.reading.parsers.office.charts import read_chart
from services.ingest.reading.parsers.registry import parse
from tests.unit.ingest.office_files import chart_part, docx_parts, paragraph, pptx_parts, relationships, shape, zip_of

_CHART = '<p:graphicFrame><c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" r:id="rId1"/></p:graphicFrame>'


def _parsed(tmp_path: Path, data: bytes, media_type: str, name: str) -> ParsedDocument:
    path = tmp_path / name
    path.write_bytes(data)
    return parse(path, media_type, name)


def _presentation(chart: str) -> bytes:
    parts = pptx_parts([shape(["Guests"], "title") + _CHART])
    parts["ppt/slides/_rels/slide1.xml.rels"] = relationships({"rId1": ("chart", "../charts/chart1.xml")})
    return zip_of({**parts, "ppt/charts/chart1.xml": chart})


def test_pptx_chart_keeps_its_numbers_with_their_categories_and_series(tmp_path: Path) -> None:
    chart = chart_part(
        {"Wega": [0.125, 0.5], "Vega": [0.25, 0.75]}, ["Spring", "Summer"], title="Occupancy", number_format="0.0%"
    )
    document = _parsed(tmp_path, _presentation(chart), detection.PPTX, "talk.pptx")
    assert [(block.text, block.page) for block in document.blocks] == [
        ("Guests", 1),
        ("Occupancy", 1),
        ("Spring; Wega: 12.5%; Vega: 25.0%", 1),
        ("Summer; Wega: 50.0%; Vega: 75.0%", 1),
    ]
    assert document.warnings == ()


def test_docx_chart_stands_behind_its_paragraph(tmp_path: Path) -> None:
    anchor = '<c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" r:id="rId1"/>'
    drawn = f"<w:p><w:r><w:t>As drawn here.</w:t><w:drawing>{anchor}</w:drawing></w:r></w:p>"
    parts = docx_parts(drawn + paragraph("And so on."))
    parts["word/_rels/document.xml.rels"] = relationships({"rId1": ("chart", "charts/chart1.xml")})
    parts["word/charts/chart1.xml"] = chart_part({"Wega": [5]}, ["Spring"], title="Guests")
    document = _parsed(tmp_path, zip_of(parts), detection.DOCX, "a.docx")
    assert [block.text for block in document.blocks] == ["As drawn here.", "Guests", "Spring; Wega: 5", "And so on."]


def test_pptx_chart_without_numbers_is_reported(tmp_path: Path) -> None:
    document = _parsed(tmp_path, _presentation(chart_part({}, [], title="Linked")), detection.PPTX, "talk.pptx")
    assert document.blocks[-1].text == "Linked"
    assert document.warnings == ("a chart on slide 1 has no numbers in the file",)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            "visible",
            ["Overview", "Guests by season", "Guests", "Source", "column 1: Spring", "Drawn", "Prices", "Oslo: 3"],
        ),
        ("hidden", ["Overview", "Guests by season", "Guests", "Spring: 5", "Summer: 7", "Drawn", "Prices", "Oslo: 3"]),
    ],
)
def test_xlsx_chart_gives_the_numbers_that_stand_on_no_sheet_that_is_read(
    tmp_path: Path, state: str, expected: list[str]
) -> None:
    book = openpyxl.Workbook()
    book.active.title = "Overview"
    book.active.append(["Guests by season"])
    source = book.create_sheet("Source")
    source.sheet_state = state
    source.append(["column 1: Spring"])
    for sheet in (book.active, book.create_chartsheet("Drawn")):
        chart = BarChart()
        chart.add_data(Reference(source, min_col=1, min_row=1))
        sheet.add_chart(chart)
    out = io.BytesIO()
    book.save(out)
    with zipfile.ZipFile(out) as archive:
        parts: dict[str, str | bytes] = {name: archive.read(name) for name in archive.namelist()}
    # As the program saves them: the library leaves the numbers of its charts out.
    parts["xl/charts/chart1.xml"] = chart_part({"": [5, 7]}, ["Spring", "Summer"], title="Guests", sheet="Source")
    parts["xl/charts/chart2.xml"] = chart_part({"": [3]}, ["Oslo"], title="Prices", sheet="[1]Fares")
    document = _parsed(tmp_path, zip_of(parts), detection.XLSX, "a.xlsx")
    assert [block.text for block in document.blocks] == expected


def test_chart_categories_in_levels_are_joined_and_dates_are_dates() -> None:
    levels = (
        '<c:lvl><c:pt idx="0"><c:v>Q1</c:v></c:pt><c:pt idx="1"><c:v>Q2</c:v></c:pt></c:lvl>'
        '<c:lvl><c:pt idx="0"><c:v>2024</c:v></c:pt></c:lvl>'
    )
    point = '<c:pt idx="0"><c:v>45352</c:v></c:pt>'
    dates = f"<c:numRef><c:numCache><c:formatCode>dd/mm/yyyy</c:formatCode>{point}</c:numCache></c:numRef>"
    chart = (
        '<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"><c:chart><c:ser>'
        f"<c:cat><c:multiLvlStrRef><c:multiLvlStrCache>{levels}</c:multiLvlStrCache></c:multiLvlStrRef></c:cat>"
        f"<c:val>{dates}</c:val></c:ser></c:chart></c:chartSpace>"
    )
    assert [block.text for block in read_chart(etree.fromstring(chart)).blocks()] == ["2024 / Q1: 2024-03-01"]
