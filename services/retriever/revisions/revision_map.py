"""Which revision of each document is visible, in memory: every hit of every search is checked against it."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import structlog

from kit.errors import GroundworkError
from services.retriever.errors import RevisionsStale
from services.retriever.models import Amount, CollectionStats, Pointer, PointerEntry, PointerRemoved, RevisionKey
from services.retriever.ports import RevisionStore
from services.retriever.revisions.placement import Placement, searched_model

_log = structlog.get_logger()


@dataclass
class _Size:
    """What is active in a collection, and how often that has changed. `languages` counts documents, `placed` documents and chunks
    by the models in whose spaces they lie."""

    chunk_count: int = 0
    version: int = 0
    languages: Counter[str] = field(default_factory=Counter)
    placed: dict[tuple[str, ...], Amount] = field(default_factory=dict)

    def change(self, pointer: Pointer, sign: int) -> None:
        self.version += 1
        if not pointer.deleted:
            self.chunk_count += sign * pointer.chunk_count
            self.languages.update(dict.fromkeys(pointer.languages, sign))
            here = self.placed.get(pointer.models, Amount()) + Amount(sign, sign * pointer.chunk_count)
            self.placed[pointer.models] = here
            if not here.documents:
                del self.placed[pointer.models]


class RevisionMap:
    """The pointers of all documents, by tenant. Entries may arrive late or twice: the highest version wins.

    What it knows is confirmed from time to time to be all that is stored. Once that is longer ago than `staleness_s`, nothing
    may be shown by it: a document may have been deleted since.
    """

    def __init__(self, *, staleness_s: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries: dict[str, dict[str, PointerEntry]] = {}
        self._sizes: dict[tuple[str, str], _Size] = {}
        self._loaded = asyncio.Event()
        self._staleness_s = staleness_s
        self._clock = clock
        self._confirmed_at_s = -math.inf
        self._followed_to = 0
        self._progress = asyncio.Event()

    @property
    def now_s(self) -> float:
        """By the clock that `confirm` goes by."""
        return self._clock()

    @property
    def age_s(self) -> float:
        """How long ago the map was known to be all that is stored."""
        return self._clock() - self._confirmed_at_s

    @property
    def is_stale(self) -> bool:
        return self.age_s > self._staleness_s

    def require_fresh(self) -> None:
        """Raises RevisionsStale when documents may have been deleted, or replaced, without this process knowing."""
        if self.is_stale:
            raise RevisionsStale(
                f"for over {self._staleness_s:g} s this retriever has not heard which documents were deleted or replaced, so it "
                "shows none; it goes on by itself once the message store (NATS) answers again",
                retry_after_s=2.0,
            )

    def confirm(self, at_s: float) -> None:
        """Notes that at that time of its clock the map was all that was stored."""
        self._confirmed_at_s = max(at_s, self._confirmed_at_s)

    async def wait_followed(self, version: int) -> None:
        """Returns once every change up to `version` of the store has arrived here."""
        while self._followed_to < version:
            self._progress.clear()
            await self._progress.wait()

    def apply(self, entry: PointerEntry) -> None:
        """Takes over a stored pointer unless a newer one is known."""
        documents = self._entries.setdefault(entry.tenant_id, {})
        known = documents.get(entry.document_id)
        if known is None or known.version < entry.version:
            documents[entry.document_id] = entry
            self._resize(known, -1)
            self._resize(entry, 1)

    def forget(self, removed: PointerRemoved) -> None:
        """Drops a pointer that is not stored any more."""
        documents = self._entries.get(removed.tenant_id, {})
        known = documents.get(removed.document_id)
        if known is not None and known.version < removed.version:
            del documents[removed.document_id]
            self._resize(known, -1)

    def get(self, tenant_id: str, document_id: str) -> Pointer | None:
        entry = self._entries.get(tenant_id, {}).get(document_id)
        return entry.pointer if entry else None

    def is_active(self, tenant_id: str, document_id: str, revision_id: str) -> bool:
        """Whether a search may show chunks of this revision."""
        pointer = self.get(tenant_id, document_id)
        return pointer is not None and pointer.shows(revision_id)

    def active(self) -> Iterator[tuple[RevisionKey, Pointer]]:
        """Every visible revision, as of now."""
        for tenant_id, entry in self._all():
            if entry.pointer is not None and not entry.pointer.deleted:
                yield RevisionKey(tenant_id, entry.document_id, entry.pointer.revision_id), entry.pointer

    def active_in(self, tenant_id: str, collection_id: str) -> list[tuple[RevisionKey, Pointer]]:
        """The visible revisions of a collection."""
        return [
            (RevisionKey(tenant_id, entry.document_id, entry.pointer.revision_id), entry.pointer)
            for entry in self._entries.get(tenant_id, {}).values()
            if entry.pointer is not None and not entry.pointer.deleted and entry.pointer.collection_id == collection_id
        ]

    def visible(self, tenant_id: str) -> list[str]:
        """Ids of the tenant's documents that searches can show."""
        entries = self._entries.get(tenant_id, {}).values()
        return [each.document_id for each in entries if each.pointer is not None and not each.pointer.deleted]

    def tombstones(self, before_ms: int) -> list[PointerEntry]:
        """Of documents that were deleted before that time, in milliseconds since the epoch."""
        return [
            entry
            for _, entry in self._all()
            if entry.pointer is not None and entry.pointer.deleted and entry.pointer.activated_at_ms < before_ms
        ]

    def stats(self, tenant_id: str, collection_ids: Sequence[str]) -> list[CollectionStats]:
        """Sizes over active revisions, by collection id. No collections means all of the tenant."""
        wanted = set(collection_ids)
        sizes: dict[str, tuple[int, int]] = {}
        for entry in self._entries.get(tenant_id, {}).values():
            pointer = entry.pointer
            if pointer is None or pointer.deleted or (wanted and pointer.collection_id not in wanted):
                continue
            documents, chunks = sizes.get(pointer.collection_id, (0, 0))
            sizes[pointer.collection_id] = (documents + 1, chunks + pointer.chunk_count)
        return [CollectionStats(collection_id, *size) for collection_id, size in sorted(sizes.items())]

    def chunk_count(self, tenant_id: str, collection_ids: Sequence[str]) -> int:
        """Active chunks in the collections together, counted beforehand: every search asks."""
        sizes = (self._sizes.get((tenant_id, collection_id)) for collection_id in collection_ids)
        return sum(size.chunk_count for size in sizes if size)

    def languages(self, tenant_id: str, collection_ids: Sequence[str]) -> dict[str, int]:
        """How many documents of the collections have each language, most common first; empty when none is known."""
        documents: Counter[str] = Counter()
        for collection_id in collection_ids:
            if size := self._sizes.get((tenant_id, collection_id)):
                documents.update(size.languages)
        return {language: count for language, count in documents.most_common() if count > 0}

    def placement(self, tenant_id: str, collection_ids: Sequence[str], chosen: Mapping[str, str]) -> Placement:
        """Where the documents of the collections are searched. `chosen`: the model of each collection that has one."""
        collections: dict[str, list[str]] = {}
        for collection_id in collection_ids:
            model = chosen.get(collection_id, "")
            for searched in {searched_model(each, model) for each in self.placed(tenant_id, collection_id)}:
                collections.setdefault(searched, []).append(collection_id)
        by_model = {model: tuple(collections[model]) for model in sorted(collections)}
        return Placement(chosen, by_model, lambda document_id: self.get(tenant_id, document_id))

    def placed(self, tenant_id: str, collection_id: str) -> Mapping[tuple[str, ...], Amount]:
        """How much of a collection lies in the spaces of each list of models. The model that first embedded the documents comes
        first; its name is empty where it is not known."""
        size = self._sizes.get((tenant_id, collection_id))
        return dict(size.placed) if size else {}

    def versions(self, tenant_id: str, collection_ids: Sequence[str]) -> tuple[int, ...]:
        """One number a collection, higher after every change of a pointer in it. Of this process only."""
        sizes = (self._sizes.get((tenant_id, collection_id)) for collection_id in collection_ids)
        return tuple(size.version if size else 0 for size in sizes)

    def _all(self) -> list[tuple[str, PointerEntry]]:
        return [(tenant_id, entry) for tenant_id, mine in self._entries.items() for entry in mine.values()]

    def _resize(self, entry: PointerEntry | None, sign: int) -> None:
        if entry is not None and entry.pointer is not None:
            place = entry.tenant_id, entry.pointer.collection_id
            self._sizes.setdefault(place, _Size()).change(entry.pointer, sign)

    async def wait_loaded(self) -> None:
        """Returns once every pointer that was stored at the start is known."""
        await self._loaded.wait()

    async def follow(self, store: RevisionStore, *, retry_s: float, resync_s: float) -> None:
        """Keeps the map up to date until cancelled.

        Reads everything again after `retry_s` when the store is lost, and every `resync_s` in any case, so that a change
        which a broken connection swallowed is seen at last.
        """
        while True:
            try:
                async with asyncio.timeout(resync_s):
                    await self._follow_once(store)
            except TimeoutError:
                continue
            except GroundworkError as error:
                _log.warning("revision_watch_lost", reason=error.reason, error=error.message)
            await asyncio.sleep(retry_s)

    async def _follow_once(self, store: RevisionStore) -> None:
        stored: set[tuple[str, str]] | None = set()
        position = 0
        async with aclosing(store.watch()) as changes:
            async for change in changes:
                if change is None:
                    await self._drop_unstored(store, stored or set(), position)
                    stored = None
                    self._loaded.set()
                    continue
                if isinstance(change, PointerRemoved):
                    self.forget(change)
                else:
                    self.apply(change)
                    if stored is not None:
                        stored.add((change.tenant_id, change.document_id))
                position = change.version
                self._followed_to = max(position, self._followed_to)
                self._progress.set()

    async def _drop_unstored(self, store: RevisionStore, stored: set[tuple[str, str]], position: int) -> None:
        """Drops what was removed from the store while nobody was listening: what should have come by `position` and did not. A
        pointer that was changed while all were read comes later: so the store is asked."""
        for tenant_id, entry in self._all():
            if entry.version > position or (tenant_id, entry.document_id) in stored:
                continue
            current = await store.get(tenant_id, entry.document_id)
            if current is None:
                self.forget(PointerRemoved(tenant_id, entry.document_id, entry.version + 1))
            else:
                self.apply(current)
