"""SQLite files, read in sessions that cannot write: the file is opened read-only, an authorizer denies all but reading what may be
read, and a progress handler ends what takes too long. Each question gets a connection of its own, in a thread."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from services.tools.sql.allowed import SQLITE_FUNCTIONS
from services.tools.sql.models import (
    DatabaseColumn,
    DatabaseReader,
    DatabaseTable,
    DatabaseUnavailable,
    Dialect,
    Limits,
    Rows,
    SqlFailed,
    SqlTooCostly,
)
from services.tools.sql.rewriting import CTE

_T = TypeVar("_T")
_CATALOG_TIMEOUT_S = 5.0
_STEPS_BETWEEN_LOOKS = 10_000
_CELL_BYTES_MAX = 1_000_000
_PATTERN_BYTES_MAX = 500
_SAMPLED_ROWS = 1000
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: _CELL_BYTES_MAX,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: _PATTERN_BYTES_MAX,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
}


class SqliteDatabase:
    """A file."""

    dialect = Dialect.SQLITE

    def __init__(self, path: Path) -> None:
        self._path = path

    async def tables(self) -> Sequence[DatabaseTable]:
        return await self._in_thread(_catalog, _CATALOG_TIMEOUT_S)

    async def samples(
        self, table: DatabaseTable, columns: Sequence[str], values_max: int
    ) -> Mapping[str, Sequence[str]]:
        def read(connection: sqlite3.Connection) -> dict[str, list[str]]:
            return {name: _samples(connection, table.name, name, values_max) for name in columns}

        return await self._in_thread(read, _CATALOG_TIMEOUT_S)

    async def select(
        self,
        sql: str,
        readable: Collection[DatabaseTable],
        reader: DatabaseReader,  # noqa: ARG002 - a file has no users
        limits: Limits,
    ) -> Rows:
        def read(connection: sqlite3.Connection) -> Rows:
            connection.set_authorizer(_authorizer(readable, _physical(connection)))
            cursor = connection.execute(sql)
            columns = [each[0] for each in cursor.description or ()]
            rows = cursor.fetchmany(limits.rows + 1)
            return Rows(columns, rows[: limits.rows], is_cut=len(rows) > limits.rows)

        return await self._in_thread(read, limits.timeout_s)

    async def _in_thread(self, read: Callable[[sqlite3.Connection], _T], timeout_s: float) -> _T:
        """What `read` makes of a connection. A caller that hangs up ends it."""
        abandoned = threading.Event()
        try:
            return await asyncio.to_thread(self._read, read, timeout_s, abandoned)
        finally:
            abandoned.set()

    def _read(self, read: Callable[[sqlite3.Connection], _T], timeout_s: float, abandoned: threading.Event) -> _T:
        ends_at = time.monotonic() + timeout_s
        with _in_our_words(timeout_s), closing(_connect(self._path)) as connection:
            connection.set_progress_handler(
                lambda: abandoned.is_set() or time.monotonic() > ends_at, _STEPS_BETWEEN_LOOKS
            )
            return read(connection)


def _connect(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise DatabaseUnavailable("the file of the database is not there; tell the operator")
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


@contextmanager
def _in_our_words(timeout_s: float) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise SqlTooCostly(f"the database took longer than {timeout_s:g} s; ask for less") from error
        if error.sqlite_errorcode in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise DatabaseUnavailable("the database cannot be read; tell the operator") from error
        raise SqlFailed(f"the database says: {error}") from error
    except sqlite3.Error as error:
        raise SqlFailed(f"the database says: {error}") from error


def _physical(connection: sqlite3.Connection) -> set[str]:
    return {str(row[0]).lower() for row in connection.execute("SELECT name FROM sqlite_master")}


def _authorizer(readable: Collection[DatabaseTable], physical: Collection[str]) -> Callable[..., int]:
    """Allows to read the tables, underneath a view what it is made of, and common table expressions, which have names of ours."""
    names = {table.name.lower() for table in readable}
    views = {table.name.lower() for table in readable if table.is_view}

    def allows(action: int, first: str | None, second: str | None, _: str | None, inside: str | None) -> int:
        match action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
                return sqlite3.SQLITE_OK
            case sqlite3.SQLITE_READ:
                name = (first or "").lower()
                is_expression = name.startswith(CTE) and name not in physical
                is_allowed = is_expression or name in names or (inside or "").lower() in views
                return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY
            case sqlite3.SQLITE_FUNCTION:
                return sqlite3.SQLITE_OK if (second or "").lower() in SQLITE_FUNCTIONS else sqlite3.SQLITE_DENY
            case _:
                return sqlite3.SQLITE_DENY

    return allows


def _catalog(connection: sqlite3.Connection) -> list[DatabaseTable]:
    listed = connection.execute(
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "ORDER BY name"
    ).fetchall()
    return [_table(connection, name, is_view=kind == "view") for name, kind in listed]


def _table(connection: sqlite3.Connection, name: str, *, is_view: bool) -> DatabaseTable:
    keys = {row[3].lower(): f"{row[2]}.{row[4] or row[3]}" for row in _pragma(connection, "foreign_key_list", name)}
    columns = [
        DatabaseColumn(row[1], row[2] or "", is_key=row[5] > 0, refers_to=keys.get(row[1].lower(), ""))
        for row in _pragma(connection, "table_info", name)
    ]
    return DatabaseTable("", name, columns, is_view=is_view, row_count=None if is_view else _count(connection, name))


def _pragma(connection: sqlite3.Connection, pragma: str, table: str) -> list[Any]:
    return connection.execute(f"SELECT * FROM pragma_{pragma}(?)", (table,)).fetchall()  # noqa: S608 - a name of ours


def _count(connection: sqlite3.Connection, table: str) -> int | None:
    """The last row's number, which is found at once. None for a table without."""
    try:
        return int(connection.execute(f"SELECT max(rowid) FROM {_quoted(table)}").fetchone()[0] or 0)  # noqa: S608 - quoted
    except sqlite3.OperationalError:
        return None


def _samples(connection: sqlite3.Connection, table: str, column: str, values_max: int) -> list[str]:
    name = _quoted(column)
    sql = f"SELECT DISTINCT {name} FROM (SELECT {name} FROM {_quoted(table)} LIMIT ?) WHERE {name} IS NOT NULL LIMIT ?"  # noqa: S608 - quoted
    return [str(row[0]) for row in connection.execute(sql, (_SAMPLED_ROWS, values_max))]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
