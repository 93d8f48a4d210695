"""Writing a revision: both indexes hold all of it on disk before that is acknowledged. It stays invisible until activated."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from kit.errors import DeadlineExceeded
from services.retriever.concurrency import KeyedLock, both, engine_deadline
from services.retriever.errors import IndexUnavailable, InvalidRequest, RevisionSuperseded
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.models import EmbeddingSpace, IndexBatch, Pointer, RevisionKey, WriteKey
from services.retriever.options import IndexingOptions
from services.retriever.ports import LexicalIndex
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.revisions.written import WrittenRevisions
from services.retriever.validation import check_batch, check_revision, check_scope_id

Place = Callable[[RevisionKey, Callable[[Pointer], Sequence[str]]], Awaitable[Pointer | None]]


@dataclass(frozen=True)
class IndexHeader:
    """What is about to be indexed."""

    key: RevisionKey
    collection_id: str
    embedding_model: str
    to_come: int | None = None
    """Revisions that the caller has under way and has not sent yet; None: not known."""


class RevisionWriter:
    """Streams revisions into both indexes. Memory is bounded by one batch a revision.

    A revision that is written again replaces what is there chunk by chunk, so an active one stays findable meanwhile. Two
    attempts at the same revision take turns. A stream that breaks leaves chunks that nobody sees: the next attempt or the
    reconciler removes them. `turns`: one for each revision, shared with who else writes it.
    """

    def __init__(
        self,
        dense: DenseSpaces,
        lexical: LexicalIndex,
        revisions: RevisionMap,
        written: WrittenRevisions,
        options: IndexingOptions,
        turns: KeyedLock,
        place: Place,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`place`: notes in whose spaces a visible revision lies, as RevisionSwitch does."""
        self._dense = dense
        self._lexical = lexical
        self._revisions = revisions
        self._written = written
        self._options = options
        self._clock = clock
        self._turns = turns
        self._place = place
        self._to_come: int | None = None
        self._being_written = 0
        self._slots = asyncio.Semaphore(options.max_concurrent_revisions)

    async def index(self, header: IndexHeader, batches: AsyncIterator[IndexBatch]) -> int:
        """Writes all batches durably and returns how many chunks they held.

        Raises InvalidRequest, EmbeddingSpaceMismatch where the engine has room for one model only, RevisionSuperseded (the document
        was deleted) or IndexUnavailable.
        """
        _check_header(header)
        self._refuse_deleted(header.key)
        async with self._turns(header.key), self._slots:
            self._written.forget(header.key)
            write_key = WriteKey(header.key, int(self._clock() * 1000), uuid.uuid4().hex)
            self._to_come = header.to_come
            self._being_written += 1
            try:
                expected = await self._write_all(write_key, header, batches)
            finally:
                self._being_written -= 1
            pointer = self._revisions.get(header.key.tenant_id, header.key.document_id)
            if pointer is not None and pointer.shows(header.key.revision_id):
                # The commit removes what lies in other spaces.
                await self._place(header.key, lambda _: (header.embedding_model,))
            await self._commit(write_key, expected)
            self._written.note(header.key, expected)
            return expected

    def _refuse_deleted(self, key: RevisionKey) -> None:
        pointer = self._revisions.get(key.tenant_id, key.document_id)
        if pointer is not None and pointer.deleted:
            raise RevisionSuperseded(
                f"document {key.document_id} has been deleted; upload it again under a new id",
                document_id=key.document_id,
            )

    async def _write_all(self, key: WriteKey, header: IndexHeader, batches: AsyncIterator[IndexBatch]) -> int:
        seen: set[str] = set()
        dimension: int | None = None
        space: EmbeddingSpace | None = None
        while (batch := await self._next(batches)) is not None:
            check_batch(batch, dimension)
            for item in batch.chunks:
                if item.chunk.chunk_id in seen:
                    raise InvalidRequest(f"chunk {item.chunk.chunk_id} was sent twice; chunk ids are unique")
                seen.add(item.chunk.chunk_id)
            if dimension is None:
                dimension = batch.vectors.shape[1]
                space = EmbeddingSpace(header.embedding_model, dimension)
                async with engine_deadline(self._options.engine_timeout_s):
                    await self._dense.prepare(space)
            await both(
                self._dense.write(key, replace(batch, space=space)),
                self._lexical.write(key, batch),
                timeout_s=self._options.engine_timeout_s,
            )
        return len(seen)

    async def _next(self, batches: AsyncIterator[IndexBatch]) -> IndexBatch | None:
        try:
            async with asyncio.timeout(self._options.batch_wait_s):
                return await anext(batches, None)
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"no batch arrived for {self._options.batch_wait_s:.0f} s; send the revision again"
            ) from error

    async def _commit(self, key: WriteKey, expected: int) -> None:
        is_last = self._to_come == 0 and not self._being_written
        dense_count, lexical_count = await both(
            self._dense.commit(key, is_last=is_last),
            self._lexical.commit(key, is_last=is_last),
            timeout_s=self._options.engine_timeout_s,
        )
        if not dense_count == lexical_count == expected:
            raise IndexUnavailable(
                f"of {expected} chunks of revision {key.revision.revision_id} the dense index kept {dense_count} and the "
                f"lexical index {lexical_count}; send the revision again"
            )


def _check_header(header: IndexHeader) -> None:
    check_revision(header.key)
    check_scope_id("collection_id", header.collection_id)
    if not header.embedding_model:
        raise InvalidRequest("the header names no embedding_model; say which model made the vectors")
