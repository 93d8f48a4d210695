"""Access lists of documents: who of those who may read a collection may read one document of it. A document without a list is its
collection's. Owners of the collection, and who sees all, read every document.

Lists are kept in one bucket, which ingestion writes and the retriever reads: one write changes what both of them show.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from kit.access.principal import Principal
from kit.errors import Unavailable
from kit.jetstream import Entry, KeyValue, Nats
from kit.shared_state import DOCUMENT_ACCESS
from kit.stores.followed_bucket import FollowedBucket

_REMEMBERED = 256
"""Callers of whom it is remembered which documents of a collection are hidden from them."""


@dataclass(frozen=True)
class DocumentAccess:
    """Subjects and groups that may read a document. With neither, owners of the collection alone may."""

    collection_id: str
    """Of the document; empty where the list cannot be read, and then nobody is in it."""
    subjects: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def covers(self, caller: Principal) -> bool:
        """Whether the caller is in the list."""
        return caller.subject in self.subjects or not self.groups.isdisjoint(caller.groups)

    def lets_in_more(self, before: "DocumentAccess") -> bool:
        """Whether somebody may be in this list who was not in the one before."""
        return not (self.subjects <= before.subjects and self.groups <= before.groups)


def encode(access: DocumentAccess) -> bytes:
    """As it is stored."""
    lists = {"subjects": sorted(access.subjects), "groups": sorted(access.groups)}
    return json.dumps({"collection_id": access.collection_id, **lists}).encode()


def decode(value: bytes) -> DocumentAccess:
    """The list that is stored; one with nobody in it for bytes that are none."""
    try:
        fields = json.loads(value)
        collection_id = fields["collection_id"]
        lists = frozenset(fields["subjects"]), frozenset(fields["groups"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return DocumentAccess("")
    return DocumentAccess(collection_id, *lists) if isinstance(collection_id, str) else DocumentAccess("")


class DocumentAccessStale(Unavailable):
    """It is not known who may read which document now."""

    reason = "DOCUMENT_ACCESS_STALE"


class DocumentAccessMap(FollowedBucket[DocumentAccess]):
    """The access lists of all tenants' documents."""

    def __init__(
        self, bucket: KeyValue, *, staleness_s: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(bucket, lambda entry: decode(entry.value or b""), _stale, staleness_s=staleness_s, clock=clock)
        self._documents: dict[str, dict[DocumentAccess, set[str]]] = {}
        """Ids of documents by their list, by `<tenant>.<collection>`."""
        self._hidden: OrderedDict[tuple[str, str, frozenset[str]], frozenset[str]] = OrderedDict()

    @classmethod
    async def open_to_read(cls, nats: Nats) -> "DocumentAccessMap":
        """For a service that never writes a list."""
        return cls(await KeyValue.open_to_read(nats, DOCUMENT_ACCESS.name))

    def known(self, tenant_id: str, document_id: str) -> DocumentAccess | None:
        """The list of a document as it is in memory; None for a document that has none. Raises DocumentAccessStale."""
        self.require_fresh()
        return self._records.get(f"{tenant_id}.{document_id}")

    def hidden(self, caller: Principal, collection_id: str) -> frozenset[str]:
        """Ids of the documents of a collection that have a list without the caller. Raises DocumentAccessStale."""
        self.require_fresh()
        key = (f"{caller.tenant_id}.{collection_id}", caller.subject, caller.groups)
        found = self._hidden.get(key)
        if found is None:
            lists = [self._documents.get(place, {}) for place in (key[0], f"{caller.tenant_id}.")]
            closed = [ids for each in lists for access, ids in each.items() if not access.covers(caller)]
            found = self._hidden[key] = frozenset().union(*closed)
            if len(self._hidden) > _REMEMBERED:
                self._hidden.popitem(last=False)
        return found

    def _note(self, key: str, entry: Entry | None) -> None:
        before = self._records.get(key)
        super()._note(key, entry)
        after = self._records.get(key)
        if before == after:
            return
        tenant_id, _, document_id = key.partition(".")
        if before is not None:
            lists = self._documents[f"{tenant_id}.{before.collection_id}"]
            lists[before].discard(document_id)
            if not lists[before]:
                del lists[before]
        if after is not None:
            lists = self._documents.setdefault(f"{tenant_id}.{after.collection_id}", {})
            lists.setdefault(after, set()).add(document_id)
        self._hidden.clear()


def _stale(staleness_s: float) -> DocumentAccessStale:
    return DocumentAccessStale(
        f"for over {staleness_s:g} s this service has not heard who may read which document, so it shows none; it goes on by "
        "itself once the message store (NATS) answers again",
        retry_after_s=2.0,
    )
