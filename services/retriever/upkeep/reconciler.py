"""What the indexes hold compared with what is visible: what they hold for nobody is removed, what they lack is noted, and
tombstones and indexes of earlier formats that nobody can need any more go."""

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

from kit.errors import GroundworkError
from services.retriever.concurrency import engine_deadline
from services.retriever.indexes.engine_answer import DENSE, LEXICAL, Part
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.models import Pointer, RevisionKey, WriteKey
from services.retriever.options import REMOVAL_TIMEOUT_S, ReconcileOptions
from services.retriever.ports import LexicalIndex, RevisionStore
from services.retriever.revisions.index_gaps import IndexGaps
from services.retriever.revisions.removal import Remover
from services.retriever.revisions.revision_map import RevisionMap

_log = structlog.get_logger()
_FIRST_TIMEOUT_S = 10.0
"""The first comparison is waited for before searches are served: an index that was lost looks like an empty one."""
_SUSPICION_PAUSE_S = 5.0
"""Between comparisons that searches ask for: each search would, while an index is empty."""
_TOMBSTONES_PER_ROUND = 1000


class Reconciler:
    """A revision that is not active may be about to become so: it is left alone until nobody can be writing it any more."""

    def __init__(
        self,
        dense: DenseSpaces,
        lexical: LexicalIndex,
        store: RevisionStore,
        revisions: RevisionMap,
        gaps: IndexGaps,
        remover: Remover,
        options: ReconcileOptions,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._dense = dense
        self._lexical = lexical
        self._store = store
        self._revisions = revisions
        self._gaps = gaps
        self._remover = remover
        self._options = options
        self._clock = clock
        self._has_compared = asyncio.Event()

    async def wait_compared(self) -> None:
        """Returns once the indexes have been compared, or could not be, for the first time."""
        await self._has_compared.wait()

    async def run(self) -> None:
        """Reconciles now, every interval, and when an engine seems to have lost what it held, until cancelled."""
        await self._revisions.wait_loaded()
        await self._round(_FIRST_TIMEOUT_S)
        self._has_compared.set()
        while True:
            try:
                async with asyncio.timeout(self._options.interval_s):
                    await self._gaps.suspected.wait()
            except TimeoutError:
                pass
            else:
                self._gaps.suspected.clear()
            await self._round(REMOVAL_TIMEOUT_S)
            await self.drop_outdated()
            await asyncio.sleep(min(_SUSPICION_PAUSE_S, self._options.interval_s))

    async def _round(self, timeout_s: float) -> None:
        try:
            await self.reconcile(timeout_s)
            await self.collect_tombstones()
        except GroundworkError as error:
            _log.warning("reconcile_failed", reason=error.reason, error=error.message)

    async def drop_outdated(self) -> None:
        """Removes indexes of earlier formats, unless the present one still lacks something."""
        if self._gaps.count(LEXICAL):
            return
        try:
            async with engine_deadline(REMOVAL_TIMEOUT_S):
                await self._lexical.drop_outdated()
        except GroundworkError as error:
            _log.warning("outdated_indexes_kept", reason=error.reason, error=error.message)

    async def reconcile(self, timeout_s: float = REMOVAL_TIMEOUT_S) -> int:
        """Queues the removal of every orphaned revision; returns how many there were. Of an engine that does not answer nothing is
        decided, and no revision is an orphan then. Raises the engine's error."""
        # Before the engines are asked: what is activated meanwhile is not missing.
        expected = [(key, pointer) for key, pointer in self._revisions.active() if pointer.chunk_count]
        asked = [self._compare(part, expected, timeout_s) for part in (DENSE, LEXICAL)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        newest: dict[RevisionKey, int] = {}
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            for write in answer:
                newest[write.revision] = max(write.started_at_ms, newest.get(write.revision, 0))
        orphans = [key for key, started_at_ms in newest.items() if self._is_orphan(key, started_at_ms)]
        for key in orphans:
            self._remover.remove_revision(key)
        if orphans:
            _log.info("orphaned_revisions_found", count=len(orphans))
        return len(orphans)

    async def _compare(
        self, part: Part, expected: Sequence[tuple[RevisionKey, Pointer]], timeout_s: float
    ) -> list[WriteKey]:
        async with engine_deadline(timeout_s):
            by_model = await self._dense.writes_by_model() if part is DENSE else {"": await self._lexical.writes()}
            writes = [write for each in by_model.values() for write in each]
            held = {model: {write.revision for write in each} for model, each in by_model.items()}
            held[""] = {write.revision for write in writes}
            missing = [
                key
                for key, pointer in expected
                if any(key not in held.get(model, ()) for model in _models(part, pointer))
                or await self._is_still_missing(part, key)
            ]
        self._gaps.replace(part, missing)
        if missing:
            _log.error("index_incomplete", engine=part.name, missing=len(missing), expected=len(expected))
        return writes

    async def _is_still_missing(self, part: Part, key: RevisionKey) -> bool:
        """Of what was missing some chunks may be there again, and others still on their way."""
        if not self._gaps.has(part, key):
            return False
        pointer = self._revisions.get(key.tenant_id, key.document_id)
        if pointer is None:
            return False
        if part is LEXICAL:
            return await self._lexical.count(key) != pointer.chunk_count
        return any([await self._dense.count(key, model) != pointer.chunk_count for model in pointer.models])

    async def collect_tombstones(self) -> int:
        """Removes pointers of documents that were deleted so long ago that no job can bring them back; returns how many. They are
        final, so no other writer is in the way. Raises Unavailable."""
        before_ms = int((self._clock() - self._options.tombstone_life_s) * 1000)
        old = self._revisions.tombstones(before_ms)[:_TOMBSTONES_PER_ROUND]
        for entry in old:
            await self._store.remove(entry.tenant_id, entry.document_id)
        if old:
            _log.info("tombstones_removed", count=len(old))
        return len(old)

    def _is_orphan(self, key: RevisionKey, started_at_ms: int) -> bool:
        pointer = self._revisions.get(key.tenant_id, key.document_id)
        if pointer is not None and (pointer.deleted or pointer.shows(key.revision_id)):
            return pointer.deleted
        return self._clock() - started_at_ms / 1000 > self._options.orphan_age_s


def _models(part: Part, pointer: Pointer) -> tuple[str, ...]:
    """In whose spaces a revision is to be; empty where it is not known, or of no consequence."""
    return pointer.models if part is DENSE else ("",)
