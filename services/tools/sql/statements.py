"""Reads a statement and refuses all but one SELECT over what may be read. What is run is written anew from what was read, so that
parser and database cannot understand it differently.

The session of the database enforces that nothing is written; this is in front of it, and makes masks and row limits possible.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from services.tools.sql.allowed import FUNCTIONS, NAMED_FUNCTIONS, STRUCTURE, TYPES
from services.tools.sql.models import Dialect, SqlRefused

CHARACTERS_MAX = 8000
_NESTING_MAX = 40
_NODES_MAX = 4000
_WRITES = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.DDL, exp.Drop, exp.Alter, exp.TruncateTable, exp.Into)
_TABLE_PARTS = {"this", "db", "catalog", "alias", "joins", "laterals"}
_BRACKETS = {"(": 1, "[": 1, ")": -1, "]": -1}


def parse_select(sql: str, dialect: Dialect) -> exp.Query:
    """The statement, checked part by part; which tables it may read is not checked here. Raises SqlRefused."""
    return checked(_parsed(sql, dialect), dialect)


def parse_condition(sql: str, dialect: Dialect) -> exp.Expr:
    """A condition of the operator's, with placeholders. Raises ValueError."""
    try:
        found = sqlglot.parse_one(f"SELECT 1 WHERE {sql}", read=dialect.value)
    except (SqlglotError, RecursionError) as error:
        raise ValueError(f"{sql!r:.80} is no condition in SQL") from error
    where = found.args.get("where")
    if not isinstance(found, exp.Select) or not isinstance(where, exp.Where) or len(found.args["expressions"]) != 1:
        raise ValueError(f"{sql!r:.80} is no condition in SQL")
    condition: exp.Expr = where.this
    return condition


def with_values(found: exp.Expr, values: Mapping[str, Any]) -> exp.Expr:
    """The expression with literals in the place of `:name`. Raises SqlRefused for a name without a value."""

    def filled(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Placeholder):
            return node
        if not isinstance(node.this, str) or node.this not in values:
            raise SqlRefused(f"there is no value for :{node.this}")
        return exp.convert(values[node.this])

    return found.transform(filled)


def placeholders(found: exp.Expr) -> set[str]:
    return {str(node.this) for node in found.find_all(exp.Placeholder)}


def parse_named(sql: str, dialect: Dialect) -> exp.Expr:
    """A query of the operator's, whose values are not there yet. Raises SqlRefused."""
    return _parsed(sql, dialect)


def checked(found: exp.Expr, dialect: Dialect) -> exp.Query:
    """Raises SqlRefused unless it is a SELECT of allowed parts."""
    nodes = list(found.walk())
    if len(nodes) > _NODES_MAX:
        raise SqlRefused("the statement is too long; ask for less at once")
    if any(isinstance(node, _WRITES) for node in nodes):
        raise SqlRefused("the database is read-only here: write a SELECT that changes nothing")
    if not isinstance(found, exp.Select | exp.SetOperation):
        raise SqlRefused("write one SELECT; other statements are not run")
    for node in nodes:
        _check_part(node, dialect)
    return found


def _parsed(sql: str, dialect: Dialect) -> exp.Expr:
    if len(sql) > CHARACTERS_MAX:
        raise SqlRefused(f"the statement has more than {CHARACTERS_MAX} characters; write a shorter one")
    if "\0" in sql:
        raise SqlRefused("the statement holds a character that SQL does not have")
    if _nesting(sql) > _NESTING_MAX:
        raise SqlRefused("the statement is nested too deep; write it flatter")
    try:
        found = [each for each in sqlglot.parse(sql, read=dialect.value) if each is not None]
    except (SqlglotError, RecursionError, ValueError) as error:
        where = re.sub(r"\x1b\[\d+m", "", str(error)).partition("\n")[0]
        raise SqlRefused(f"the statement cannot be read as {_NAMES[dialect]}: {where[:200]}") from error
    if len(found) != 1:
        raise SqlRefused("write one SELECT, without a second statement behind a semicolon")
    return found[0]


_NAMES = {Dialect.SQLITE: "SQL of SQLite", Dialect.POSTGRES: "SQL of PostgreSQL"}


def _nesting(sql: str) -> int:
    """At most how deep brackets can be, those within texts included."""
    return max(_depths(sql), default=0)


def _depths(sql: str) -> Iterator[int]:
    depth = 0
    for character in sql:
        depth += _BRACKETS.get(character, 0)
        yield depth


def _check_part(node: exp.Expr, dialect: Dialect) -> None:
    kind = type(node)
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        if name not in NAMED_FUNCTIONS[dialect]:
            raise SqlRefused(f"the function {name[:60]} may not be used here; do without it")
    elif kind in FUNCTIONS:
        pass
    elif kind not in STRUCTURE:
        raise SqlRefused(f"{_said(node, dialect)} may not be used here; do without it")
    if isinstance(node, exp.DataType) and node.this not in TYPES:
        raise SqlRefused(f"a value may not be cast to {node.sql(dialect.value)[:60]}; use a plain type")
    if isinstance(node, exp.Cast) and not isinstance(node.args.get("to"), exp.DataType):
        raise SqlRefused("a value may be cast to plain types only")
    if isinstance(node, exp.Table):
        _check_table(node)


def _check_table(node: exp.Table) -> None:
    if not isinstance(node.this, exp.Identifier):
        raise SqlRefused("a function cannot be read like a table here; name a table")
    if node.args.get("catalog"):
        raise SqlRefused("name the table without its database")
    if extra := [name for name, value in node.args.items() if value and name not in _TABLE_PARTS]:
        raise SqlRefused(f"{extra[0]} of a table may not be used here; do without it")


def _said(node: exp.Expr, dialect: Dialect) -> str:
    try:
        return f"`{node.sql(dialect.value)[:60]}`"
    except SqlglotError:
        return f"`{node.key}`"
