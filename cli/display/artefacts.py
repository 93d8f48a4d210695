"""What an agent has made besides its text, in the terminal: a table as a table, everything else as its outline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cli.client.gateway import Json
from cli.display.terminal import escape, harmless

_TABLE = "table"
_MISSING = "–"


def shown(artefact: Json) -> Iterator[RenderableType]:
    """Its title, and below it what it says."""
    yield f"\n[bold]{escape(artefact['title'] or artefact['kind'])}[/bold]"
    body = artefact.get("body") or {}
    if artefact["kind"] == _TABLE and body.get("columns"):
        yield _table(body, {each["path"]: each["citations"] for each in artefact["items"]})
    else:
        yield Text(harmless(artefact["outline"]))


def _table(body: Json, cited: dict[str, list[int]]) -> Table:
    """A row a row; behind each cell the numbers of its citations."""
    table = Table(*(escape(str(column)) for column in body["columns"]), box=None, header_style="bold", pad_edge=False)
    for at, row in enumerate(body.get("rows", ())):
        cells = (_cell(value, cited.get(f"/rows/{at}/{column}", [])) for column, value in enumerate(row))
        table.add_row(*cells)
    return table


def _cell(value: Any, citations: list[int]) -> str:
    marks = "".join(f"[{number}]" for number in citations)
    said = _MISSING if value is None else str(value)
    return escape(f"{said} {marks}" if marks else said)
