"""Shows what a database holds: the tables that a question needs, with columns, keys, comments and a few values."""

from typing import Any

from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.settings import ToolsSettings
from services.tools.sql.databases import AskedDatabase
from services.tools.sql.describing import describe
from services.tools.sql.models import DatabaseTable, Dialect
from services.tools.sql.schemas import table_id
from services.tools.sql.words import DATABASE, DATABASE_WORDS, NEEDS_DATABASE

SCHEMA = {
    "type": "function",
    "function": {
        "name": "describe_db",
        "description": (
            "Shows the tables of a database that a question needs, with columns, types, keys, comments and example values, the SQL "
            "dialect, and the queries that are ready to run. Call it before query_db."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "question": {
                    "type": "string",
                    "description": "What is to be found out: tables that fit come first.",
                    "minLength": 1,
                    "maxLength": 1000,
                },
                "tables": {
                    "type": "array",
                    "description": "Instead: names of tables to show in full.",
                    "items": {"type": "string", "minLength": 1, "maxLength": 130},
                    "maxItems": 20,
                },
                "database": DATABASE,
            },
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(timeout_s=15.0, worth=4, called_for_by=DATABASE_WORDS)
NEEDS = NEEDS_DATABASE
_DIALECTS = {Dialect.SQLITE: "SQLite", Dialect.POSTGRES: "PostgreSQL"}


def is_available(settings: ToolsSettings) -> bool:
    """Whether there is a database."""
    return bool(settings.tools_databases)


async def describe_db(
    context: ToolContext, question: str = "", tables: list[str] | None = None, database: str = ""
) -> ToolOutput:
    """The tables as text, best first; those for which there is no room are named."""
    databases = context.services.databases
    tenant_id = context.caller.tenant_id
    if not database and len(databases.of(tenant_id)) > 1:
        listed = {name: each.settings.description for name, each in databases.of(tenant_id).items()}
        return ToolOutput({"databases": listed}, f"{len(listed)} databases: {', '.join(listed)}.")
    asked = databases.get(database, tenant_id)
    chosen, degraded = await _chosen(context, asked, question, tables or [])
    found = describe(chosen, context.settings.tools_text_tokens)
    content: dict[str, Any] = {
        "database": asked.name,
        "dialect": _DIALECTS[asked.settings.dialect],
        "description": asked.settings.description,
        "tables": found.text,
        "other_tables": list(found.others),
        "queries": {name: _query(asked, name) for name in asked.settings.queries},
    }
    if found.unnamed:
        content["note"] = f"There are {found.unnamed} more tables: ask with a question to find those that fit."
    if degraded:
        content["degraded"] = degraded
    number = len(found.shown)
    said = f"{number} of {number + len(found.others) + found.unnamed} tables of the database {asked.name}."
    return ToolOutput({key: value for key, value in content.items() if value}, " ".join((said, *degraded)))


async def _chosen(
    context: ToolContext, asked: AskedDatabase, question: str, names: list[str]
) -> tuple[list[DatabaseTable], list[str]]:
    every = await asked.tables()
    if names:
        wanted = {name.casefold() for name in names}
        first = [each for each in every if {each.name.casefold(), table_id(each).casefold()} & wanted]
        return first or list(every), [] if first else ["None of these tables is there."]
    everything = describe(every, context.settings.tools_text_tokens)
    if not question or not everything.others:
        return list(every), []
    ranked, degraded = await asked.ranked(question, context.services.models)
    return list(ranked), list(degraded)


def _query(asked: AskedDatabase, name: str) -> dict[str, Any]:
    query = asked.settings.queries[name]
    return {"description": query.description, "parameters": dict(query.parameters)}
