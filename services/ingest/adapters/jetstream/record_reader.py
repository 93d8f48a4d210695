"""Reading records that may be no records: torn, or in a form that only a newer version knows. Those are left as they are, said once
each in the log, by their key, and counted for the operator. Everything else goes on."""

from collections.abc import Callable
from typing import Generic, TypeVar

import structlog
from prometheus_client import Gauge

from kit.jetstream import Entry
from services.ingest.documents.records import Unreadable
from services.ingest.errors import RecordUnreadable

_log = structlog.get_logger()
_RETRY_AFTER_S = 300.0
"""Before a job looks again at the record that it cannot read."""

RecordT = TypeVar("RecordT")


class RecordReader(Generic[RecordT]):
    """Reads the entries of one bucket, whose keys `key_of` makes. `gauge` has the label `kind`."""

    def __init__(
        self, kind: str, decode: Callable[[bytes], RecordT], key_of: Callable[[RecordT], str], gauge: Gauge
    ) -> None:
        self._kind = kind
        self._decode = decode
        self._key_of = key_of
        self._gauge = gauge.labels(kind=kind)
        self._unreadable: dict[str, int] = {}
        """Keys, and the version that was read."""

    @property
    def unreadable(self) -> int:
        """How many were found, and not yet found readable again."""
        return len(self._unreadable)

    def start_over(self) -> None:
        """Forgets what was found: everything is about to be read again."""
        self._unreadable.clear()
        self._gauge.set(0)

    def read(self, entry: Entry) -> RecordT:
        """Raises RecordUnreadable."""
        try:
            record = self._decoded(entry)
        except Unreadable as error:
            self._note(entry, error)
            raise RecordUnreadable(
                f"the stored record of this {self._kind} ({entry.key}) cannot be read: it is damaged, or a newer version of this "
                "service wrote it; try again when all processes run that version, or tell the operator",
                retry_after_s=_RETRY_AFTER_S,
            ) from error
        if self._unreadable.pop(entry.key, None) is not None:
            self._gauge.set(len(self._unreadable))
        return record

    def read_if_possible(self, entry: Entry) -> RecordT | None:
        """None for a record that is deleted or cannot be read."""
        if entry.value is None:
            return None
        try:
            return self.read(entry)
        except RecordUnreadable:
            return None

    def _decoded(self, entry: Entry) -> RecordT:
        record = self._decode(entry.value or b"")
        if self._key_of(record) != entry.key:
            raise Unreadable(f"it says that it is {self._key_of(record)}")
        return record

    def _note(self, entry: Entry, error: Unreadable) -> None:
        if self._unreadable.get(entry.key) != entry.revision:
            _log.error("record_unreadable", kind=self._kind, key=entry.key, error=str(error))
            self._unreadable[entry.key] = entry.revision
            self._gauge.set(len(self._unreadable))
