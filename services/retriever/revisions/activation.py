"""The pointer flip: one compare-and-set makes a revision visible, or a document invisible, in both indexes at once."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from kit.errors import Aborted
from services.retriever.concurrency import KeyedLock, both
from services.retriever.errors import PointerConflict, RevisionIncomplete, RevisionSuperseded
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.models import Activation, Pointer, RevisionKey
from services.retriever.options import READ_TIMEOUT_S
from services.retriever.ports import LexicalIndex, RevisionStore
from services.retriever.revisions.removal import Remover
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.revisions.written import WrittenRevisions
from services.retriever.validation import check_activation, check_id, check_scope_id

_MAX_ATTEMPTS = 8
"""Writers of one document are few; who loses this often is in a loop, not in a race."""


class _NotVisible(Exception):
    """Another revision is visible, or none."""


class RevisionSwitch:
    """Activates revisions and deletes documents. Repeating either is harmless."""

    def __init__(
        self,
        dense: DenseSpaces,
        lexical: LexicalIndex,
        store: RevisionStore,
        revisions: RevisionMap,
        remover: Remover,
        written: WrittenRevisions,
        turns: KeyedLock,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._dense = dense
        self._lexical = lexical
        self._store = store
        self._revisions = revisions
        self._remover = remover
        self._written = written
        self._turns = turns
        self._clock = clock

    async def activate(self, activation: Activation) -> int:
        """Makes the revision visible; returns when it became so, in milliseconds since the epoch.

        Raises RevisionIncomplete, RevisionSuperseded, IndexUnavailable, or Unavailable when the store does not answer.
        """
        check_activation(activation)
        key = activation.key

        async def decide(current: Pointer | None) -> Pointer:
            if current is not None:
                if _is_already(current, activation):
                    return current
                _refuse_superseded(current, activation)
            await self._verify_complete(activation)
            return Pointer(
                key.revision_id,
                activation.number,
                activation.collection_id,
                activation.chunk_count,
                self._now_ms(),
                languages=activation.languages,
                embedding_model=await self._dense.model_of(key),
                newer_fields=current.newer_fields if current else {},
            )

        async with self._turns(key):
            before, after = await self._change(key.tenant_id, key.document_id, decide)
        if before is not None and before.revision_id != key.revision_id:
            self._remover.remove_revision(replace(key, revision_id=before.revision_id))
        return after.activated_at_ms

    async def delete(self, tenant_id: str, document_id: str) -> None:
        """Hides the document for good and has its chunks removed. An unknown one gets its tombstone all the same: a job
        that is still indexing it must not bring it back."""
        check_scope_id("tenant_id", tenant_id)
        check_id("document_id", document_id)

        async def decide(current: Pointer | None) -> Pointer:
            if current is None:
                return Pointer("", 0, "", 0, self._now_ms(), deleted=True)
            if current.deleted:
                return current
            return replace(
                current,
                revision_id="",
                chunk_count=0,
                activated_at_ms=self._now_ms(),
                deleted=True,
                languages=(),
                embedding_model="",
                copies=(),
            )

        await self._change(tenant_id, document_id, decide)
        self._remover.remove_document(tenant_id, document_id)

    async def place(self, key: RevisionKey, models: Callable[[Pointer], Sequence[str]]) -> Pointer | None:
        """Notes in whose spaces a visible revision lies: `models` of the pointer as it is stored, the first of them as the one that
        it came with. Returns the pointer; None when the revision is not visible any more."""

        async def decide(current: Pointer | None) -> Pointer:
            if current is None or not current.shows(key.revision_id):
                raise _NotVisible
            made_by, *copies = models(current)
            if (made_by, *copies) == current.models:
                return current
            return replace(current, embedding_model=made_by, copies=tuple(copies))

        try:
            _, after = await self._change(key.tenant_id, key.document_id, decide)
        except _NotVisible:
            return None
        return after

    async def _change(
        self, tenant_id: str, document_id: str, decide: Callable[[Pointer | None], Awaitable[Pointer]]
    ) -> tuple[Pointer | None, Pointer]:
        """Compare-and-set until it succeeds, deciding anew each time; returns the pointer before and after. The map knows
        the new one before the caller does, so that it reads its own write; of what it does not know, the store is not asked before
        it has refused."""
        is_new = self._revisions.get(tenant_id, document_id) is None
        for _ in range(_MAX_ATTEMPTS):
            stored = None if is_new else await self._store.get(tenant_id, document_id)
            is_new = False
            current = stored.pointer if stored else None
            wanted = await decide(current)
            if stored is None or wanted is not current:
                try:
                    stored = await self._store.put(tenant_id, document_id, wanted, stored.version if stored else None)
                except PointerConflict:
                    continue
            self._revisions.apply(stored)
            return current, wanted
        raise Aborted(f"the pointer of document {document_id} changes all the time; try again", document_id=document_id)

    async def _verify_complete(self, activation: Activation) -> None:
        if self._written.chunk_count(activation.key) == activation.chunk_count:
            return
        dense_count, lexical_count = await both(
            self._dense.count(activation.key), self._lexical.count(activation.key), timeout_s=READ_TIMEOUT_S
        )
        if not dense_count == lexical_count == activation.chunk_count:
            raise RevisionIncomplete(
                f"revision {activation.key.revision_id} should have {activation.chunk_count} chunks; the dense index has "
                f"{dense_count} and the lexical index {lexical_count}; index the revision again",
                document_id=activation.key.document_id,
            )

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _is_already(current: Pointer, activation: Activation) -> bool:
    return (
        not current.deleted
        and current.revision_id == activation.key.revision_id
        and current.number == activation.number
    )


def _refuse_superseded(current: Pointer, activation: Activation) -> None:
    document_id = activation.key.document_id
    if current.deleted:
        raise RevisionSuperseded(f"document {document_id} has been deleted; drop this job", document_id=document_id)
    if current.number >= activation.number:
        raise RevisionSuperseded(
            f"revision {activation.number} of document {document_id} cannot be activated: revision {current.number} is "
            "active; drop this job",
            document_id=document_id,
        )
