"""What an agent has made besides its text, in the terminal: tables, charts, time lines and comparisons as tables, everything else
as its outline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cli.client.gateway import Json
from cli.display.terminal import escape, harmless

_MISSING = "–"
Cited = dict[str, list[int]]
"""Numbers of citations by the path of what cites them."""


def shown(artefact: Json) -> Iterator[RenderableType]:
    """Its title, and below it what it says."""
    yield f"\n[bold]{escape(artefact['title'] or artefact['kind'])}[/bold]"
    body, draw = artefact.get("body"), _TABLES.get(artefact["kind"])
    if not body or draw is None:
        yield Text(harmless(artefact["outline"]))
        return
    yield draw(body, {each["path"]: each["citations"] for each in artefact["items"]})
    for each in body.get("left_out", ()):
        yield f"[dim]Left out: {escape(each)}[/dim]"


def _table(body: Json, cited: Cited) -> Table:
    rows = [
        [_cell(value, cited.get(f"/rows/{at}/{column}")) for column, value in enumerate(row)]
        for at, row in enumerate(body.get("rows", ()))
    ]
    return _drawn(body["columns"], rows)


def _chart(body: Json, cited: Cited) -> Table:
    """A row a label, a column a series."""
    heads = [", ".join(filter(None, (each["name"], body["unit"]))) or _MISSING for each in body["series"]]
    rows = [
        [
            escape(label),
            *(
                _cell(each["values"][at], cited.get(f"/series/{line}/values/{at}"))
                for line, each in enumerate(body["series"])
            ),
        ]
        for at, label in enumerate(body["labels"])
    ]
    return _drawn(["", *heads], rows)


def _timeline(body: Json, cited: Cited) -> Table:
    rows = [
        [escape(each["when"]), _cell(each["what"], cited.get(f"/events/{at}"))]
        for at, each in enumerate(body["events"])
    ]
    return _drawn(["when", "what"], rows)


def _sides(body: Json, cited: Cited) -> Table:
    rows = [
        [
            escape(each["topic"]),
            *(_cell(text, cited.get(f"/rows/{at}/texts/{side}")) for side, text in enumerate(each["texts"])),
        ]
        for at, each in enumerate(body["rows"])
    ]
    return _drawn(["", *body["documents"]], rows)


def _drawn(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(*(escape(str(head)) for head in heads), box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table


def _cell(value: Any, citations: Sequence[int] | None) -> str:
    """What stands in a cell, with the numbers of its citations behind it."""
    marks = "".join(f"[{number}]" for number in citations or ())
    said = _MISSING if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return escape(f"{said} {marks}" if marks else said)


_TABLES: dict[str, Callable[[Json, Cited], Table]] = {
    "table": _table,
    "chart": _chart,
    "timeline": _timeline,
    "side_by_side": _sides,
}
