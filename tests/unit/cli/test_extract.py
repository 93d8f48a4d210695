"""`groundwork extract`: the fields of a schema as a table on the screen or in a file."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from openpyxl import load_workbook

from tests.unit.cli.conftest import FakeServer, run_event

Command = Callable[..., Result]

PATH = "/v1/collections/default/extract"
SCHEMA = {"type": "object", "properties": {"vendor": {"type": "string"}, "total": {"type": "number"}}}
STARTED = run_event("run", 1)


def _cited(number: int, quote: str) -> dict[str, object]:
    text = f"… {quote} …"
    place = {"document_id": "d1", "document_name": "a.pdf", "chunk_id": "c1", "page": 2, "bounding_boxes": []}
    return {"number": number, "text": text, "quote_start": 2, "quote_end": 2 + len(quote), **place}


TABLE = {
    "artefact_id": "rows",
    "kind": "table",
    "title": "Extracted fields",
    "body": {"columns": ["document", "vendor", "total"], "rows": [["a.pdf", "=cmd()", 90.5], ["b.pdf", None, None]]},
    "items": [{"path": "/rows/0/1", "citations": [1]}, {"path": "/rows/0/2", "citations": [2]}],
    "citations": [_cited(1, "=cmd()"), _cited(2, "90.50")],
    "outline": "",
}
SAID = run_event("answer", 3, text="2 of 4 values were found.", citations=[], support_status=None, artefacts=[TABLE])
FINISHED = (SAID, run_event("done", 4, status="completed"))


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return path


@pytest.fixture(autouse=True)
def extracting(server: FakeServer) -> None:
    server.on("POST", PATH, lambda http: http.stream(STARTED, *FINISHED))


def test_table_is_shown_with_its_citations(server: FakeServer, groundwork: Command, schema: Path) -> None:
    told = groundwork("extract", str(schema))
    assert told.exit_code == 0, told.stderr
    assert "90.5 [2]" in told.stdout
    assert json.loads(server.requests[0][2]) == {"schema": SCHEMA, "document_ids": []}


def test_csv_has_values_places_and_what_is_missing(groundwork: Command, schema: Path, tmp_path: Path) -> None:
    to = tmp_path / "rows.csv"
    assert groundwork("extract", str(schema), "--out", str(to)).exit_code == 0
    heads, first, second = csv.reader(to.read_text(encoding="utf-8").splitlines())
    assert heads == ["document", "vendor", "total", "missing", "vendor (source)", "total (source)"]
    assert first == ["a.pdf", "'=cmd()", "90.5", "", "p. 2: “=cmd()”", "p. 2: “90.50”"]
    assert second == ["b.pdf", "", "", "vendor, total", "", ""]


def test_json_has_a_citation_for_each_value(groundwork: Command, schema: Path, tmp_path: Path) -> None:
    to = tmp_path / "rows.json"
    assert groundwork("extract", str(schema), "-o", str(to)).exit_code == 0
    first, second = json.loads(to.read_text())["rows"]
    assert (first["values"], first["citations"]["total"]["quote"]) == ({"vendor": "=cmd()", "total": 90.5}, "90.50")
    assert second["missing"] == ["vendor", "total"]


def test_xlsx_holds_text_that_is_no_formula(groundwork: Command, schema: Path, tmp_path: Path) -> None:
    to = tmp_path / "rows.xlsx"
    assert groundwork("extract", str(schema), "-o", str(to)).exit_code == 0
    cells = load_workbook(to)["rows"][2]
    assert [cell.value for cell in cells[:3]] == ["a.pdf", "=cmd()", 90.5]
    assert cells[1].data_type == "s"


def test_file_of_another_kind_and_a_schema_that_is_none_are_told(
    server: FakeServer, groundwork: Command, schema: Path, tmp_path: Path
) -> None:
    other = tmp_path / "list.json"
    other.write_text("[]")
    for words, said in (((str(schema), "-o", "a.txt"), ".csv, .json, .xlsx"), ((str(other),), "no JSON Schema")):
        told = groundwork("extract", *words)
        assert (told.exit_code, said in told.stderr) == (2, True), told.stderr
    assert server.requests == []
