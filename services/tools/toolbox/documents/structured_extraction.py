"""Reads the fields of a JSON Schema out of documents: values beside their labels, and rows of tables. No model."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from kit.reading.fields import Field, fields_of_schema
from kit.reading.values import Cell, find_value, labelled_values, table_rows
from services.tools.context import ToolContext
from services.tools.errors import InvalidArguments
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.rendering import citable, excerpt
from services.tools.passages.whole import DOCUMENT_ID, resolve_documents, whole_document

DOCUMENTS_MAX = 20
_PASSAGES_MAX = 400
_ROWS_MAX = 100

SCHEMA = {
    "type": "function",
    "function": {
        "name": "structured_extraction",
        "description": (
            "Reads the fields of a JSON Schema out of documents: a row for each document, or for each row of a table in it, with "
            "where each value stands. What a document does not say is null and listed as missing."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "schema": {
                    "type": "object",
                    "description": 'JSON Schema of an object: {"type": "object", "properties": {"total": {"type": "number"}}}.',
                },
                "document_ids": {
                    "type": "array",
                    "description": "Documents to read. Default: the newest of the collections.",
                    "items": DOCUMENT_ID,
                    "maxItems": DOCUMENTS_MAX,
                },
                "collection_ids": {
                    "type": "array",
                    "description": "Collections to read. Default: all that there are.",
                    "items": {"type": "string", "minLength": 1, "maxLength": 64},
                    "maxItems": 64,
                },
            },
            "required": ["schema"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=20.0,
    on_request=True,
    called_for_by=(
        r"\b(?:extract|pull out|read out)\b|\bfields?\b[\w\s]{0,20}\b(?:of|from)\b",
        r"extrahier\w*|auslesen|extrai\w*|extraer|estra\w+|извлек\w*|提取|抽出|추출",
    ),
)


async def structured_extraction(
    context: ToolContext,
    schema: Mapping[str, Any],
    document_ids: Sequence[str] = (),
    collection_ids: Sequence[str] = (),
) -> ToolOutput:
    """`rows`: `values` by field, `cited` (chunk and words by field) and `missing`. Documents that were not read are counted."""
    fields = fields_of_schema(schema)
    if not fields:
        raise InvalidArguments('schema: it has no properties; write {"type": "object", "properties": {…}}')
    ids = await resolve_documents(context, document_ids, collection_ids, DOCUMENTS_MAX)
    rows: list[dict[str, Any]] = []
    cells: list[Cell[Passage]] = []
    left = 0
    for document_id in ids:
        read = await whole_document(context, document_id, _PASSAGES_MAX)
        found = await asyncio.to_thread(_rows, fields, read.passages)
        left += max(0, len(rows) + len(found) - _ROWS_MAX)
        for row in found[: max(0, _ROWS_MAX - len(rows))]:
            rows.append(_described(read.passages[0].document_name, document_id, fields, row))
            cells += filter(None, row)
    content: dict[str, Any] = {"rows": rows, "documents_read": len(ids)}
    if left:
        content["rows_left_out"] = left
    values = sum(len(row["cited"]) for row in rows)
    summary = f"{values} of {len(rows) * len(fields)} values found in {len(rows)} rows from {len(ids)} documents."
    return ToolOutput(content, summary, citable(_lines_of(cells)))


def _rows(fields: Sequence[Field], passages: Sequence[Passage]) -> Sequence[Sequence[Cell[Passage] | None]]:
    if rows := table_rows(fields, passages):
        return rows
    labelled = labelled_values(passages)
    return [[find_value(field, labelled) for field in fields]]


def _described(
    name: str, document_id: str, fields: Sequence[Field], cells: Sequence[Cell[Passage] | None]
) -> dict[str, Any]:
    found = {field.name: cell for field, cell in zip(fields, cells, strict=True)}
    return {
        "document": name,
        "document_id": document_id,
        "values": {field: cell.value if cell else None for field, cell in found.items()},
        "cited": {field: _place(cell) for field, cell in found.items() if cell},
        "missing": [field for field, cell in found.items() if cell is None],
    }


def _place(cell: Cell[Passage]) -> dict[str, Any]:
    page = {"page": cell.source.page} if cell.source.page else {}
    return {"chunk_id": cell.source.chunk_id, "quote": cell.source.text[cell.start : cell.end], **page}


def _lines_of(cells: Sequence[Cell[Passage]]) -> Sequence[Passage]:
    """Of each passage the lines from the first value to the last."""
    by_chunk: dict[str, list[Cell[Passage]]] = {}
    for cell in cells:
        by_chunk.setdefault(cell.source.chunk_id, []).append(cell)
    found = []
    for same in by_chunk.values():
        passage = same[0].source
        start, end = min(cell.start for cell in same), max(cell.end for cell in same)
        line_end = passage.text.find("\n", end)
        found.append(
            excerpt(passage, passage.text.rfind("\n", 0, start) + 1, line_end if line_end >= 0 else len(passage.text))
        )
    return found
