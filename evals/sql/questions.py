"""Questions over Chinook and Northwind, each with a statement that answers it rightly."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from evals.errors import EvaluationError

DATABASES = ("chinook", "northwind")


@dataclass(frozen=True)
class DatabaseQuestion:
    """A question, and the rows that answer it."""

    database: str
    text: str
    sql: str
    rows: Sequence[Sequence[str]]
    """Cells as text, in the order of the statement."""

    @property
    def mistaken(self) -> str:
        """A statement that fails, of another kind for each question."""
        kinds = (
            self.sql.replace(" FROM ", " FORM ", 1),
            self.sql.replace("SELECT ", "SELECT nonsense_, ", 1),
            "DELETE FROM x",
        )
        return kinds[len(self.text) % len(kinds)]


def load_questions(folder: Path) -> list[DatabaseQuestion]:
    """Raises EvaluationError without the databases."""
    return [each for name in DATABASES for each in _of(name, folder / f"{name}.sqlite")]


def _of(name: str, path: Path) -> list[DatabaseQuestion]:
    if not path.is_file():
        raise EvaluationError(
            f"{path} is not there: name the folder of chinook.sqlite and northwind.sqlite with --data"
        )
    lines = Path(__file__).with_name(f"{name}.sql").read_text("utf-8").splitlines()
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        return [
            DatabaseQuestion(
                name,
                text.removeprefix("-- "),
                sql,
                [[_text(cell) for cell in row] for row in connection.execute(sql)],
            )
            for text, sql in zip(lines[::2], lines[1::2], strict=True)
        ]


def _text(cell: object) -> str:
    return "NULL" if cell is None else " ".join(str(cell).split())
