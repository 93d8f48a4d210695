"""Asks a database: one SELECT that a model has written, or a query of the operator's. The session of the database cannot write."""

from collections.abc import Mapping
from typing import Any

from services.tools.adapters.sql.passages import answer_passage
from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.models import Policy, ToolOutput
from services.tools.passages.rendering import described
from services.tools.settings import ToolsSettings
from services.tools.sql import named
from services.tools.sql.databases import AskedDatabase
from services.tools.sql.models import DatabaseReader, Rows, Statement
from services.tools.sql.rendering import counted, rendered
from services.tools.sql.statements import CHARACTERS_MAX
from services.tools.sql.words import DATABASE, DATABASE_WORDS, NEEDS_DATABASE

SCHEMA = {
    "type": "function",
    "function": {
        "name": "query_db",
        "description": (
            "Asks a database with one SELECT and returns its rows. Call describe_db first: it shows the tables, columns and "
            "dialect. Compute in SQL (count, sum, group by) instead of reading many rows. When it answers with an error, mend the "
            "statement and call again."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "question": {
                    "type": "string",
                    "description": "What is to be found out, in the user's words.",
                    "minLength": 1,
                    "maxLength": 1000,
                },
                "sql": {
                    "type": "string",
                    "description": "One SELECT, without a semicolon. Few rows are shown, so aggregate, sort and limit.",
                    "minLength": 1,
                    "maxLength": CHARACTERS_MAX,
                },
                "database": DATABASE,
                "query": {
                    "type": "string",
                    "description": "Instead of sql: the name of a query that describe_db lists.",
                    "minLength": 1,
                    "maxLength": 40,
                },
                "parameters": {
                    "type": "object",
                    "description": "The parameters of that query.",
                    "additionalProperties": {"type": ["string", "number"], "maxLength": 500},
                    "maxProperties": 20,
                },
            },
            "required": ["question"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=25.0,
    key_arguments=("database", "sql", "query", "parameters"),
    worth=4,
    called_for_by=DATABASE_WORDS,
)
NEEDS = NEEDS_DATABASE


def is_available(settings: ToolsSettings) -> bool:
    """Whether there is a database."""
    return bool(settings.tools_databases)


async def query_db(
    question: str,
    context: ToolContext,
    sql: str = "",
    database: str = "",
    query: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> ToolOutput:
    """The rows as a passage that can be cited, with the statement that was run. No rows are an answer too."""
    reader = DatabaseReader(context.caller.tenant_id, context.caller.subject)
    asked = context.services.databases.get(database, reader.tenant_id)
    if sql:
        return _output(asked, *await asked.answer(sql, reader))
    if not query:
        query, parameters = _named(asked, question)
    return _output(asked, *await asked.answer_named(query, parameters or {}, reader))


def _named(asked: AskedDatabase, question: str) -> tuple[str, Mapping[str, Any]]:
    """The query of the operator's that a question asks for where nobody has written SQL."""
    queries = asked.settings.queries
    if (found := named.asked_for(question, queries)) is not None:
        return found
    there = "; ".join(f"{name}: {query.description}" for name, query in queries.items())
    ready = f"or name one of these in query: {there}" if there else "there are no queries that are ready to run"
    raise ToolError(
        "the question needs a SELECT that a language model writes: call again with it in sql (describe_db shows the tables), "
        f"{ready}",
        reason="SQL_MISSING",
    )


def _output(asked: AskedDatabase, statement: Statement, rows: Rows) -> ToolOutput:
    passage = answer_passage(asked.name, rendered(asked.name, statement, rows))
    content: dict[str, Any] = {"database": asked.name, "row_count": len(rows.rows), "rows": described(passage)}
    if not rows.rows:
        content["note"] = (
            "No rows. Say so; if the conditions may be wrong, look at the values with describe_db and ask again."
        )
    elif rows.is_cut:
        content["note"] = f"There are more rows than the {len(rows.rows)} shown: aggregate, or sort and limit."
    said = f"{counted(rows)} from the database {asked.name}" if rows.rows else f"no rows in the database {asked.name}"
    line = " ".join(statement.shown.split())
    return ToolOutput(content, f"{said[0].upper()}{said[1:]}: {line}", (passage,))
