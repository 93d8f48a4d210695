"""All records once, after that only those that were written since."""

from collections.abc import AsyncIterator, Callable

from services.ingest.documents.models import StoredDocument
from services.ingest.ports import DocumentStore


class Changes:
    """One reader's place in the history of all tenants' records. `start_over` is called before they are read from the beginning: at
    first, and whenever the store was away, for a power cut may have taken back its last seconds, versions included."""

    def __init__(self, documents: DocumentStore, start_over: Callable[[], None]) -> None:
        self._documents = documents
        self._start_over = start_over
        self._seen_version = 0
        self._restarts = -1

    async def read(self) -> AsyncIterator[StoredDocument]:
        """What was written since the last reading, each record as it is now. One reading at a time."""
        if (restarts := self._documents.restarts) != self._restarts:
            self._start_over()
            self._seen_version, self._restarts = 0, restarts
        # What is written while this reads may not come, or come as it was before: the next reading begins before it.
        next_time = await self._documents.last_version()
        async for stored in self._documents.changed_since(self._seen_version):
            yield stored
        self._seen_version = next_time
