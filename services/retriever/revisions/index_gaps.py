"""What an engine should hold and does not: its index was lost, damaged or made anew, and looks like one that finds nothing.
Searches say so until it is whole."""

import asyncio
from collections.abc import Iterable, Sequence

from services.retriever import metrics
from services.retriever.indexes.engine_answer import DENSE, LEXICAL, Part
from services.retriever.models import Degradation, RevisionKey
from services.retriever.revisions.revision_map import RevisionMap

INCOMPLETE = "INDEX_INCOMPLETE"
_AT_ONCE = 1000
"""Revisions that are looked at before others have their turn on the event loop."""

_Place = tuple[str, str]
"""Tenant and collection."""


_Missing = dict[_Place, set[RevisionKey]]


class IndexGaps:
    """The visible revisions that an engine lacks, as far as is known. Those that are not visible any more are passed over."""

    def __init__(self, revisions: RevisionMap) -> None:
        self._revisions = revisions
        self._missing: dict[str, _Missing] = {DENSE.name: {}, LEXICAL.name: {}}
        self.version = 0
        """Higher after each change: an answer that was remembered before it is not of now."""
        self.found = asyncio.Event()
        """Set when something is found to be missing; cleared by who fills it."""
        self.suspected = asyncio.Event()
        """Set when an engine seems to have lost what it held; cleared by who compares it."""

    def replace(self, part: Part, missing: Iterable[RevisionKey]) -> None:
        """All that the engine lacks, as it was found just now."""
        found: _Missing = {}
        for key in missing:
            pointer = self._revisions.get(key.tenant_id, key.document_id)
            if pointer is not None and pointer.shows(key.revision_id):
                found.setdefault((key.tenant_id, pointer.collection_id), set()).add(key)
        if found != self._missing[part.name]:
            self._missing[part.name] = found
            self.version += 1
        self._show(part)
        if found:
            self.found.set()

    def close(self, part: Part, key: RevisionKey) -> None:
        """The engine holds the revision again, or nobody needs it any more."""
        for keys in self._missing[part.name].values():
            if key in keys:
                keys.remove(key)
                self.version += 1
        self._show(part)

    async def drop_outdated(self, part: Part) -> None:
        """Passes over all that is not visible any more: a document that was made again has another revision."""
        before = self.count(part)
        for keys in list(self._missing[part.name].values()):
            for number, key in enumerate(list(keys)):
                if not self._revisions.is_active(key.tenant_id, key.document_id, key.revision_id):
                    keys.discard(key)
                if number % _AT_ONCE == _AT_ONCE - 1:
                    await asyncio.sleep(0)
        if self.count(part) != before:
            self.version += 1
            self._show(part)

    def of(self, part: Part) -> list[RevisionKey]:
        """The revisions that the engine lacks, in no order."""
        return [key for keys in self._missing[part.name].values() for key in keys]

    def count(self, part: Part) -> int:
        """How many the engine lacks."""
        return sum(map(len, self._missing[part.name].values()))

    def has(self, part: Part, key: RevisionKey) -> bool:
        """Whether the engine lacks this one."""
        return any(key in keys for keys in self._missing[part.name].values())

    def degradation(self, part: Part, tenant_id: str, collection_ids: Sequence[str]) -> Degradation | None:
        """What a search of these collections must say of the engine; None when it lacks nothing of them."""
        missing = self._missing[part.name]
        if not missing:
            return None
        count = sum(self._count_in(missing, (tenant_id, collection_id)) for collection_id in set(collection_ids))
        if not count:
            return None
        documents = "1 document" if count == 1 else f"{count} documents"
        return Degradation(
            part.name,
            INCOMPLETE,
            f"{part.subject} lacks {documents} of these collections until its index has been filled again; what it alone would "
            "have found there is missing",
        )

    def _count_in(self, missing: _Missing, place: _Place) -> int:
        """Drops what is not visible any more, up to the first that is: the number may be too high for a while, never too low."""
        keys = missing.get(place, set())
        while keys:
            key = keys.pop()
            if self._revisions.is_active(key.tenant_id, key.document_id, key.revision_id):
                keys.add(key)
                break
        return len(keys)

    def _show(self, part: Part) -> None:
        metrics.MISSING_REVISIONS.labels(part.name).set(self.count(part))
