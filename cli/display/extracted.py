"""What was extracted, as a file: values, what is missing, and where each value stands."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.client.gateway import Json
from kit.vocabulary.run_fold import RunFold

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet may take for the beginning of a formula."""


@dataclass(frozen=True)
class ExtractedRow:
    """One row: a document, or a row of a table in it."""

    document: str
    values: Mapping[str, Any]
    citations: Mapping[str, Json]
    """By field, for those that were found."""

    @property
    def missing(self) -> list[str]:
        return [name for name, value in self.values.items() if value is None]


@dataclass(frozen=True)
class Extracted:
    """The whole table."""

    fields: Sequence[str]
    rows: Sequence[ExtractedRow]


def rows_of(run: RunFold) -> Extracted:
    """The rows of all tables of the run."""
    fields: list[str] = []
    rows = []
    for table in (each for each in run.artefacts.values() if each["kind"] == "table"):
        _, *fields = table["body"]["columns"]
        cited = {each["path"]: each["citations"][0] for each in table["items"]}
        citations = {each["number"]: each for each in table["citations"]}
        for at, (document, *values) in enumerate(table["body"]["rows"]):
            found = {
                name: citations[cited[path]]
                for column, name in enumerate(fields, start=1)
                if (path := f"/rows/{at}/{column}") in cited
            }
            rows.append(ExtractedRow(document, dict(zip(fields, values, strict=True)), found))
    return Extracted(fields, rows)


def write(path: Path, extracted: Extracted) -> None:
    """Writes the format of the file's ending."""
    WRITERS[path.suffix.lower()](path, extracted)


def _write_json(path: Path, extracted: Extracted) -> None:
    rows = [
        {
            "document": row.document,
            "values": dict(row.values),
            "missing": row.missing,
            "citations": {name: _cited(citation) for name, citation in row.citations.items()},
        }
        for row in extracted.rows
    ]
    path.write_text(json.dumps({"fields": list(extracted.fields), "rows": rows}, ensure_ascii=False, indent=2) + "\n")


def _cited(citation: Json) -> Json:
    quote = citation["text"][citation["quote_start"] : citation["quote_end"]]
    kept = {name: citation.get(name) for name in ("document_id", "document_name", "chunk_id", "page", "bounding_boxes")}
    return {**kept, "quote": quote}


def _write_csv(path: Path, extracted: Extracted) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_heads(extracted))
        writer.writerows([_harmless(cell) for cell in cells] for cells in _cells(extracted))


def _write_xlsx(path: Path, extracted: Extracted) -> None:
    from openpyxl import Workbook  # noqa: PLC0415 - needed here only, and other commands should start fast

    book = Workbook(write_only=True)
    sheet = book.create_sheet("rows")
    for cells in ([*_heads(extracted)], *_cells(extracted)):
        sheet.append([_of_sheet(sheet, cell) for cell in cells])
    book.save(path)


def _of_sheet(sheet: Any, value: Any) -> Any:
    """A cell whose text is never a formula."""
    from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415 - as above
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE  # noqa: PLC0415 - as above

    if not isinstance(value, str):
        return value
    cell = WriteOnlyCell(sheet, value=ILLEGAL_CHARACTERS_RE.sub("", value))
    cell.data_type = "s"
    return cell


def _heads(extracted: Extracted) -> Sequence[str]:
    return ["document", *extracted.fields, "missing", *(f"{name} (source)" for name in extracted.fields)]


def _cells(extracted: Extracted) -> Sequence[Sequence[Any]]:
    """The values, the names of those that are missing, and for each value its page and its words."""
    return [
        [
            row.document,
            *row.values.values(),
            ", ".join(row.missing),
            *(_place(row.citations.get(name)) for name in extracted.fields),
        ]
        for row in extracted.rows
    ]


def _place(citation: Json | None) -> str:
    if citation is None:
        return ""
    page = f"p. {citation['page']}: " if citation.get("page") else ""
    words = citation["text"][citation["quote_start"] : citation["quote_end"]]
    return f"{page}“{' '.join(words.split())}”"


def _harmless(value: Any) -> Any:
    """The value, with a quotation mark before a text that a spreadsheet would compute."""
    is_formula = isinstance(value, str) and value.startswith(_FORMULA) and not value[1:2].isdigit()
    return f"'{value}" if is_formula else value


WRITERS: Mapping[str, Callable[[Path, Extracted], None]] = {
    ".csv": _write_csv,
    ".json": _write_json,
    ".xlsx": _write_xlsx,
}
