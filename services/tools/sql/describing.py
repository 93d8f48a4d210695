"""Tables as a model reads them: those that fit a question in full, as many as it has room for, and the names of the others."""

from collections.abc import Sequence
from dataclasses import dataclass

from kit.llm import estimate_tokens
from services.tools.sql.models import DatabaseColumn, DatabaseTable
from services.tools.sql.schemas import table_id

_NAMES_TOKENS = 600


@dataclass(frozen=True)
class Described:
    """The description of the tables."""

    text: str
    shown: Sequence[str]
    others: Sequence[str]
    """Tables that are there too, by name."""
    unnamed: int
    """How many there are beside those."""


def describe(tables: Sequence[DatabaseTable], budget_tokens: int) -> Described:
    """The tables in their order, the best first, within the budget. The first is always there."""
    parts: list[str] = []
    shown: list[str] = []
    for table in tables:
        part = _table(table)
        cost = estimate_tokens(part)
        if parts and cost > budget_tokens:
            continue
        budget_tokens -= cost
        parts.append(part)
        shown.append(table_id(table))
    others = [table_id(table) for table in tables if table_id(table) not in shown]
    named = others
    while named and estimate_tokens(", ".join(named)) > _NAMES_TOKENS:
        named = named[: len(named) * 3 // 4]
    return Described("\n\n".join(parts), shown, named, len(others) - len(named))


def with_neighbours(best: Sequence[DatabaseTable], tables: Sequence[DatabaseTable]) -> list[DatabaseTable]:
    """The best, then the tables that these refer to or that refer to these, then the others."""
    names = {table.name.casefold() for table in best}
    referred = {name for table in best for name in _refers_to(table)}
    near = [table for table in tables if table.name.casefold() in referred or names & _refers_to(table)]
    return list({table_id(table): table for table in (*best, *near, *tables)}.values())


def _refers_to(table: DatabaseTable) -> set[str]:
    return {column.refers_to.rpartition(".")[0].casefold() for column in table.columns if column.refers_to}


def _table(table: DatabaseTable) -> str:
    rows = f", about {table.row_count} rows" if table.row_count is not None else ""
    comment = f": {table.comment}" if table.comment else ""
    head = f"{'view' if table.is_view else 'table'} {table_id(table)}{rows}{comment}"
    return "\n".join([head, *(f"  {_column(column)}" for column in table.columns)])


def _column(column: DatabaseColumn) -> str:
    parts = [
        f"{column.name} {column.type}".strip(),
        "key" if column.is_key else "",
        f"→ {column.refers_to}" if column.refers_to else "",
        "hidden" if column.is_masked else "",
        f"e.g. {', '.join(map(repr, column.samples))}" if column.samples else "",
        column.comment,
    ]
    return "; ".join(part for part in parts if part)
