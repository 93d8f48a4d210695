"""How an operator describes a database."""

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from services.tools.sql.models import Dialect

DEMO = "demo"
"""In the place of an address: the database of customers, orders, products and reviews that comes along."""
_NAME = r"^[a-z][a-z0-9_]{0,39}$"
DatabaseName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
_ShortName = Annotated[str, StringConstraints(pattern=_NAME)]
ParameterType = Literal["text", "integer", "number", "date"]


class NamedQuery(BaseModel):
    """A query of the operator's, with parameters: it is run by its name, or when a question asks for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str = Field(min_length=1, max_length=500)
    sql: str = Field(min_length=1, max_length=8000)
    """A SELECT with parameters as `:name`."""
    parameters: dict[_ShortName, ParameterType] = Field(default_factory=dict)
    asked_by: tuple[str, ...] = ()
    """Regular expressions, letter case ignored. A question in which one is found is answered by the query; its named groups are the
    parameters."""

    @field_validator("asked_by")
    @classmethod
    def _are_expressions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r:.80} is no regular expression: {error}") from error
        return value


class DatabaseSettings(BaseModel):
    """A database that agents may ask."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    """`postgresql://user@host:5432/name`, `sqlite:/path/of/a/file`, or `demo`."""
    description: str = Field(default="", max_length=1000)
    """What it holds, for the model."""
    schemas: tuple[str, ...] = Field(default=("public",), min_length=1)
    """Of PostgreSQL: those that may be read. Conditions find tables in the first."""
    tables: tuple[str, ...] = ()
    """Tables and views that may be read, with the wildcards `*` and `?`. Empty: all."""
    masked: tuple[str, ...] = ()
    """Columns whose values nobody sees: `customers.email`."""
    rows: dict[str, str] = Field(default_factory=dict)
    """Conditions by table that rows must meet to be seen, in SQL: {"orders": "manager = :subject"}. `:subject` and `:tenant`
    are those of the caller."""
    comments: dict[str, str] = Field(default_factory=dict)
    """What tables and columns mean, where the database does not say: {"orders.total": "in euros, with tax"}."""
    queries: dict[_ShortName, NamedQuery] = Field(default_factory=dict)
    tenants: tuple[str, ...] = ()
    """Tenants that may ask it. Empty: all."""
    rows_max: int = Field(default=100, ge=1, le=1000)
    """Rows that one answer shows."""
    timeout_s: float = Field(default=5.0, gt=0, le=20)
    cost_max: float = Field(default=1_000_000.0, gt=0)
    """Of a statement in PostgreSQL, as its planner estimates it: a sequential scan of 100 MB costs about 13 000."""

    @property
    def dialect(self) -> Dialect:
        return Dialect.POSTGRES if self.url.startswith("postgres") else Dialect.SQLITE

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.url != DEMO:
            _check_url(self.url)
        for column in self.masked:
            if column.count(".") != 1:
                raise ValueError(f"masked: write {column!r:.80} as table.column")
        return self


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        password, host = parts.password, parts.hostname
    except ValueError as error:
        raise ValueError("url: it cannot be read; write it as postgresql://user@host:5432/name") from error
    if parts.scheme not in {"sqlite", "postgresql", "postgres"}:
        raise ValueError("url: write postgresql://user@host:5432/name, sqlite:/path/of/a/file, or demo")
    if parts.scheme == "sqlite":
        if not parts.path.startswith("/"):
            raise ValueError("url: write the path of the file in full: sqlite:/path/of/a/file")
        return
    if password or "password" in parts.query:
        raise ValueError(
            "url: leave the password out; GROUNDWORK_TOOLS_DATABASE_PASSWORDS has it, by the database's name"
        )
    if not host or not parts.username:
        raise ValueError("url: name the user and the host: postgresql://user@host:5432/name")
