"""The work of the agent extraction: one recorded step a document, so that a run that is taken over goes on with the next, and a
table with a citation for each value."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kit.errors import GroundworkError
from services.orchestrator.answering.drafting import EXTRACTIVE
from services.orchestrator.artefacts.citing import Citing
from services.orchestrator.artefacts.kinds import TABLE
from services.orchestrator.extraction.fields import Field, read_fields
from services.orchestrator.extraction.values import Cell, Value, find_value, labelled_values, typed
from services.orchestrator.log.events import Answer, Artefact, Evidence, Thinking
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import ReadableDocument
from services.orchestrator.work import Work

MOST_DOCUMENTS = 100
"""The table is one event of the log, with a citation for each value."""
_AROUND_CHARS = 120
_PROMPT = (
    "For each field give its value exactly as the sources write it, and the number of the source that it stands in. "
    "Where the sources do not say it, give null for both."
)


@dataclass(frozen=True)
class FoundRow:
    """What one document says: a cell for each field, None for one that is missing."""

    cells: Sequence[Cell | None]


async def extract(work: Work) -> Answer | None:
    """The table of the fields that the message asks for. None where it asks for none, or there is nothing to read."""
    fields = read_fields(work.message)
    documents = await work.documents(MOST_DOCUMENTS) if fields else []
    if not documents:
        return None
    rows: list[FoundRow] = []
    for number, document in enumerate(documents, start=1):
        told = f"Read {document.name} ({number} of {len(documents)})."
        rows.append(
            await work.run.once(
                f"document{number}",
                partial(_row, work, document, fields),
                FoundRow,
                show=partial(_shown, told),
                of_steps=True,
            )
        )
    await work.publish(_table(documents, fields, rows))
    text = _said(documents, fields, rows)
    await Screen(work.run.journal).settle(text)
    return Answer(text, (), None, EXTRACTIVE)


def _shown(told: str, _: FoundRow) -> Thinking:
    return Thinking("work", told)


async def _row(work: Work, document: ReadableDocument, fields: Sequence[Field]) -> FoundRow:
    passages = await work.read(document.document_id)
    labelled = await asyncio.to_thread(labelled_values, passages)
    found = [find_value(field, labelled) for field in fields]
    if passages and work.has_model:
        try:
            said = await work.fill_in(_schema(fields), passages, prompt=_PROMPT)
        except GroundworkError as error:
            await work.degrade("llm", error, f"Reading {document.name} by its labels alone.")
        else:
            found = [_checked(said, field, passages) or own for field, own in zip(fields, found, strict=True)]
    return FoundRow(found)


def _schema(fields: Sequence[Field]) -> Mapping[str, Any]:
    """A value and the number of its passage for each field."""
    found = {
        "type": "object",
        "properties": {"value": {"type": ["string", "null"]}, "source": {"type": ["integer", "null"]}},
        "required": ["value", "source"],
        "additionalProperties": False,
    }
    properties = {
        field.name: {**found, "description": field.description} if field.description else found for field in fields
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _checked(said: Mapping[str, Any], field: Field, passages: Sequence[Evidence]) -> Cell | None:
    """The model's value where it stands in the passage that it names, word for word; else None."""
    given = said.get(field.name) or {}
    text, number = str(given.get("value") or "").strip(), given.get("source")
    source = next((each for each in passages if each.number == number), None)
    start = source.text.casefold().find(text.casefold()) if source is not None and text else -1
    if source is None or start < 0:
        return None
    end = start + len(text)
    value = typed(source.text[start:end], field.type)
    return None if value is None else Cell(value, source, start, end)


def _table(documents: Sequence[ReadableDocument], fields: Sequence[Field], rows: Sequence[FoundRow]) -> Artefact:
    citing = Citing(around_chars=_AROUND_CHARS)
    values: list[list[Value]] = []
    for at, (document, row) in enumerate(zip(documents, rows, strict=True)):
        for column, cell in enumerate(row.cells, start=1):
            if cell is not None:
                citing.cite(f"/rows/{at}/{column}", cell.source, cell.start, cell.end)
        values.append([document.name, *(cell.value if cell else None for cell in row.cells)])
    columns = ["document", *(field.name for field in fields)]
    outline = "\n".join(_line(columns, row) for row in values)
    body = {"columns": columns, "rows": values}
    return Artefact("rows", TABLE, "Extracted fields", body, citing.items, citing.citations, outline)


def _line(columns: Sequence[str], row: Sequence[Value]) -> str:
    said = "; ".join(
        f"{name}: {'missing' if value is None else value}" for name, value in zip(columns[1:], row[1:], strict=True)
    )
    return f"{row[0]}: {said}"


def _said(documents: Sequence[ReadableDocument], fields: Sequence[Field], rows: Sequence[FoundRow]) -> str:
    """What was found, in figures."""
    missing = [
        f"{field.name} in {document.name}"
        for document, row in zip(documents, rows, strict=True)
        for field, cell in zip(fields, row.cells, strict=True)
        if cell is None
    ]
    total = len(fields) * len(rows)
    text = (
        f"{total - len(missing)} of {total} values were found in {len(rows)} document{'s' if len(rows) != 1 else ''}."
    )
    if missing:
        rest = f", and {len(missing) - 20} more" if len(missing) > 20 else ""
        text += f" Missing: {', '.join(missing[:20])}{rest}."
    return text
