"""Brings every document of a collection into the spaces that the collection's record wants, and out of those that it does not want
any more: this builds a shadow index, keeps both up to date until one is dropped, and removes what was dropped.

What is done of a document stands in its pointer, so the process that goes on after a kill, this one or another, goes on with what
is missing. A document that comes, is replaced or is deleted meanwhile needs no care of its own: it lacks a space, or is not there.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol

import structlog

from kit.errors import GroundworkError
from services.retriever import metrics
from services.retriever.concurrency import KeyedLock, engine_deadline
from services.retriever.errors import PointerConflict
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.model_change.collection_embedding import CollectionEmbedding, Stage
from services.retriever.model_change.embedding_map import EmbeddingMap
from services.retriever.model_change.evaluator import Evaluator
from services.retriever.models import Amount, Pointer, RevisionKey, WriteKey
from services.retriever.options import REMOVAL_TIMEOUT_S
from services.retriever.ports import CollectionRights, EmbeddingEntry, EmbeddingStore
from services.retriever.revisions.copying import DenseCopier, NotRefillable
from services.retriever.revisions.indexing import Place
from services.retriever.revisions.revision_map import RevisionMap

_log = structlog.get_logger()
_LEASE = "embedding"
_ATTEMPT = "copy"
"""One for all who build: an attempt removes what others left."""
_DOCUMENTS_AT_A_TIME = 16
"""They share commits, and memory holds one batch of each."""
_DOCUMENTS_PER_TURN = 256
"""Before another collection has its turn."""
_PAUSE_S = 1.0
_RETRY_S = 5.0


class HeldLease(Protocol):
    """The right to build, of one process at a time."""

    def check(self) -> None:
        """Raises Unavailable when another may hold it now."""


HoldLease = Callable[[str], AbstractAsyncContextManager[HeldLease]]


class EmbeddingBuilder:
    """Works on one collection at a time, for all tenants."""

    def __init__(
        self,
        store: EmbeddingStore,
        known: EmbeddingMap,
        revisions: RevisionMap,
        dense: DenseSpaces,
        copier: DenseCopier,
        evaluator: Evaluator,
        place: Place,
        writing: KeyedLock,
        rights: CollectionRights,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`writing`: one for each revision, shared with who else writes it. `place`: as RevisionSwitch."""
        self._store = store
        self._known = known
        self._revisions = revisions
        self._dense = dense
        self._copier = copier
        self._evaluator = evaluator
        self._place = place
        self._writing = writing
        self._rights = rights
        self._clock = clock
        self._left_out: set[tuple[RevisionKey, str]] = set()
        """What cannot be copied, because its embedded text is not known: it is searched where it lies."""

    async def run(self, hold: HoldLease) -> None:
        """Works until cancelled, as long as it holds the lease."""
        await self._revisions.wait_loaded()
        await self._known.wait_loaded()
        while True:
            try:
                async with hold(_LEASE) as lease:
                    while True:
                        has_failed = not await self.round(lease)
                        await self._rest(_RETRY_S if has_failed else _PAUSE_S)
            except GroundworkError as error:
                _log.warning("embedding_lease_lost", reason=error.reason, error=error.message)
                await asyncio.sleep(_PAUSE_S)

    async def round(self, lease: HeldLease) -> bool:
        """Gives every collection with a record a turn. False when something failed that may succeed later."""
        self._known.changed.clear()
        entries = self._known.all()
        self._show(entries)
        is_whole = True
        for entry in entries:
            lease.check()
            record = entry.record
            if record is None:
                continue
            try:
                await self._advance(entry, record, lease)
            except GroundworkError as error:
                lease.check()
                is_whole = False
                metrics.EMBEDDING_FAILURES.inc()
                _log.warning(
                    "embedding_step_failed", stage=record.stage.value, reason=error.reason, error=error.message
                )
                await self._note_problem(entry, record, error.message)
        self._show(self._known.all())
        return is_whole

    async def _rest(self, longest_s: float) -> None:
        try:
            async with asyncio.timeout(longest_s):
                await self._known.changed.wait()
        except TimeoutError:
            return

    async def _advance(self, entry: EmbeddingEntry, record: CollectionEmbedding, lease: HeldLease) -> None:
        work = self._work(entry, record)
        if work:
            await self._move_some(work[:_DOCUMENTS_PER_TURN], record, lease)
            self._known.changed.set()
        elif record.stage is Stage.BUILDING:
            await self._put(entry, record.built())
        elif record.stage is Stage.EVALUATING:
            now_ms = int(self._clock() * 1000)
            models = (record.model, record.other)
            evaluation = await self._evaluator.evaluate(
                entry.tenant_id, entry.collection_id, models, record.questions, now_ms
            )
            await self._put(entry, record.evaluated(evaluation))
        elif record.stage is Stage.DROPPING:
            await self._remove_remains(entry, record)
            await self._put(entry, record.dropped())
        elif not self._revisions.placed(entry.tenant_id, entry.collection_id) and await self._rights.is_gone(
            entry.tenant_id, entry.collection_id
        ):
            await self._store.remove(entry.tenant_id, entry.collection_id)
        if record.problem and self._known.get(entry.tenant_id, entry.collection_id) == record:
            await self._put(entry, replace(record, problem=""))

    def _work(self, entry: EmbeddingEntry, record: CollectionEmbedding) -> list[RevisionKey]:
        """The documents that lack a space, or are in one too many."""
        placed = self._revisions.placed(entry.tenant_id, entry.collection_id)
        if all(set(models) == set(record.wanted) for models in placed):
            return []
        return [
            key
            for key, pointer in self._revisions.active_in(entry.tenant_id, entry.collection_id)
            if self._lacking(key, pointer, record) or _surplus(pointer, record)
        ]

    def _lacking(self, key: RevisionKey, pointer: Pointer, record: CollectionEmbedding) -> list[str]:
        return [model for model in record.wanted if model not in pointer.models and (key, model) not in self._left_out]

    async def _move_some(self, keys: Sequence[RevisionKey], record: CollectionEmbedding, lease: HeldLease) -> None:
        """Goes on with the others when one fails. Raises the first failure."""
        remaining = iter(keys)
        failures: list[GroundworkError] = []

        async def move_some() -> None:
            for key in remaining:
                try:
                    lease.check()
                    await self._move(key, record)
                except GroundworkError as error:
                    failures.append(error)
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(_DOCUMENTS_AT_A_TIME):
                group.create_task(move_some())
        if failures:
            raise failures[0]

    async def _move(self, key: RevisionKey, record: CollectionEmbedding) -> None:
        async with self._writing(key):
            pointer = self._revisions.get(key.tenant_id, key.document_id)
            if pointer is None or not pointer.shows(key.revision_id):
                return
            if not pointer.embedding_model:
                made_by = await self._dense.model_of(key)
                pointer = await self._place(key, lambda stored: (made_by, *stored.copies))
                if pointer is None:
                    return
            for model in self._lacking(key, pointer, record):
                if not await self._add(key, pointer, model):
                    return
            pointer = self._revisions.get(key.tenant_id, key.document_id)
            if pointer is not None and pointer.shows(key.revision_id) and (surplus := _surplus(pointer, record)):
                await self._take_out(key, surplus)

    async def _add(self, key: RevisionKey, pointer: Pointer, model: str) -> bool:
        """False when the revision is not visible any more."""
        async with engine_deadline(REMOVAL_TIMEOUT_S):
            held = await self._dense.count(key, model)
        if (
            held != pointer.chunk_count
        ):  # else it was there when a process was killed, and only the pointer does not say so
            try:
                write_key = WriteKey(key, pointer.activated_at_ms, _ATTEMPT)
                await self._copier.copy(write_key, pointer.chunk_count, model)
            except NotRefillable:
                self._left_out.add((key, model))
                _log.warning("embedding_copy_impossible", document_id=key.document_id, model=model)
                return True
            metrics.EMBEDDING_COPIED.inc(pointer.chunk_count)
        if await self._place(key, lambda stored: tuple(dict.fromkeys((*stored.models, model)))) is None:
            await self._dense.delete_copy(key, model)
            return False
        return True

    async def _take_out(self, key: RevisionKey, surplus: Sequence[str]) -> None:
        """The pointer says so first: it never names a space in which the document is not."""
        kept = await self._place(key, lambda stored: [each for each in stored.models if each not in surplus])
        if kept is not None:
            for model in surplus:
                async with engine_deadline(REMOVAL_TIMEOUT_S):
                    await self._dense.delete_copy(key, model)

    async def _remove_remains(self, entry: EmbeddingEntry, record: CollectionEmbedding) -> None:
        """What no pointer names: copies that were not finished, or not wholly removed, when a process was killed."""
        async with engine_deadline(REMOVAL_TIMEOUT_S):
            held = {write.revision for write in (await self._dense.writes_by_model()).get(record.other, ())}
        for key, pointer in self._revisions.active_in(entry.tenant_id, entry.collection_id):
            if key in held and record.other not in pointer.models:
                async with self._writing(key), engine_deadline(REMOVAL_TIMEOUT_S):
                    await self._dense.delete_copy(key, record.other)

    async def _put(self, entry: EmbeddingEntry, record: CollectionEmbedding) -> None:
        """Unless somebody has just commanded something else."""
        try:
            self._known.apply(await self._store.put(entry.tenant_id, entry.collection_id, record, entry.version))
        except PointerConflict:
            return
        _log.info("embedding_stage", collection_id=entry.collection_id, stage=record.stage.value, model=record.model)

    async def _note_problem(self, entry: EmbeddingEntry, record: CollectionEmbedding, problem: str) -> None:
        if record.problem == problem:
            return
        try:
            await self._put(entry, replace(record, problem=problem))
        except GroundworkError as error:
            _log.warning("embedding_problem_not_noted", reason=error.reason, error=error.message)

    def _show(self, entries: Sequence[EmbeddingEntry]) -> None:
        stages = [entry.record.stage for entry in entries if entry.record is not None]
        for stage in Stage:
            metrics.EMBEDDING_CHANGES.labels(stage.value).set(stages.count(stage))
        pending = Amount()
        for entry in entries:
            for models, amount in self._revisions.placed(entry.tenant_id, entry.collection_id).items():
                if entry.record is not None and not set(entry.record.wanted) <= set(models):
                    pending += amount
        metrics.EMBEDDING_PENDING.set(pending.chunks)


def _surplus(pointer: Pointer, record: CollectionEmbedding) -> list[str]:
    """Nothing of a document that is not in the space that it is to be searched in."""
    if record.model not in pointer.models:
        return []
    return [model for model in pointer.models if model not in record.wanted]
