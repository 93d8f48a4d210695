"""PostgreSQL, asked in sessions that cannot write: the role is checked to be one that may not, the session and each transaction
are read-only, and time is bounded by the server. Each question gets a session of its own; the protocol takes one statement."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import structlog

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

_log = structlog.get_logger()
_CONNECT_TIMEOUT_S = 4.0
_CATALOG_TIMEOUT_S = 8.0
_GRACE_S = 1.0
"""Between the server's limit of a statement and ours."""
_ROW_BYTES_MAX = 1_000_000
_SAMPLED_ROWS = 1000
_NOBODY = DatabaseReader("", "")
_WRITES = """
SELECT r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls
    OR EXISTS (SELECT FROM pg_catalog.pg_roles AS p WHERE p.rolname IN ('pg_read_server_files', 'pg_write_server_files',
        'pg_execute_server_program', 'pg_write_all_data', 'pg_signal_backend', 'pg_checkpoint', 'pg_maintain')
        AND pg_catalog.pg_has_role(r.oid, p.oid, 'MEMBER'))
    OR pg_catalog.has_database_privilege(r.oid, pg_catalog.current_database(), 'CREATE')
    OR EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
        AND pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE'))
    OR EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
        AND (pg_catalog.has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
            OR pg_catalog.has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE, REFERENCES')))
FROM pg_catalog.pg_roles AS r WHERE r.rolname = session_user
"""
"""Whether the role may write anything, or is more than a reader."""
_COLUMNS = """
SELECT n.nspname, c.relname, c.relkind, c.reltuples, pg_catalog.obj_description(c.oid, 'pg_class'),
    a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), pg_catalog.col_description(c.oid, a.attnum),
    EXISTS (SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey)),
    (SELECT f.relname || '.' || fa.attname FROM pg_catalog.pg_constraint AS k
        JOIN pg_catalog.pg_class AS f ON f.oid = k.confrelid
        JOIN pg_catalog.pg_attribute AS fa ON fa.attrelid = k.confrelid
            AND fa.attnum = k.confkey[pg_catalog.array_position(k.conkey, a.attnum)]
        WHERE k.conrelid = c.oid AND k.contype = 'f' AND a.attnum = ANY (k.conkey) LIMIT 1)
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits AS h WHERE h.inhrelid = c.oid)
    AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')
ORDER BY n.nspname, c.relname, a.attnum
"""
"""What may be read. Parts of a partitioned table are not tables of their own: its conditions would not hold for them."""


class PostgresDatabase:
    """A database of a server."""

    dialect = Dialect.POSTGRES

    def __init__(self, url: str, password: str, schemas: Sequence[str]) -> None:
        """`url` has no password."""
        self._url = urlunsplit(urlsplit(url)._replace(scheme="postgresql"))
        self._password = password
        self._schemas = list(schemas)
        self._is_reader = False

    async def tables(self) -> Sequence[DatabaseTable]:
        async with self._session(_NOBODY, _CATALOG_TIMEOUT_S) as connection:
            return _tables(await connection.fetch(_COLUMNS, self._schemas))

    async def samples(
        self, table: DatabaseTable, columns: Sequence[str], values_max: int
    ) -> Mapping[str, Sequence[str]]:
        listed = ", ".join(f"{_quoted(name)}::text" for name in columns)
        place = f"{_quoted(table.schema)}.{_quoted(table.name)}"
        try:
            async with self._session(_NOBODY, _CATALOG_TIMEOUT_S) as connection:
                rows = await connection.fetch(f"SELECT {listed} FROM {place} LIMIT {_SAMPLED_ROWS}")  # noqa: S608 - quoted
        except (SqlFailed, SqlTooCostly):
            return {}
        return {
            name: list(dict.fromkeys(row[index] for row in rows if row[index]))[:values_max]
            for index, name in enumerate(columns)
        }

    async def select(
        self,
        sql: str,
        readable: Collection[DatabaseTable],  # noqa: ARG002 - the role says what may be read
        reader: DatabaseReader,
        limits: Limits,
    ) -> Rows:
        async with self._session(reader, limits.timeout_s) as connection:
            await _check_cost(connection, sql, limits.cost)
            # A row that is too large ends the statement in the server: here it would have to be held whole.
            size = "pg_catalog.octet_length(q::text)"
            condition = f"CASE WHEN {size} <= {_ROW_BYTES_MAX} THEN true ELSE 1 / ({size} * 0) = 1 END"
            bounded = f"SELECT q.* FROM ({sql}\n) AS q WHERE {condition}"  # noqa: S608 - checked
            prepared = await connection.prepare(bounded)
            columns = [attribute.name for attribute in prepared.get_attributes()]
            cursor = await prepared.cursor()
            rows = await cursor.fetch(limits.rows + 1)
        return Rows(
            columns, [[_plain(value) for value in row] for row in rows[: limits.rows]], is_cut=len(rows) > limits.rows
        )

    @asynccontextmanager
    async def _session(self, reader: DatabaseReader, timeout_s: float) -> AsyncIterator[Any]:
        """A read-only transaction in a session of its own. Whatever fails is said without the address."""
        connection = await self._connected(reader, timeout_s)
        try:
            async with asyncio.timeout(timeout_s + _GRACE_S), connection.transaction(readonly=True):
                if not self._is_reader:
                    await self._check_role(connection)
                yield connection
        except (TimeoutError, asyncpg.QueryCanceledError) as error:
            raise SqlTooCostly(f"the database took longer than {timeout_s:g} s; ask for less") from error
        except asyncpg.DivisionByZeroError as error:
            raise SqlFailed(
                "the database says: division by zero; or a row is larger than 1 MB: then ask for less of it"
            ) from error
        except asyncpg.PostgresError as error:
            raise SqlFailed(f"the database says: {_said(error)}") from error
        except (asyncpg.InterfaceError, OSError) as error:
            raise DatabaseUnavailable("the database broke the connection off; try again in a minute") from error
        finally:
            with suppress(Exception):
                await connection.close(timeout=1.0)

    async def _connected(self, reader: DatabaseReader, timeout_s: float) -> Any:
        millis = str(int(timeout_s * 1000))
        try:
            return await asyncpg.connect(
                self._url,
                password=self._password or None,
                timeout=_CONNECT_TIMEOUT_S,
                statement_cache_size=0,
                server_settings={
                    "application_name": "groundwork",
                    "default_transaction_read_only": "on",
                    "statement_timeout": millis,
                    "lock_timeout": millis,
                    "idle_in_transaction_session_timeout": str(int((timeout_s + _GRACE_S) * 1000)),
                    "search_path": "",
                    "standard_conforming_strings": "on",
                    "groundwork.subject": reader.subject,
                    "groundwork.tenant": reader.tenant_id,
                },
            )
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, ValueError) as error:
            _log.warning("database_unreachable", error=type(error).__name__)
            raise DatabaseUnavailable(
                "the database cannot be reached or does not let us in; try again in a minute, or tell the operator"
            ) from error

    async def _check_role(self, connection: Any) -> None:
        """Read-only settings can be changed by who may write: the role must not be able to."""
        if await connection.fetchval(_WRITES):
            raise DatabaseUnavailable(
                "the database is not asked, since its user may write: the operator gives it a user that can only read"
            )
        self._is_reader = True


async def _check_cost(connection: Any, sql: str, cost_max: float) -> None:
    plan = json.loads(await connection.fetchval(f"EXPLAIN (FORMAT JSON) {sql}"))
    cost = float(plan[0]["Plan"]["Total Cost"])
    if cost > cost_max:
        raise SqlTooCostly(
            f"the statement would read too much (cost {cost:.0f}, at most {cost_max:.0f}): add conditions, or join on keys"
        )


def _said(error: asyncpg.PostgresError) -> str:
    hint = getattr(error, "hint", "") or ""
    return f"{error.args[0] if error.args else type(error).__name__}{f' ({hint})' if hint else ''}"


@dataclass
class _Found:
    columns: list[DatabaseColumn]
    comment: str
    is_view: bool
    row_count: int | None


def _tables(rows: Sequence[Any]) -> list[DatabaseTable]:
    found: dict[tuple[str, str], _Found] = {}
    for schema, table, kind, row_count, comment, *column in rows:
        known = found.setdefault(
            (schema, table),
            _Found([], comment or "", _text(kind) in ("v", "m"), int(row_count) if row_count >= 0 else None),
        )
        name, type_name, said, is_key, refers_to = column
        known.columns.append(DatabaseColumn(name, type_name, said or "", is_key=is_key, refers_to=refers_to or ""))
    return [
        DatabaseTable(schema, name, each.columns, each.comment, is_view=each.is_view, row_count=each.row_count)
        for (schema, name), each in found.items()
    ]


def _plain(value: Any) -> Any:
    """A whole row as a value is a tuple."""
    return tuple(value) if isinstance(value, asyncpg.Record) else value


def _text(kind: Any) -> str:
    return kind.decode() if isinstance(kind, bytes) else str(kind)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
