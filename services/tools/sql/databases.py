"""The databases of an installation: who may ask which, what is known of each, and a question to one of them."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.tools.errors import ToolError
from services.tools.ports import ModelServer
from services.tools.projects.records import Records
from services.tools.projects.searching import RecordSearch
from services.tools.sql import named
from services.tools.sql.configuration import DatabaseSettings
from services.tools.sql.describing import with_neighbours
from services.tools.sql.models import DatabaseReader, DatabaseTable, Dialect, Limits, Rows, Statement
from services.tools.sql.ports import Database
from services.tools.sql.rewriting import Views
from services.tools.sql.schemas import read_schema, record_of, table_id
from services.tools.sql.statements import parse_condition, parse_select

SCHEMA_KEPT_S = 300.0
_LINKED_MAX = 8


class UnknownDatabase(ToolError):
    """There is no database of that name for the caller."""

    reason = "DATABASE_UNKNOWN"


@dataclass(frozen=True)
class _Schema:
    tables: Sequence[DatabaseTable]
    search: RecordSearch
    read_at: float


class AskedDatabase:
    """One database as its operator lets it be asked."""

    def __init__(
        self, name: str, settings: DatabaseSettings, database: Database, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self.settings = settings
        self._database = database
        self._clock = clock
        self._schema: _Schema | None = None
        self._reading = asyncio.Lock()
        self._conditions = {table: parse_condition(sql, settings.dialect) for table, sql in settings.rows.items()}

    async def answer(self, sql: str, reader: DatabaseReader) -> tuple[Statement, Rows]:
        """Runs a statement of a model's. Raises ToolError."""
        return await self._answer(lambda views: views.statement(parse_select(sql, self.settings.dialect)), reader)

    async def answer_named(
        self, query: str, parameters: Mapping[str, Any], reader: DatabaseReader
    ) -> tuple[Statement, Rows]:
        """Runs a query of the operator's. Raises ToolError."""
        known = self.settings.queries.get(query)
        if known is None:
            there = ", ".join(self.settings.queries) or "none"
            raise ToolError(f"there is no query {query!r:.60}; there are: {there}", reason="QUERY_UNKNOWN")
        select = named.filled(query, known, parameters, self.settings.dialect)
        return await self._answer(lambda views: views.statement(select), reader)

    async def tables(self) -> Sequence[DatabaseTable]:
        """All that may be read."""
        return (await self._known()).tables

    async def ranked(self, question: str, models: ModelServer) -> tuple[Sequence[DatabaseTable], Sequence[str]]:
        """The tables, those first that a question needs most, and what the ranking had to do without."""
        schema = await self._known()
        found = await schema.search.search(question, _LINKED_MAX, models)
        by_id = {table_id(table): table for table in schema.tables}
        best = [by_id[hit.record.id] for hit in found.hits if hit.record.id in by_id]
        return with_neighbours(best, schema.tables), found.degraded

    async def _answer(self, checked: Callable[[Views], Statement], reader: DatabaseReader) -> tuple[Statement, Rows]:
        tables = (await self._known()).tables
        values = {"subject": reader.subject, "tenant": reader.tenant_id}
        schema = self.settings.schemas[0] if self.settings.dialect is Dialect.POSTGRES else ""
        views = Views(tables, self._conditions, values, self.settings.dialect, schema)
        statement = await asyncio.to_thread(checked, views)
        limits = Limits(self.settings.rows_max, self.settings.timeout_s, self.settings.cost_max)
        return statement, await self._database.select(statement.run, tables, reader, limits)

    async def _known(self) -> _Schema:
        async with self._reading:
            if self._schema is None or self._clock() - self._schema.read_at > SCHEMA_KEPT_S:
                tables = await read_schema(self._database, self.settings)
                search = RecordSearch(Records([record_of(table) for table in tables]), similarity_min=None)
                self._schema = _Schema(tables, search, self._clock())
            return self._schema


class Databases:
    """All of them."""

    def __init__(self, databases: Sequence[AskedDatabase] = ()) -> None:
        self._databases = {database.name: database for database in databases}

    def of(self, tenant_id: str) -> Mapping[str, AskedDatabase]:
        """Those that a tenant may ask."""
        return {
            name: each
            for name, each in self._databases.items()
            if not each.settings.tenants or tenant_id in each.settings.tenants
        }

    def get(self, name: str, tenant_id: str) -> AskedDatabase:
        """The database of that name; the only one without a name. Raises UnknownDatabase."""
        mine = self.of(tenant_id)
        if not name and len(mine) == 1:
            return next(iter(mine.values()))
        if (found := mine.get(name)) is not None:
            return found
        there = ", ".join(mine) or "none that you may ask"
        asked = f"there is no database {name!r:.60}" if name else "say which database"
        raise UnknownDatabase(f"{asked}; there are: {there}")
