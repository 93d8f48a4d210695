"""What can be drawn without a model: rows of tables, dated sentences, headings, and numbered steps."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from kit.language.cues import is_year
from kit.language.sentences import UnitKind, split_units
from kit.language.terms import tokens
from kit.reading.rows import fields, is_row
from kit.temporal.calendar import Moment
from kit.temporal.reading import read_periods
from services.orchestrator.drawing.forms import CHARTS, Form
from services.orchestrator.drawing.parts import lines
from services.orchestrator.log.events import Evidence
from services.orchestrator.quizzes.numbers import read_number

Filled = Mapping[str, Any]
_MOST_ROWS, _MOST_COLUMNS, _MOST_BARS, _MOST_EVENTS, _MOST_NODES, _MOST_SERIES = 60, 6, 60, 40, 40, 4
_LONGEST_EVENT = 200
_LONGEST_SIDE = 300
_LONGEST_STEP = 120
_STEP = re.compile(r"^\s*(?:step\s+)?\(?(\d{1,2})[.):]\s+(.{3,})$", re.IGNORECASE)
_FOUR_DIGITS = re.compile(r"\d{4}")
_NAME_BEFORE = re.compile(r"\b(?!(?:In|By|Since|From|Until|Around|About|After|Before|Im|En) $)[A-Z][\w-]* $")
_OLD = 1500
"""A lower number behind a name is part of it: "the Wang 1200"."""
_HEADING = re.compile(r"[^\W_][^\n|]{1,60}[^\s.!?:;,|]")
_BULLET = re.compile(r"^(?:[•·*‣▪–-]|\(?\d{1,2}[.)])\s+")
_READ_AT = Moment(datetime(2000, 1, 1, tzinfo=UTC))
"""Only times that name their year are read: what they are relative to does not matter."""


@dataclass(frozen=True)
class TableRow:
    """A row of a table."""

    source: int
    heading: str
    """Name of the column of its first cell."""
    name: str
    cells: Mapping[str, str]


def find(form: Form, question: str, evidence: Sequence[Evidence]) -> Filled | None:
    """What a model would have filled in; None where the passages have nothing of that form."""
    asked = {token.stem for token in tokens(question) if not token.is_stopword}
    if form in CHARTS:
        return _points(form, asked, evidence)
    if form is Form.TABLE:
        return _table(asked, evidence)
    if form is Form.TIMELINE:
        return _events(evidence)
    if form is Form.MIND_MAP:
        return _headings(evidence)
    if form is Form.FLOW:
        return _steps(evidence)
    return _sides(asked, evidence) if form is Form.SIDE_BY_SIDE else None


def _rows(evidence: Sequence[Evidence]) -> list[TableRow]:
    """The rows of the table that has most of them, each once."""
    found: dict[str, dict[str, TableRow]] = {}
    for passage in evidence:
        for line in passage.text.splitlines():
            if not is_row(line.strip()):
                continue
            (heading, name), *cells = fields(line.strip())
            values = {column: cell.strip().rstrip(";") for column, cell in cells if column and cell.strip()}
            if name.strip() and values:
                found.setdefault(heading, {}).setdefault(
                    line.strip(), TableRow(passage.number, heading, name.strip(), values)
                )
    return list(max(found.values(), key=len, default={}).values())


def _asked_first(rows: Sequence[TableRow], asked: set[str]) -> list[TableRow]:
    """The rows that the question names, where it names some; else all."""
    named = [row for row in rows if asked & _stems(row.name)]
    return named if len(named) > 1 else list(rows)


def _columns(rows: Sequence[TableRow], asked: set[str]) -> list[str]:
    """Columns in their order; those that the question names alone, where it names some."""
    known = list(dict.fromkeys(column for row in rows for column in row.cells))
    return [column for column in known if asked & _stems(column)] or known


def _table(asked: set[str], evidence: Sequence[Evidence]) -> Filled | None:
    found = _asked_first(_rows(evidence), asked)
    rows = found[:_MOST_ROWS]
    columns = _columns(rows, asked)[:_MOST_COLUMNS]
    if not rows or not columns:
        return _numbers_as_table(evidence)

    def cells(row: TableRow) -> list[dict[str, Any]]:
        texts = [row.name, *(row.cells.get(column, "") for column in columns)]
        return [{"text": text, "source": row.source} for text in texts]

    return {
        "title": "",
        "columns": [rows[0].heading or "–", *columns],
        "rows": [{"cells": cells(row)} for row in rows],
        "cut": _cut(len(found), _MOST_ROWS, "rows"),
    }


def _cut(count: int, most: int, what: str) -> list[str]:
    """Says what there was no room for."""
    return [f"{count - most} more {what}: {most} are the most."] if count > most else []


def _numbers_as_table(evidence: Sequence[Evidence]) -> Filled | None:
    """Sentences that have a number, and the number: the table of passages that hold none."""
    rows = []
    for passage in evidence:
        for unit in split_units(passage.text):
            numbers = [
                each
                for each in tokens(unit.text)
                if each.is_number and not unit.text[each.end : each.end + 1].isalpha()
            ]
            if unit.kind is UnitKind.PROSE and len(numbers) == 1 and len(unit.text) <= _LONGEST_EVENT:
                texts = [numbers[0].surface, " ".join(unit.text.split())]
                rows.append({"cells": [{"text": text, "source": passage.number} for text in texts]})
    return {"title": "", "columns": ["#", "–"], "rows": rows[:_MOST_ROWS]} if len(rows) > 1 else None


def _points(form: Form, asked: set[str], evidence: Sequence[Evidence]) -> Filled | None:
    """Numbers of a table; of a line the columns are the labels where they are times, of a radar always."""
    rows = _asked_first(_rows(evidence), asked)
    numeric = [
        column
        for column in _columns(rows, asked)
        if sum(read_number(row.cells.get(column, "")) is not None for row in rows) * 2 > len(rows)
    ]
    timed = [column for column in numeric if any(is_year(token.surface) for token in tokens(column))]
    across = timed if form is Form.LINE and len(timed) > 1 else numeric if form is Form.RADAR else []
    points: list[dict[str, Any]] = []
    if across:
        points = [
            _point(row.name, column, row.cells.get(column, ""), row.source)
            for row in rows[:_MOST_SERIES]
            for column in across
        ]
    elif numeric:
        points = [
            _point(column, row.name, row.cells.get(column, ""), row.source)
            for column in numeric[: _MOST_SERIES if len(numeric) > 1 and asked & _stems(" ".join(numeric)) else 1]
            for row in rows[:_MOST_BARS]
        ]
    kept = [point for point in points if point["value"] is not None] or _yearly(evidence)
    cut = _cut(len(rows), _MOST_SERIES if across else _MOST_BARS, "rows") if points else []
    return {"title": "", "unit": "", "points": kept, "cut": cut} if len(kept) > 1 else None


def _point(series: str, label: str, value: str, source: int) -> dict[str, Any]:
    return {"series": series, "label": label, "value": read_number(value), "source": source}


def _yearly(evidence: Sequence[Evidence]) -> list[dict[str, Any]]:
    """One number a year, from sentences that have one year and one number and end alike: "In 2019 revenue was 12 million"."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for passage in evidence:
        for text, _, _ in lines(passage.text):
            terms = tokens(text)
            numbers = [token for token in terms if token.is_number]
            years = [token for token in numbers if is_year(token.surface)]
            if len(numbers) != 2 or len(years) != 1:
                continue
            other = next(token for token in numbers if token is not years[0])
            unit = text[other.end :].split()[:1]
            key = unit[0].strip(".,;") if unit else ""
            value = read_number(other.surface)
            if value is not None:
                point = {"series": "", "label": years[0].surface, "value": value, "source": passage.number}
                found.setdefault(key, {}).setdefault(years[0].surface, point)
    best = max(found.values(), key=len, default={})
    return [best[year] for year in sorted(best)]


def _events(evidence: Sequence[Evidence]) -> Filled | None:
    """Sentences that name a time with its year, in the order of the times."""
    dated: dict[str, tuple[datetime, dict[str, Any]]] = {}
    for passage in evidence:
        for unit in split_units(passage.text):
            text = _BULLET.sub("", " ".join(unit.text.split()))
            if unit.kind is UnitKind.HEADING or len(text) > _LONGEST_EVENT:
                continue
            if time := _time_of(text):
                when, start = time
                dated.setdefault(text, (start, {"when": when, "what": text, "source": passage.number}))
    ranked = [event for _, event in sorted(dated.values(), key=lambda each: each[0])[:_MOST_EVENTS]]
    return {"title": "", "events": ranked, "cut": _cut(len(dated), _MOST_EVENTS, "events")} if ranked else None


def _time_of(text: str) -> tuple[str, datetime] | None:
    """The first time that a sentence names with its year, as it is written, and when that begins; else its first year."""
    if _FOUR_DIGITS.search(text) is None:
        return None
    for period in read_periods(text, _READ_AT):
        if period.span.start is not None and _FOUR_DIGITS.search(period.text):
            return period.text.strip(" ,.;:"), period.span.start
    years = (
        token.surface
        for token in tokens(text)
        if is_year(token.surface)
        and len(token.surface) == 4
        and (int(token.surface) >= _OLD or not _NAME_BEFORE.search(text[: token.start]))
    )
    return next(((year, datetime(int(year), 1, 1, tzinfo=UTC)) for year in years), None)


def _headings(evidence: Sequence[Evidence]) -> Filled | None:
    """A document, its headings, and the headings below those; of a short one those that stand within its passages."""
    return _tree(evidence, inner=False) or _tree(evidence, inner=True)


def _tree(evidence: Sequence[Evidence], *, inner: bool) -> Filled | None:
    nodes: dict[tuple[str, ...], dict[str, Any]] = {}
    edges: list[dict[str, Any]] = []
    documents = dict.fromkeys(each.document_name for each in evidence)
    levels = _levels_with_room(evidence)
    for passage in sorted(evidence, key=lambda each: (each.document_name, each.char_start)):
        above = (passage.document_name, *passage.heading_path[:levels])
        below = [(*above, each) for each in _headings_within(passage)] if inner else []
        for path in (*(above[:size] for size in range(1, len(above) + 1)), *below):
            if path in nodes or len(nodes) >= _MOST_NODES:
                continue
            nodes[path] = {"id": str(len(nodes)), "label": path[-1], "members": [], "source": passage.number}
            if (before := nodes.get(path[:-1])) is not None:
                edges.append({"from": before["id"], "to": nodes[path]["id"], "label": "", "source": passage.number})
    if len(documents) != 1 or len(nodes) < 3:
        return None
    return {"title": next(iter(documents)), "nodes": list(nodes.values()), "edges": edges}


def _headings_within(passage: Evidence) -> list[str]:
    """Short lines of a passage that stand alone above a longer paragraph."""
    paragraphs = [each.strip() for each in re.split(r"\n\s*\n", passage.text)]
    return [
        own
        for own, following in pairwise(paragraphs)
        if _HEADING.fullmatch(own) and len(following) > len(own) and own not in passage.heading_path
    ]


def _levels_with_room(evidence: Sequence[Evidence]) -> int:
    """Levels of headings that can be shown whole; at least one, and of that one the first headings are shown."""
    deepest = max((len(each.heading_path) for each in evidence), default=0)
    paths = {tuple(each.heading_path) for each in evidence}
    whole = (
        level
        for level in range(deepest, 1, -1)
        if len({path[:size] for path in paths for size in range(1, level + 1) if len(path) >= size}) < _MOST_NODES
    )
    return next(whole, 1)


def _steps(evidence: Sequence[Evidence]) -> Filled | None:
    """The longest list of numbered steps that stands in one passage."""
    best: list[tuple[str, int]] = []
    for passage in evidence:
        run: list[tuple[str, int]] = []
        for line in passage.text.splitlines():
            if found := _STEP.match(line):
                number = int(found[1])
                run = [*run, (found[2].strip(), passage.number)] if number == len(run) + 1 else []
                run = run or ([(found[2].strip(), passage.number)] if number == 1 else [])
                best = max(best, run, key=len)
    if len(best) < 2:
        return None
    nodes = [
        {"id": str(at), "label": text[:_LONGEST_STEP], "members": [], "source": source}
        for at, (text, source) in enumerate(best)
    ]
    edges = [
        {"from": str(at), "to": str(at + 1), "label": "", "source": source} for at, (_, source) in enumerate(best[:-1])
    ]
    return {"title": "", "nodes": nodes, "edges": edges}


def _sides(asked: set[str], evidence: Sequence[Evidence]) -> Filled | None:
    """For each passage of the first document the passage of each other that shares most of its words."""
    documents: dict[str, list[Evidence]] = {}
    for passage in evidence:
        documents.setdefault(passage.document_id, []).append(passage)
    if len(documents) < 2:
        return None
    (first, *_), *_ = documents.values()
    rows = []
    for passage in documents[first.document_id][:6]:
        own = _stems(passage.text)
        others = [
            max(theirs, key=lambda each: len(own & _stems(each.text)))
            for document, theirs in documents.items()
            if document != first.document_id
        ]
        sides = [{"text": _said(each, asked | own), "source": each.number} for each in (passage, *others[:3])]
        rows.append({"topic": passage.heading_path[-1] if passage.heading_path else "", "sides": sides})
    return {"title": "", "rows": rows}


def _said(passage: Evidence, wanted: set[str]) -> str:
    """The sentence of a passage that has most of the wanted words."""
    units = [unit.text for unit in split_units(passage.text) if unit.kind is not UnitKind.HEADING] or [passage.text]
    said = " ".join(max(units, key=lambda text: len(wanted & _stems(text))).split())
    return said if len(said) <= _LONGEST_SIDE else said[:_LONGEST_SIDE].rpartition(" ")[0]


def outline(evidence: Sequence[Evidence]) -> list[tuple[int, str, Evidence]]:
    """What is shown of what cannot be drawn: headings, and below each its first sentence. (level, text, passage)"""
    found: list[tuple[int, str, Evidence]] = []
    seen: Counter[str] = Counter()
    for passage in sorted(evidence, key=lambda each: (each.document_name, each.char_start)):
        for level, heading in enumerate([passage.document_name, *passage.heading_path]):
            key = "\n".join([passage.document_name, *passage.heading_path[:level]])
            if not seen[key]:
                found.append((level, heading, passage))
            seen[key] += 1
        sentence = next(iter(_sentences(passage)), "")
        if sentence:
            found.append((len(passage.heading_path) + 1, sentence, passage))
    return found[: 2 * _MOST_ROWS]


def _sentences(passage: Evidence) -> Iterator[str]:
    for unit in split_units(passage.text):
        if unit.kind is not UnitKind.HEADING:
            yield " ".join(unit.text.split())[: 2 * _LONGEST_EVENT]


def _stems(text: str) -> set[str]:
    return _content(tokens(text))


def _content(found: Iterable[Any]) -> set[str]:
    return {token.stem for token in found if not token.is_stopword}
