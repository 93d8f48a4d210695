"""Removing what no search may see any more: at once after a flip, and by the reconciler for what a crash left behind.

What is removed was chosen by the map, which may lag: the pointer as the store's leader has it decides, read just before.
"""

import asyncio
from dataclasses import dataclass

import structlog

from kit.errors import GroundworkError
from services.retriever.concurrency import KeyedLock, both
from services.retriever.models import RevisionKey
from services.retriever.options import REMOVAL_TIMEOUT_S
from services.retriever.ports import ChunkRemoval, RevisionStore
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.revisions.written import WrittenRevisions

_log = structlog.get_logger()
_MAX_QUEUED = 10_000


@dataclass(frozen=True)
class _Document:
    tenant_id: str
    document_id: str


class Remover:
    """Removes chunks in the background, one revision or document at a time, so that searches are not held up.

    What it cannot do now (queue full, engine or store down, process killed) the reconciler does later: chunks that are waiting
    for removal are invisible already.

    `turns`: one for each revision, so that none is activated between the look at its pointer and its removal.
    """

    def __init__(
        self,
        dense: ChunkRemoval,
        lexical: ChunkRemoval,
        store: RevisionStore,
        revisions: RevisionMap,
        written: WrittenRevisions,
        turns: KeyedLock,
    ) -> None:
        self._dense = dense
        self._lexical = lexical
        self._store = store
        self._revisions = revisions
        self._written = written
        self._turns = turns
        self._queue: asyncio.Queue[RevisionKey | _Document] = asyncio.Queue(_MAX_QUEUED)

    def remove_revision(self, key: RevisionKey) -> None:
        self._enqueue(key)

    def remove_document(self, tenant_id: str, document_id: str) -> None:
        self._enqueue(_Document(tenant_id, document_id))

    async def idle(self) -> None:
        """Returns when everything that was asked for so far has been tried."""
        await self._queue.join()

    async def run(self) -> None:
        """Works until cancelled."""
        while True:
            item = await self._queue.get()
            try:
                await self._remove(item)
            except GroundworkError as error:
                _log.warning(
                    "removal_failed",
                    tenant_id=item.tenant_id,
                    document_id=item.document_id,
                    reason=error.reason,
                    error=error.message,
                )
            finally:
                self._queue.task_done()

    def _enqueue(self, item: RevisionKey | _Document) -> None:
        try:
            self._queue.put_nowait(item)
        except asyncio.QueueFull:
            _log.warning("removal_postponed", tenant_id=item.tenant_id, document_id=item.document_id)

    async def _remove(self, item: RevisionKey | _Document) -> None:
        if isinstance(item, RevisionKey):
            async with self._turns(item):
                await self._remove_revision(item)
        elif await self._is_deleted(item):
            await both(
                self._dense.delete_document(item.tenant_id, item.document_id),
                self._lexical.delete_document(item.tenant_id, item.document_id),
                timeout_s=REMOVAL_TIMEOUT_S,
            )

    async def _remove_revision(self, key: RevisionKey) -> None:
        stored = await self._store.get(key.tenant_id, key.document_id)
        if stored is not None:
            self._revisions.apply(stored)
            if stored.pointer is None or stored.pointer.shows(key.revision_id):
                _log.warning(
                    "removal_refused", tenant_id=key.tenant_id, document_id=key.document_id, revision_id=key.revision_id
                )
                return
        self._written.forget(key)
        await both(self._dense.delete_revision(key), self._lexical.delete_revision(key), timeout_s=REMOVAL_TIMEOUT_S)

    async def _is_deleted(self, document: _Document) -> bool:
        stored = await self._store.get(document.tenant_id, document.document_id)
        return stored is not None and stored.pointer is not None and stored.pointer.deleted
