"""Asks the agents that read whole documents: summaries of long ones with the time that they take, and fields out of invoices and
tables that are known."""

import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cli.client.gateway import Gateway, Json
from evals.artefacts import made
from evals.retrieval.indexing import index

_JSON = {"Accept": "application/json"}
_LONG, _INVOICES, _TABLES = "artefacts-long", "artefacts-invoices", "artefacts-tables"


@dataclass(frozen=True)
class Summarised:
    """What came of the summary of a long document."""

    document: str
    indexed_s: float
    seconds: float
    """Of the request, from the first byte to the whole answer."""
    parts: int
    """Sections or tenths of the document."""
    cited: int
    """Of these, those that the summary cites."""
    sentences: int

    @property
    def share(self) -> float:
        return self.cited / self.parts


@dataclass(frozen=True)
class Extracted:
    """Values that were asked for, found, and right."""

    what: str
    expected: int
    found: int
    right: int
    cited: int
    """Of those found, those whose cited words hold the value."""

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.expected if self.expected else 0.0


async def summaries(gateway: Gateway) -> list[Summarised]:
    """Of a report of 60 sections, and of a PDF of 400 pages. Raises EvaluationError, and what the gateway raises."""
    with TemporaryDirectory() as folder:
        files = {"sections.md": made.sectioned(), "pages.pdf": made.paged()}
        found = []
        for name, content in files.items():
            path = Path(folder) / name
            path.write_bytes(content)
            collection = f"{_LONG}-{name.partition('.')[0]}"
            indexed = await index(gateway, collection, {name: path})
            began = time.perf_counter()
            answer = await gateway.request(
                "POST",
                f"/v1/collections/{collection}/chat",
                json={"message": "Summarise the document", "agent": "summary"},
                headers=_JSON,
            )
            found.append(_summarised(name, answer, indexed.seconds, time.perf_counter() - began))
    return found


def _summarised(name: str, answer: Json, indexed_s: float, seconds: float) -> Summarised:
    citations = answer["citations"]
    if name.endswith(".pdf"):
        tenth = made.PAGES // 10
        cited = {(each["page"] - 1) // tenth for each in citations if each["page"]}
        return Summarised(f"PDF of {made.PAGES} pages", indexed_s, seconds, 10, len(cited), len(citations))
    quotes = " ".join(each["text"][each["quote_start"] : each["quote_end"]] for each in citations)
    stations = set(re.findall(r"station (\w+ \d+)", quotes))
    return Summarised(f"{made.SECTIONS} sections", indexed_s, seconds, made.SECTIONS, len(stations), len(citations))


async def extractions(gateway: Gateway, data: Path) -> list[Extracted]:
    """Of the invoices, and of each table. Raises EvaluationError, and what the gateway raises."""
    return [await _of_invoices(gateway), *[each async for each in _of_tables(gateway, data)]]


async def _of_invoices(gateway: Gateway) -> Extracted:
    known = made.invoices()
    with TemporaryDirectory() as folder:
        files = {}
        for name, (content, _) in known.items():
            files[name] = Path(folder) / name
            files[name].write_bytes(content)
        await index(gateway, _INVOICES, files)
    answer = await _asked(gateway, _INVOICES, made.FIELDS, [])
    wanted = Counter(
        (name, field, _plain(value)) for name, (_, values) in known.items() for field, value in values.items() if value
    )
    return _compared(f"{made.INVOICES} invoices", wanted, answer, by=0)


async def _of_tables(gateway: Gateway, data: Path) -> AsyncIterator[Extracted]:
    files = {Path(name).name: data / "docs" / name for name in made.TABLES}
    await index(gateway, _TABLES, files)
    documents = await gateway.pages(f"/v1/collections/{_TABLES}/documents", "documents")
    ids = {each["name"]: each["id"] for each in documents}
    for name, columns in made.TABLES.items():
        path = data / "docs" / name
        schema = {"type": "object", "properties": {column: {"type": kind} for column, kind in columns.items()}}
        answer = await _asked(gateway, _TABLES, schema, [ids[path.name]])
        key = next(iter(columns))
        wanted = Counter(
            (row[key], column, _plain(row[column]))
            for row in made.rows_of_table(path)
            for column in columns
            if row[column]
        )
        yield _compared(path.name, wanted, answer, by=1)


async def _asked(gateway: Gateway, collection: str, schema: Mapping[str, Any], document_ids: list[str]) -> Json:
    body = {"schema": dict(schema), "document_ids": document_ids}
    return await gateway.request("POST", f"/v1/collections/{collection}/extract", json=body, headers=_JSON)


def _compared(what: str, wanted: Counter[tuple[str, str, str]], answer: Json, *, by: int) -> Extracted:
    """Compares values row by row. The cell in column `by` names the row."""
    found: Counter[tuple[str, str, str]] = Counter()
    cited = 0
    for table in (each for each in answer["artefacts"] if each["kind"] == "table"):
        quotes = _quotes(table)
        for at, row in enumerate(table["body"]["rows"]):
            for column, value in enumerate(row):
                if column and value is not None:
                    found[str(row[by]), table["body"]["columns"][column], _plain(value)] += 1
                    cited += _plain(quotes.get(f"/rows/{at}/{column}", "")) == _plain(value)
    return Extracted(what, wanted.total(), found.total(), (wanted & found).total(), cited)


def _quotes(table: Json) -> Mapping[str, str]:
    words = {each["number"]: each["text"][each["quote_start"] : each["quote_end"]] for each in table["citations"]}
    return {item["path"]: words[item["citations"][0]] for item in table["items"]}


def _plain(value: Any) -> str:
    """A number as a number, whatever its marks and its unit; everything else as its words."""
    text = str(value).strip().removesuffix("EUR").strip()
    try:
        return f"{float(text.replace(',', '')):g}" if len(text) < 16 else text
    except ValueError:
        return " ".join(text.casefold().split())
