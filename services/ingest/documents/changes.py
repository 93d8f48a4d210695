"""All records once, after that only those that were written since."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime

from services.ingest.documents.life import TOMBSTONE_LIFE
from services.ingest.documents.models import StoredDocument
from services.ingest.ports import DocumentStore

_REMEMBERED = TOMBSTONE_LIFE / 2
"""A record that is purged leaves nothing to read: who reads as often as this has seen its tombstone."""


class Changes:
    """One reader's place in the history of all tenants' records. `start_over` is called before they are read from the beginning: at
    first, and whenever the store was away, for a power cut may have taken back its last seconds, versions included."""

    def __init__(
        self, documents: DocumentStore, start_over: Callable[[], None], now: Callable[[], datetime] | None = None
    ) -> None:
        """`now`, the time of day, of a reader that is to learn of every deletion: where so long was not read that a tombstone may
        have come and gone, it starts over, too."""
        self._documents = documents
        self._start_over = start_over
        self._now = now
        self._seen_version = 0
        self._restarts = -1
        self._read_at: datetime | None = None

    @property
    def has_begun(self) -> bool:
        """Whether anything was read."""
        return self._restarts >= 0

    async def read(self) -> AsyncIterator[StoredDocument]:
        """What was written since the last reading, each record as it is now. One reading at a time."""
        restarts, now = self._documents.restarts, self._now() if self._now else None
        is_late = now is not None and self._read_at is not None and abs(now - self._read_at) > _REMEMBERED
        if restarts != self._restarts or is_late:
            self._start_over()
            self._seen_version, self._restarts = 0, restarts
        # What is written while this reads may not come, or come as it was before: the next reading begins before it.
        next_time = await self._documents.last_version()
        async for stored in self._documents.changed_since(self._seen_version):
            yield stored
        self._seen_version, self._read_at = next_time, now
