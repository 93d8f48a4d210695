"""Notebooks of Jupyter (nbformat 4): text cells as Markdown, code cells as code with what they print. Pictures are left out and
counted."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.losses import left_out
from services.ingest.reading.parsers.office.package import damaged
from services.ingest.reading.parsers.text.markdown import blocks_of_markdown
from services.ingest.reading.parsers.text.plain import encoding_warnings
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.parsers.web.html import blocks_of_html
from services.ingest.reading.source import Source

_MAX_OUTPUT_CHARS = 20_000
"""Of what one cell prints."""


def parse_notebook(source: Source, name: str) -> ParsedDocument:
    """Reads the cells. Raises DocumentRejected: FILE_DAMAGED."""
    decoded = decode(source.read_bytes())
    try:
        notebook = json.loads(decoded.text)
    except ValueError as error:
        raise damaged(name, f"it is no notebook ({error})") from error
    cells = _cells(notebook)
    if cells is None:
        raise damaged(name, "it has no list of cells (nbformat 3 or 4)")
    blocks = tuple(block for cell in cells if isinstance(cell, Mapping) for block in _cell(cell))
    outputs = [output for cell in cells if isinstance(cell, Mapping) for output in _outputs(cell)]
    pictures = sum(1 for output in outputs if _is_picture(output))
    cut = sum(1 for output in outputs if len(_printed(output)) > _MAX_OUTPUT_CHARS)
    warnings = (*encoding_warnings(decoded), *left_out(pictures, "picture"), *left_out(cut, "end of a long output"))
    heading = next((block.text for block in blocks if block.kind is BlockKind.HEADING), None)
    return ParsedDocument(title_or_name(heading, name), blocks, warnings=warnings)


def _cells(notebook: Any) -> list[Any] | None:
    """The cells, which before nbformat 4 lay in sheets."""
    if not isinstance(notebook, Mapping):
        return None
    sheets = notebook.get("worksheets")
    sheets = sheets if isinstance(sheets, list) else [notebook]
    lists = [sheet.get("cells") if isinstance(sheet, Mapping) else None for sheet in sheets]
    if not lists or not all(isinstance(cells, list) for cells in lists):
        return None
    return [cell for cells in lists if cells for cell in cells]


def _cell(cell: Mapping[str, Any]) -> Iterator[Block]:
    text = _text(cell.get("source", cell.get("input")))
    if cell.get("cell_type") == "heading":
        yield Block(BlockKind.HEADING, text, level=cell["level"] if cell.get("level") in range(1, 7) else 1)
    elif cell.get("cell_type") == "markdown":
        yield from blocks_of_markdown(text)
    elif text.strip():
        yield Block(BlockKind.CODE, text)
    for output in _outputs(cell):
        page = _text(_data(output).get("text/html"))
        if page:
            yield from blocks_of_html(page)
        elif (printed := _printed(output).strip()) and not _is_picture(output):
            yield Block(BlockKind.CODE, printed[:_MAX_OUTPUT_CHARS])


def _outputs(cell: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    outputs = cell.get("outputs")
    return [output for output in outputs if isinstance(output, Mapping)] if isinstance(outputs, list) else []


def _is_picture(output: Mapping[str, Any]) -> bool:
    """Whether a cell shows a picture: its text is no more than the name of an object."""
    return any(str(kind).startswith("image/") for kind in _data(output))


def _printed(output: Mapping[str, Any]) -> str:
    """What a cell printed, or the error that ended it."""
    if output.get("output_type") == "error":
        return f"{output.get('ename', '')}: {output.get('evalue', '')}"
    return _text(output.get("text")) or _text(_data(output).get("text/plain"))


def _data(output: Mapping[str, Any]) -> Mapping[str, Any]:
    data = output.get("data")
    return data if isinstance(data, Mapping) else {}


def _text(value: Any) -> str:
    """A text as nbformat has it: whole, or as its lines."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""
