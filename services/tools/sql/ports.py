"""What the SQL tools need of a database."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from services.tools.sql.models import DatabaseReader, DatabaseTable, Dialect, Limits, Rows


class Database(Protocol):
    """A database, asked in sessions that cannot write. Each method raises DatabaseUnavailable."""

    dialect: Dialect

    async def tables(self) -> Sequence[DatabaseTable]:
        """All tables and views of the listed schemas, by name, without samples."""
        ...

    async def samples(
        self, table: DatabaseTable, columns: Sequence[str], values_max: int
    ) -> Mapping[str, Sequence[str]]:
        """Some different values of the columns, from the first rows of the table."""
        ...

    async def select(
        self, sql: str, readable: Collection[DatabaseTable], reader: DatabaseReader, limits: Limits
    ) -> Rows:
        """Runs a checked statement over tables that may be read. Raises SqlFailed, SqlTooCostly."""
        ...
