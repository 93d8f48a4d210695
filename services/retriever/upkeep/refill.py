"""Filling an index again from the other one, after it was lost, damaged, or made anew in another format: each holds the chunks
whole, and vectors are made again of their text. What neither has is made again from the document's file, by ingestion, which
compares the indexes with its records."""

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence

import numpy as np
import structlog

from kit.errors import GroundworkError
from services.retriever import metrics
from services.retriever.concurrency import KeyedLock, engine_deadline
from services.retriever.errors import IndexUnavailable
from services.retriever.indexes.engine_answer import DENSE, LEXICAL, Part
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.models import IndexBatch, IndexedChunk, Pointer, RevisionKey, WriteKey
from services.retriever.options import READ_TIMEOUT_S, REMOVAL_TIMEOUT_S
from services.retriever.ports import LexicalIndex
from services.retriever.revisions.copying import DenseCopier, NotRefillable, batches, searched_text
from services.retriever.revisions.index_gaps import IndexGaps
from services.retriever.revisions.revision_map import RevisionMap

_log = structlog.get_logger()
_REVISIONS_AT_A_TIME = 8
"""They share commits, and memory holds one batch of each."""
_SHARED_ATTEMPT = "refill"
_RETRY_S = 5.0
"""Before what failed is tried again: an engine or the model server was away."""


class Refiller:
    """Fills the gaps of the engines of this process, and of servers that several retrievers may fill at once."""

    def __init__(
        self,
        dense: DenseSpaces,
        lexical: LexicalIndex,
        copier: DenseCopier,
        revisions: RevisionMap,
        gaps: IndexGaps,
        writing: KeyedLock,
        own: Sequence[Part],
        shared: Sequence[Part] = (),
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`writing`: one for each revision, shared with who writes them. `own`: the engines that are of this process. `shared`:
        those of servers where a chunk that is written twice, by two retrievers, is there once. Other gaps are left to ingestion."""
        self._dense = dense
        self._lexical = lexical
        self._copier = copier
        self._revisions = revisions
        self._gaps = gaps
        self._writing = writing
        self._own = own
        self._shared = shared
        self._clock = clock
        self._in_hand: set[RevisionKey] = set()

    def is_filling(self, key: RevisionKey) -> bool:
        """Whether it is missing somewhere, and not yet known whether it can be filled in here."""
        return key in self._in_hand

    async def run(self) -> None:
        """Fills what is found missing until cancelled; what failed is tried again, what cannot be filled is not."""
        while True:
            await self._gaps.found.wait()
            self._gaps.found.clear()
            if not await self.fill():
                await asyncio.sleep(_RETRY_S)
                self._gaps.found.set()

    async def fill(self) -> bool:
        """Fills what can be filled of all gaps now. False when something failed that may succeed later."""
        work = [(part, key) for part in (*self._own, *self._shared) for key in self._gaps.of(part)]
        self._in_hand = {key for _, key in work}
        remaining = iter(work)
        failures: list[GroundworkError] = []

        async def fill_some() -> None:
            for part, key in remaining:
                try:
                    await self._fill(part, key)
                except NotRefillable:
                    self._in_hand.discard(key)
                except GroundworkError as error:
                    if error.retryable:
                        failures.append(error)
                    else:
                        self._in_hand.discard(key)
                        _log.error("refill_refused", reason=error.reason, error=error.message)
                except Exception as error:
                    # A defect here must not take down the searches; ingestion will make the document again.
                    self._in_hand.discard(key)
                    _log.error("refill_failed", exc_info=error)

        async with asyncio.TaskGroup() as group:
            for _ in range(_REVISIONS_AT_A_TIME):
                group.create_task(fill_some())
        if failures:
            _log.warning("refill_failed", count=len(failures), reason=failures[0].reason, error=failures[0].message)
        else:
            self._in_hand = set()
        return not failures

    async def _fill(self, part: Part, key: RevisionKey) -> None:
        async with self._writing(key):
            pointer = self._revisions.get(key.tenant_id, key.document_id)
            if pointer is not None and pointer.shows(key.revision_id):
                if part is DENSE:
                    for model in pointer.models:
                        await self._fill_space(key, pointer, model)
                else:
                    await self._fill_lexical(key, pointer)
            self._gaps.close(part, key)

    async def _fill_space(self, key: RevisionKey, pointer: Pointer, model: str) -> None:
        async with engine_deadline(READ_TIMEOUT_S):
            held, at_hand = await self._dense.count(key, model), await self._lexical.count(key)
        if held == pointer.chunk_count:
            return
        if at_hand != pointer.chunk_count:
            raise NotRefillable
        await self._copier.copy(self._attempt(DENSE, key, pointer), pointer.chunk_count, model)
        metrics.REFILLED.labels(DENSE.name).inc()

    async def _fill_lexical(self, key: RevisionKey, pointer: Pointer) -> None:
        async with engine_deadline(READ_TIMEOUT_S):
            held, at_hand = await self._lexical.count(key), await self._dense.count(key)
        if held == pointer.chunk_count:
            return
        if at_hand != pointer.chunk_count:
            raise NotRefillable
        write_key = self._attempt(LEXICAL, key, pointer)
        async for chunks in batches(self._dense, key, pointer.chunk_count):
            items = [IndexedChunk(chunk, searched_text(chunk)) for chunk in chunks]
            batch = IndexBatch(items, np.zeros((len(items), 0), np.float32))
            async with engine_deadline(REMOVAL_TIMEOUT_S):
                await self._lexical.write(write_key, batch)
        async with engine_deadline(REMOVAL_TIMEOUT_S):
            count = await self._lexical.commit(write_key)
        if count != pointer.chunk_count:
            raise IndexUnavailable(
                f"of {pointer.chunk_count} chunks of revision {key.revision_id} the index kept {count}"
            )
        metrics.REFILLED.labels(LEXICAL.name).inc()

    def _attempt(self, part: Part, key: RevisionKey, pointer: Pointer) -> WriteKey:
        """Where several fill the same index it is one attempt of all: an attempt removes what others left."""
        if part in self._shared:
            return WriteKey(key, pointer.activated_at_ms, _SHARED_ATTEMPT)
        return WriteKey(key, int(self._clock() * 1000), uuid.uuid4().hex)
