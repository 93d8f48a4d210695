"""The work of the agent extraction: a recorded step for each document, so that a run that is taken over goes on with the next,
and a table with a citation for each value."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kit.errors import GroundworkError
from kit.reading.fields import Field
from kit.reading.values import Cell, Value, find_value, labelled_values, table_rows, typed
from services.orchestrator.answering.draft import EXTRACTIVE
from services.orchestrator.artefacts.citing import Citing
from services.orchestrator.artefacts.kinds import LONGEST_BYTES, TABLE
from services.orchestrator.extraction.fields import read_fields
from services.orchestrator.log.events import Answer, Artefact, Evidence, Thinking
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import ReadableDocument
from services.orchestrator.work import Work

MOST_DOCUMENTS = 500
MOST_VALUES = 1500
"""Of one table: an event of the log has all of it, with a citation for each value."""
_AROUND_CHARS = 80
_NAMED = 20
"""Names that the text lists."""
_PART_BYTES = LONGEST_BYTES // 2
_PROMPT = (
    "For each field give its value exactly as the sources write it, and the number of the source that it stands in. "
    "Where the sources do not say it, give null for both."
)


@dataclass(frozen=True)
class FoundCell:
    """A value, and the characters of the passage where it stands."""

    value: Value
    source: int
    """Number of the passage."""
    start: int
    end: int


@dataclass(frozen=True)
class FoundRows:
    """What one document says: a row, or the rows of its table; a cell for each field, None for one that is missing."""

    rows: Sequence[Sequence[FoundCell | None]]
    evidence: Sequence[Evidence] = ()
    """The passages that hold the values."""

    @property
    def value_count(self) -> int:
        return sum(cell is not None for row in self.rows for cell in row)


async def extract(work: Work) -> Answer | None:
    """The table of the fields that the message asks for. None where it asks for none, or there is nothing to read."""
    fields = read_fields(work.message)
    documents = await work.documents(MOST_DOCUMENTS) if fields else []
    if not documents:
        return None
    found: list[FoundRows] = []
    for number, document in enumerate(documents, start=1):
        summary = f"Read {document.name} ({number} of {len(documents)})."
        found.append(
            await work.run.once(
                f"rows{number}",
                partial(_rows, work, document, fields),
                FoundRows,
                show=partial(_shown, summary),
                of_steps=True,
            )
        )
        if sum(each.value_count for each in found) >= MOST_VALUES:
            break
    if len(found) < len(documents):
        await work.tell(f"The table is full: the first {len(found)} of {len(documents)} documents are in it.")
    documents = documents[: len(found)]
    for number, table in enumerate(tables(documents, fields, found), start=1):
        await work.publish(table, key=f"rows{number}")
    text = _said(documents, fields, found)
    await Screen(work.run.journal).settle(text)
    return Answer(text, (), None, EXTRACTIVE)


def _shown(summary: str, _: FoundRows) -> Thinking:
    return Thinking("work", summary)


async def _rows(work: Work, document: ReadableDocument, fields: Sequence[Field]) -> FoundRows:
    passages = await work.read(document.document_id)
    rows = await asyncio.to_thread(table_rows, fields, passages)
    if not rows:
        labelled = await asyncio.to_thread(labelled_values, passages)
        rows = [await _one_row(work, document, fields, passages, [find_value(each, labelled) for each in fields])]
    rows = rows[: max(1, MOST_VALUES // len(fields))]
    cited = {cell.source.number for row in rows for cell in row if cell}
    return FoundRows(
        [
            [FoundCell(cell.value, cell.source.number, cell.start, cell.end) if cell else None for cell in row]
            for row in rows
        ],
        [each for each in passages if each.number in cited],
    )


async def _one_row(
    work: Work,
    document: ReadableDocument,
    fields: Sequence[Field],
    passages: Sequence[Evidence],
    own: Sequence[Cell[Evidence] | None],
) -> Sequence[Cell[Evidence] | None]:
    """What the model finds, and what rules have found of the rest."""
    if not passages or not work.has_model:
        return own
    try:
        said = await work.fill_in(_schema(fields), passages, prompt=_PROMPT)
    except GroundworkError as error:
        await work.degrade("llm", error, f"Reading {document.name} by its labels alone.")
        return own
    return [_checked(said, field, passages) or found for field, found in zip(fields, own, strict=True)]


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


def _checked(said: Mapping[str, Any], field: Field, passages: Sequence[Evidence]) -> Cell[Evidence] | None:
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


def tables(
    documents: Sequence[ReadableDocument], fields: Sequence[Field], found: Sequence[FoundRows]
) -> Sequence[Artefact]:
    """The table, in as many parts as its length needs."""
    columns = ["document", *(field.name for field in fields)]
    parts = [_Part(columns)]
    for document, each in zip(documents, found, strict=True):
        passages = {passage.number: passage for passage in each.evidence}
        for row in each.rows:
            if parts[-1].size_bytes > _PART_BYTES:
                parts.append(_Part(columns))
            parts[-1].add(document, row, passages)
    return [part.artefact(number, len(parts)) for number, part in enumerate(parts, start=1)]


class _Part:
    """Rows of the table, while they are collected."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._citing = Citing(around_chars=_AROUND_CHARS)
        self._rows: list[list[Value]] = []
        self.size_bytes = 0

    def add(
        self, document: ReadableDocument, row: Sequence[FoundCell | None], passages: Mapping[int, Evidence]
    ) -> None:
        for column, cell in enumerate(row, start=1):
            if cell is not None:
                self._citing.cite(f"/rows/{len(self._rows)}/{column}", passages[cell.source], cell.start, cell.end)
                self.size_bytes += _AROUND_CHARS + 2 * len(str(cell.value).encode())
        self._rows.append([document.name, *(cell.value if cell else None for cell in row)])
        self.size_bytes += len(document.name.encode())

    def artefact(self, number: int, count: int) -> Artefact:
        title = "Extracted fields" + (f" ({number} of {count})" if count > 1 else "")
        outline = "\n".join(_line(self._columns, row) for row in self._rows)
        body = {"columns": self._columns, "rows": self._rows}
        name = "rows" if number == 1 else f"rows{number}"
        return Artefact(name, TABLE, title, body, self._citing.items, self._citing.citations, outline)


def _line(columns: Sequence[str], row: Sequence[Value]) -> str:
    said = "; ".join(
        f"{name}: {'missing' if value is None else value}" for name, value in zip(columns[1:], row[1:], strict=True)
    )
    return f"{row[0]}: {said}"


def _said(documents: Sequence[ReadableDocument], fields: Sequence[Field], found: Sequence[FoundRows]) -> str:
    """What was found, in figures. A document that has nothing is named once."""
    total = len(fields) * sum(len(each.rows) for each in found)
    values = sum(each.value_count for each in found)
    rows = sum(len(each.rows) for each in found)
    text = f"{values} of {total} values were found in {_counted(len(found), 'document')}"
    text += f", in {_counted(rows, 'row')}." if rows != len(found) else "."
    nothing = [document.name for document, each in zip(documents, found, strict=True) if not each.value_count]
    missing = [
        f"{field.name} in {document.name}"
        for document, each in zip(documents, found, strict=True)
        if each.value_count
        for at, field in enumerate(fields)
        if any(row[at] is None for row in each.rows)
    ]
    text += f" Missing: {_listed(missing)}." if missing else ""
    return text + (f" Nothing was found in {_listed(nothing)}." if nothing else "")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _listed(names: Sequence[str]) -> str:
    rest = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{rest}"
