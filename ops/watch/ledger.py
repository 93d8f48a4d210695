"""The ledger: what the message store is known to hold, in a database beside it.

Of each entry its sequence number and a digest; of small records that nothing else could bring back, the value too. A value leaves
the ledger with the entry: what is deleted is overwritten here (``secure_delete``). Blocking: for a thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    stream TEXT NOT NULL, subject TEXT NOT NULL, seq INTEGER NOT NULL, gone INTEGER NOT NULL, digest BLOB NOT NULL, value BLOB,
    PRIMARY KEY (stream, subject)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS streams (
    stream TEXT PRIMARY KEY, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, messages INTEGER NOT NULL,
    final INTEGER NOT NULL) WITHOUT ROWID;
"""
_SETUP = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA secure_delete=ON")


@dataclass(frozen=True)
class Entry:
    """The last message of a subject."""

    subject: str
    seq: int
    gone: bool
    """It says that the subject's entry was deleted."""
    digest: bytes
    """SHA-256 of its data."""
    value: bytes | None = None
    """Its data, where the ledger keeps it."""


@dataclass(frozen=True)
class StreamTotals:
    """What a stream says of itself."""

    first_seq: int
    last_seq: int
    messages: int
    final: bool = False
    """Taken when all writers had stopped: exact at the next start."""


class Ledger:
    """One database. Methods raise sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = sqlite3.connect(path, check_same_thread=False)
        path.chmod(0o600)
        for statement in (*_SETUP, *_SCHEMA.split(";")):
            self._database.execute(statement)

    @classmethod
    def open(cls, path: Path) -> tuple[Ledger, bool]:
        """The ledger, and whether it had to be begun anew because its file is damaged; that one is kept as ``.damaged``."""
        try:
            ledger = cls(path)
            if ledger._database.execute("PRAGMA quick_check").fetchone() == ("ok",):
                return ledger, False
            ledger.close()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise  # a full disk, a permission: not damage
        path.replace(path.with_name(path.name + ".damaged"))
        for leftover in ("-wal", "-shm"):
            path.with_name(path.name + leftover).unlink(missing_ok=True)
        return cls(path), True

    @classmethod
    def look(cls, path: Path) -> Ledger | None:
        """The ledger as it is, or None where there is none that can be read. Changes nothing of it."""
        with suppress(sqlite3.Error):
            ledger = cls(path) if path.is_file() else None
            if ledger and ledger._database.execute("PRAGMA quick_check").fetchone() == ("ok",):
                return ledger
        return None

    def totals(self) -> dict[str, StreamTotals]:
        """Of each stream as of the last record."""
        rows = self._database.execute("SELECT stream, first_seq, last_seq, messages, final FROM streams")
        return {
            stream: StreamTotals(first, last, messages, bool(final)) for stream, first, last, messages, final in rows
        }

    def entries(self, stream: str) -> dict[str, Entry]:
        """Of a stream by subject, without values."""
        rows = self._database.execute("SELECT subject, seq, gone, digest FROM entries WHERE stream = ?", (stream,))
        return {subject: Entry(subject, seq, bool(gone), digest) for subject, seq, gone, digest in rows}

    def values(self, stream: str, subjects: Iterable[str]) -> dict[str, bytes]:
        """The data of those whose data is kept."""
        found = {}
        for subject in subjects:
            row = self._database.execute(
                "SELECT value FROM entries WHERE stream = ? AND subject = ? AND gone = 0", (stream, subject)
            ).fetchone()
            if row and row[0] is not None:
                found[subject] = bytes(row[0])
        return found

    def record(
        self, stream: str, entries: Sequence[Entry], totals: StreamTotals, forgotten: Sequence[str] = ()
    ) -> None:
        """Notes what was written since, and what is gone, in one transaction."""
        with self._database as database:
            database.executemany(
                "DELETE FROM entries WHERE stream = ? AND subject = ?", ((stream, each) for each in forgotten)
            )
            database.executemany(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?)",
                ((stream, each.subject, each.seq, each.gone, each.digest, each.value) for each in entries),
            )
            database.execute(
                "INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?, ?)",
                (stream, totals.first_seq, totals.last_seq, totals.messages, totals.final),
            )
        if forgotten or any(each.gone for each in entries):
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # what was deleted goes from the log, too

    def close(self) -> None:
        """Closes the file; what is in the write-ahead log goes into it."""
        with suppress(sqlite3.Error):
            self._database.close()
