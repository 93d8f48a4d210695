"""A database with settings of the test's choice, asked as the tools ask it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

from kit.access.principal import Principal
from services.tools.adapters.sql.opening import open_databases
from services.tools.context import Services, ToolContext
from services.tools.models import ToolOutput
from services.tools.settings import ToolsSettings
from services.tools.toolbox.data.describe_db import describe_db
from services.tools.toolbox.data.query_db import query_db
from tests.unit.tools.search_fakes import FakeModels

NOW = datetime(2026, 11, 27, 9, 0, tzinfo=UTC)


class Asking:
    """Both tools in the name of somebody."""

    def __init__(self, context: ToolContext) -> None:
        self.context = context

    def as_(self, subject: str, tenant_id: str = "acme") -> "Asking":
        return Asking(replace(self.context, caller=Principal(tenant_id, subject)))

    async def query(self, sql: str = "", **arguments: Any) -> ToolOutput:
        return await query_db(arguments.pop("question", "?"), self.context, sql, **arguments)

    async def text(self, sql: str, **arguments: Any) -> str:
        """What may be cited of the answer."""
        return (await self.query(sql, **arguments)).passages[0].text

    async def rows(self, sql: str, **arguments: Any) -> list[list[str]]:
        """The cells of the rows, as text."""
        return rows_of(await self.text(sql, **arguments))

    async def describe(self, **arguments: Any) -> ToolOutput:
        return await describe_db(self.context, **arguments)


def rows_of(text: str) -> list[list[str]]:
    """The cells: of a table, or of a single row as `name: cell; name: cell.`"""
    if "\n(1 row)" in text:
        line = text.partition("\n(1 row)")[0].rpartition("\n")[2].removesuffix(".")
        return [[cell.partition(": ")[2] for cell in line.split("; ")]]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines[2:]]


@asynccontextmanager
async def asking(
    databases: Mapping[str, Mapping[str, Any]], passwords: Mapping[str, str] | None = None
) -> AsyncIterator[Asking]:
    settings = ToolsSettings(tools_databases=databases, tools_database_passwords=passwords or {})
    async with AsyncExitStack() as stack:
        opened = await asyncio.to_thread(open_databases, settings, stack)
        services = Services(Mock(), FakeModels(), Mock(), databases=opened)

        async def unheard(_: str) -> None:
            pass

        caller = Principal("acme", "ann")
        yield Asking(ToolContext("call", (), settings, services, lambda: NOW, caller, unheard))
