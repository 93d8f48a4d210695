"""What may be read of a database, as its operator describes it: without tables that are not listed, with comments, masks and a few
values of each column."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from services.tools.projects.records import Record
from services.tools.sql.configuration import DatabaseSettings
from services.tools.sql.models import DatabaseColumn, DatabaseTable, DatabaseUnavailable
from services.tools.sql.ports import Database
from services.tools.sql.rendering import plain

SAMPLES_MAX = 5
_SAMPLE_CHARACTERS_MAX = 40
_SAMPLED_TABLES_MAX = 200
_TEXT_TYPES = ("char", "text", "enum", "clob", "string")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")


async def read_schema(database: Database, settings: DatabaseSettings) -> Sequence[DatabaseTable]:
    """Raises DatabaseUnavailable, also where the operator hides what is not there: it may have another name by now."""
    found = await database.tables()
    tables = [_described(table, settings) for table in found if _is_listed(table, settings)]
    _check_hidden(tables, settings)
    sampled = tables[:_SAMPLED_TABLES_MAX]
    return [await _with_samples(database, table, settings) for table in sampled] + tables[_SAMPLED_TABLES_MAX:]


def record_of(table: DatabaseTable) -> Record:
    """The table as something to be found by words and by meaning."""
    columns = "; ".join(
        " ".join(
            part for part in (column.name, in_words(column.name), column.comment, ", ".join(column.samples)) if part
        )
        for column in table.columns
    )
    name = f"{table.name} {in_words(table.name)}"
    return Record(id=table_id(table)[:100], name=name[:200], summary=table.comment[:1000], description=columns[:4000])


def table_id(table: DatabaseTable) -> str:
    return f"{table.schema}.{table.name}" if table.schema else table.name


def in_words(name: str) -> str:
    """ "OrderDetails" → "order details" """
    return " ".join(_WORDS.findall(name)).lower()


def _is_listed(table: DatabaseTable, settings: DatabaseSettings) -> bool:
    if not table.columns:
        return False
    if table.is_view and (settings.masked or settings.rows):
        return table.name in settings.tables  # it may show what is hidden in its tables: the operator names it
    return not settings.tables or any(fnmatchcase(table.name, pattern) for pattern in settings.tables)


def _described(table: DatabaseTable, settings: DatabaseSettings) -> DatabaseTable:
    comments = {key.casefold(): value for key, value in settings.comments.items()}
    masked = {each.casefold() for each in settings.masked}

    def described(column: DatabaseColumn) -> DatabaseColumn:
        key = f"{table.name}.{column.name}".casefold()
        return replace(column, comment=comments.get(key, column.comment), is_masked=key in masked)

    comment = comments.get(table.name.casefold(), table.comment)
    return replace(table, comment=comment, columns=[described(column) for column in table.columns])


def _check_hidden(tables: Sequence[DatabaseTable], settings: DatabaseSettings) -> None:
    there = {table.name.casefold() for table in tables}
    columns = {f"{table.name}.{column.name}".casefold() for table in tables for column in table.columns}
    gone = [each for each in settings.masked if each.casefold() not in columns]
    gone += [each for each in settings.rows if each.casefold() not in there]
    if gone:
        raise DatabaseUnavailable(
            f"the operator hides {gone[0]}, which is not there: the database is not asked until its settings fit it"
        )


async def _with_samples(database: Database, table: DatabaseTable, settings: DatabaseSettings) -> DatabaseTable:
    """Not of what somebody may not see, and not of what does not help."""
    if table.name.casefold() in {name.casefold() for name in settings.rows} or table.is_view:
        return table
    names = [column.name for column in table.columns if not column.is_masked and _is_text(column)]
    found: Mapping[str, Sequence[str]] = await database.samples(table, names, SAMPLES_MAX) if names else {}
    return replace(table, columns=[_sampled(column, found.get(column.name, ())) for column in table.columns])


def _is_text(column: DatabaseColumn) -> bool:
    return not column.type or any(word in column.type.lower() for word in _TEXT_TYPES)


def _sampled(column: DatabaseColumn, values: Sequence[str]) -> DatabaseColumn:
    if any("@" in value for value in values):  # addresses of people help no condition
        return column
    short = [plain(value) for value in values if 0 < len(value) <= _SAMPLE_CHARACTERS_MAX]
    return replace(column, samples=tuple(short))
