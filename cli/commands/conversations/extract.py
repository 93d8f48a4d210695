"""`groundwork extract`: the fields of a JSON Schema out of documents, as a table on the screen or in a file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.display.answering import RunView
from cli.display.extracted import WRITERS, rows_of, write
from cli.display.output import Output
from cli.errors import UsageError, document_id, given
from cli.running import run as run_connected


@dataclass(frozen=True)
class Extraction:
    """The fields, and where they are read."""

    schema: Json
    collection_id: str
    document_ids: tuple[str, ...]

    def start(self) -> tuple[str, Json]:
        path = f"/v1/collections/{in_path(self.collection_id, 'collection')}/extract"
        return path, {"schema": self.schema, "document_ids": list(self.document_ids)}


def extract(
    schema: Annotated[
        Path, typer.Argument(help="File with a JSON Schema of an object: its properties are the fields.")
    ],
    collection: Annotated[str, typer.Option("--collection", "-c", help="Collection.")] = "default",
    document: Annotated[list[str], typer.Option("--document", "-d", help="Only this document; repeatable.")] = [],  # noqa: B006
    to: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write: .csv, .json or .xlsx. Default: the screen.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> None:
    """Read the fields of a JSON Schema out of documents: a row for each, with where each value stands. Ctrl-C cancels it.

    A file has the values, what is missing, and the place of each value. Exit code 1 if it fails.
    """
    output = Output(as_json=as_json)

    async def run(gateway: Gateway) -> int:
        if to is not None and to.suffix.lower() not in WRITERS:
            raise UsageError(f"The name of the file to write ends in {', '.join(WRITERS)}, and {to} does not.")
        asked = Extraction(_read(schema), given(collection, "collection"), tuple(map(document_id, document)))
        view = RunView(output, with_steps=not quiet)
        await view.follow(gateway, asked)
        if to is None or view.exit_code:
            view.finish()
            return view.exit_code
        rows = rows_of(view.run)
        write(to, rows)
        output.err.print(view.run.text, markup=False)
        output.err.print(f"Wrote {len(rows.rows)} rows to {to}", markup=False)
        if as_json:
            output.json({"file": str(to), "rows": len(rows.rows), "run_id": view.run.run_id})
        return 0

    run_connected(run, interrupted="Cancelled.")


def _read(path: Path) -> Json:
    """Raises UsageError for a file that is no JSON object."""
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is no JSON: {error}") from error
    if not isinstance(schema, dict):
        raise UsageError(f'{path} is no JSON Schema of an object: write {{"type": "object", "properties": {{…}}}}')
    return schema
