"""What is known of a database, and what it answered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from services.tools.errors import ServiceUnavailable, ToolError


class Dialect(StrEnum):
    """Of SQL. The values are sqlglot's names."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"


class SqlRefused(ToolError):
    """The statement may not be run. The message says what to write instead."""

    reason = "SQL_REFUSED"


class SqlFailed(ToolError):
    """The database refused the statement; nothing was changed."""

    reason = "SQL_FAILED"


class SqlTooCostly(ToolError):
    """The statement would read too much, or took too long."""

    reason = "SQL_TOO_COSTLY"


class DatabaseUnavailable(ServiceUnavailable):
    """The database does not answer, or may not be used as it is set up."""

    reason = "DATABASE_UNAVAILABLE"


@dataclass(frozen=True)
class DatabaseColumn:
    """A column of a table."""

    name: str
    type: str = ""
    """As the database calls it."""
    comment: str = ""
    is_key: bool = False
    """Whether it belongs to the primary key."""
    refers_to: str = ""
    """`table.column` of a foreign key."""
    is_masked: bool = False
    samples: Sequence[str] = ()
    """A few of its values, where they help to write a condition."""


@dataclass(frozen=True)
class DatabaseTable:
    """A table or view that may be read."""

    schema: str
    """Empty in SQLite."""
    name: str
    columns: Sequence[DatabaseColumn]
    comment: str = ""
    is_view: bool = False
    row_count: int | None = None
    """About how many rows it has, where that is known."""

    def column(self, name: str) -> DatabaseColumn | None:
        return next((column for column in self.columns if column.name.casefold() == name.casefold()), None)


@dataclass(frozen=True)
class Statement:
    """A checked SELECT."""

    shown: str
    """As it was asked for, without comments: what a person is shown."""
    run: str
    """What the database is given: with masks and row limits."""
    limited: Sequence[str] = ()
    """Tables that show the caller's rows only."""
    masked: Sequence[str] = ()
    """Columns, `table.column`, whose values are hidden."""


@dataclass(frozen=True)
class Limits:
    """What a statement may take."""

    rows: int
    timeout_s: float
    cost: float
    """As the planner of PostgreSQL estimates it."""


@dataclass(frozen=True)
class DatabaseReader:
    """In whose name a database is asked."""

    tenant_id: str
    subject: str


@dataclass(frozen=True)
class Rows:
    """What a statement answered."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]] = field(default=())
    """Plain Python values, one a column."""
    is_cut: bool = False
    """Whether there are more rows."""
