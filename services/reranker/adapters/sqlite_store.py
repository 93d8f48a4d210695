"""Token vectors in an SQLite file.

SQLite rather than a memory-mapped store: a file that a power cut has torn raises an error here, where a mapped one ends the
process that embeds. In WAL mode with synchronous=NORMAL a killed process costs nothing and a power cut at most the last entries.
A text of 200 tokens takes 21 KB and 0.05 ms of CPU to write; 30 of them take 0.4 ms of CPU to read.

The day of an entry's last use stands in a table of its own: in the entry's row, changing it would rewrite 21 KB.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np
import structlog

from services.reranker import metrics
from services.reranker.errors import PassageStoreUnavailable
from services.reranker.models import TextVectors, VectorSpace

FILE_NAME = "passages.sqlite"

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS passages (age INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, vectors BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS uses (key BLOB PRIMARY KEY, day INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS uses_by_day ON uses (day)",
    "CREATE TRIGGER IF NOT EXISTS passage_gone AFTER DELETE ON passages BEGIN DELETE FROM uses WHERE key = OLD.key; END",
)
_SCHEMA_VERSION = 2
"""Version 1 may hold what Rerank read under the keys of embeddings."""
_DAY_S = 86_400
_COLLECTED_AT_ONCE = 256
_LAST_KEY = b"\xff" * 64
"""After every key of a vector space."""
_ROWS_A_TRANSACTION = 32
_ROWS_OUT_AT_ONCE = 32
_KEYS_A_QUERY = 256
_ROW_OVERHEAD_BYTES = 4096
_BUSY_TIMEOUT_S = 0.2
_JOURNAL_BYTES = 4 * 1024 * 1024
_SLACK = 1.25
"""A file larger than the bound by this factor, because the bound was lowered, is made anew: SQLite keeps the space it has."""
_SPACE_BYTES = 8
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ

_log = structlog.get_logger()


class SqlitePassageStore:
    """PassageStore in a folder, which is made if need be, of at most `max_bytes`, journal apart. Entries that nobody used for
    `max_idle_days` may be collected. `close()` it at the end.

    One connection reads and one writes, so that a search does not wait for an ingestion. A damaged file is made anew by the writer;
    a disk that refuses (full, read-only) is logged once, and nothing is found or kept until it takes writes again.
    """

    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        space: VectorSpace,
        *,
        max_idle_days: int = 30,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = folder / FILE_NAME
        self._max_bytes = max_bytes
        self._space = space
        self._max_idle_days = max_idle_days
        self._clock = clock
        self._prefix = sha256(space.name.encode()).digest()[:_SPACE_BYTES]
        self._reading, self._writing = threading.Lock(), threading.Lock()  # taken in the order writing, reading
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._used: set[bytes] = set()
        """Rows that were read since the days of use were last written. Guarded by `_reading`."""
        self._is_failing = False
        self._damage = ""
        with self._writing, self._failures():
            self._ready_writer()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, TextVectors]:
        found: dict[bytes, TextVectors] = {}
        with self._reading, self._failures():
            if self._reader is None or self._damage:
                return found
            for start in range(0, len(keys), _KEYS_A_QUERY):
                rows = [self._prefix + key for key in keys[start : start + _KEYS_A_QUERY]]
                marks = ",".join("?" * len(rows))
                query = f"SELECT key, vectors FROM passages WHERE key IN ({marks})"  # noqa: S608 - question marks only
                for key, blob in self._reader.execute(query, rows):
                    if vectors := self._decoded(blob):
                        found[key[_SPACE_BYTES:]] = vectors
                        self._used.add(key)
        return found

    def put(self, entries: Mapping[bytes, TextVectors]) -> None:
        rows = [(self._prefix + key, _encoded(vectors)) for key, vectors in entries.items()]
        with self._writing, self._failures():
            writer = self._ready_writer()
            for start in range(0, len(rows), _ROWS_A_TRANSACTION):
                self._write(writer, rows[start : start + _ROWS_A_TRANSACTION])
            metrics.PASSAGE_STORE_BYTES.set(_used_bytes(writer))
            self._is_failing = False

    def forget(self, keys: Sequence[bytes]) -> None:
        if not self._path.exists():
            return
        is_done = False
        with self._writing, self._failures():
            writer = self._ready_writer()
            for space in _spaces(writer):  # of other models, too: switching between them keeps their entries
                self._delete(writer, [space + key for key in keys])
            # Until then the journal has the pages as they were. Readers at work postpone it to the next time.
            writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_done = True
        if not is_done:
            raise PassageStoreUnavailable(
                f"token vectors in {self._path} could not be removed: the disk refuses; the log says why. Try again when it "
                "takes writes"
            )

    def collect(self) -> int:
        with self._writing, self._failures():
            writer = self._ready_writer()
            with _transaction(writer):
                self._write_uses(writer)
                unused = "DELETE FROM passages WHERE key IN (SELECT key FROM uses WHERE day < ? LIMIT ?)"
                oldest_day = self._today() - self._max_idle_days
                return writer.execute(unused, (oldest_day, _COLLECTED_AT_ONCE)).rowcount
        return 0

    def close(self) -> None:
        """Notes what was used last, and ends both connections."""
        with self._writing:
            if self._writer is not None and not self._damage:
                with self._failures(), _transaction(self._writer):
                    self._write_uses(self._writer)
            self._disconnect()

    def _write(self, writer: sqlite3.Connection, rows: list[tuple[bytes, bytes]]) -> None:
        arriving = sum(len(blob) + _ROW_OVERHEAD_BYTES for _, blob in rows)
        with _transaction(writer):
            while _used_bytes(writer) + arriving > self._max_bytes:
                oldest = "DELETE FROM passages WHERE age IN (SELECT age FROM passages ORDER BY age LIMIT ?)"
                if not writer.execute(oldest, (_ROWS_OUT_AT_ONCE,)).rowcount:
                    return
            writer.executemany("INSERT OR REPLACE INTO passages (key, vectors) VALUES (?, ?)", rows)
            days = [(key, self._today()) for key, _ in rows]
            writer.executemany("INSERT OR REPLACE INTO uses (key, day) VALUES (?, ?)", days)

    def _write_uses(self, writer: sqlite3.Connection) -> None:
        with self._reading:
            used, self._used = self._used, set()
        today = self._today()
        changes = ((today, key, today) for key in used)
        writer.executemany("UPDATE uses SET day = ? WHERE key = ? AND day < ?", changes)

    def _delete(self, writer: sqlite3.Connection, rows: list[bytes]) -> None:
        for start in range(0, len(rows), _KEYS_A_QUERY):
            some = rows[start : start + _KEYS_A_QUERY]
            marks = ",".join("?" * len(some))
            with _transaction(writer):
                writer.execute(f"DELETE FROM passages WHERE key IN ({marks})", some)  # noqa: S608 - question marks only

    def _today(self) -> int:
        return int(self._clock() // _DAY_S)

    def _ready_writer(self) -> sqlite3.Connection:
        """The writer's connection; both are opened if they are not, and the file is made anew if it is of no use."""
        if self._writer is None or self._reader is None or self._damage:
            self._disconnect()
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if reason := self._damage or self._why_useless():
                _log.warning("passage_store_made_anew", path=str(self._path), reason=reason)
                for suffix in ("", "-wal", "-shm"):
                    self._path.with_name(FILE_NAME + suffix).unlink(missing_ok=True)
                self._damage = ""
            self._writer = self._connect()
            self._writer.execute("PRAGMA journal_mode=WAL")
            for statement in _SCHEMA:
                self._writer.execute(statement)
            self._writer.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")
            with self._reading:
                self._reader = self._connect()
            metrics.PASSAGE_STORE_BYTES.set(_used_bytes(self._writer))
        return self._writer

    def _why_useless(self) -> str:
        if not self._path.exists():
            return ""
        if self._path.stat().st_size > self._max_bytes * _SLACK:
            return "it is larger than GROUNDWORK_RERANKER_STORE_BYTES allows"
        try:
            with closing(self._connect()) as connection:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                # Reads the tree of keys, and with it finds a file that was cut or overwritten.
                connection.execute("SELECT count(*) FROM passages").fetchone()
        except sqlite3.DatabaseError as error:
            return _damage_of(error)
        return "" if version == _SCHEMA_VERSION else "another version wrote it"

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA secure_delete=ON")  # what is removed is overwritten, not only given free
        connection.execute(f"PRAGMA journal_size_limit={_JOURNAL_BYTES}")
        return connection

    def _disconnect(self) -> None:
        with self._reading:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()
            self._reader = self._writer = None

    def _decoded(self, blob: bytes) -> TextVectors | None:
        """None for what is no text: a damaged row."""
        pooled_bytes = 4 * self._space.dimension
        if len(blob) <= pooled_bytes or (len(blob) - pooled_bytes) % self._space.token_bytes:
            return None
        tokens = np.frombuffer(blob, np.uint8, offset=pooled_bytes).reshape(-1, self._space.token_bytes)
        return TextVectors(tokens, np.frombuffer(blob, "<f4", self._space.dimension))

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """What the disk does ends here. Only the first of several failures is logged."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            self._damage = _damage_of(error) or self._damage
            if not self._is_failing:
                _log.warning("passage_store_failed", path=str(self._path), error=str(error))
            self._is_failing = True


def _encoded(vectors: TextVectors) -> bytes:
    return vectors.pooled.astype("<f4").tobytes() + vectors.tokens.tobytes()


def _damage_of(error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", 0)
    return f"it is damaged: {error}" if code & 0xFF in _DAMAGED or code == _SHORT_READ else ""


def _spaces(connection: sqlite3.Connection) -> list[bytes]:
    """The vector spaces that have entries: a look into the tree of keys for each."""
    found: list[bytes] = []
    while True:
        after = found[-1] + _LAST_KEY if found else b""
        (key,) = connection.execute("SELECT min(key) FROM passages WHERE key > ?", (after,)).fetchone()
        if key is None:
            return found
        found.append(bytes(key[:_SPACE_BYTES]))


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.execute("COMMIT")
