"""Dense index on Qdrant Edge: the Qdrant engine in this process, one shard on disk.

The binding holds the GIL during every call, so writes are cut into small pieces and nothing here ever calls `optimize()`,
which blocks for tens of seconds; a plain scan of 10 000 vectors takes 1-4 ms. Updates go to a write-ahead log first and are
replayed on load, so a SIGKILL loses nothing that was written. A commit syncs that log, which survives a power cut as well: 1 ms
without the GIL, where `flush()` writes all of the shard's files and takes 20-60 ms with it. The log shrinks at a flush only, so
there is one now and then.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import qdrant_edge as qe

from kit.errors import GroundworkError
from services.retriever.adapters.damaged_folder import environment_problem, is_locked, set_aside
from services.retriever.adapters.edge import shards
from services.retriever.adapters.edge.open_shard import OpenShard
from services.retriever.adapters.edge.points import (
    ORDINAL,
    STORED,
    all_of,
    any_of,
    revision_filter,
    scope_filter,
    to_points,
)
from services.retriever.adapters.engine_thread import EngineThread
from services.retriever.adapters.group_commit import IN_PROCESS, GroupCommit
from services.retriever.errors import EmbeddingSpaceMismatch, IndexUnavailable
from services.retriever.indexes import filters
from services.retriever.indexes.chunk_encoding import decode, point_id
from services.retriever.indexes.filters import AnyOf
from services.retriever.indexes.stored_chunk import Candidate, StoredChunk
from services.retriever.models import (
    EmbeddingSpace,
    IndexBatch,
    IndexedChunk,
    Languages,
    RevisionKey,
    SearchScope,
    Vector,
    Vectors,
    WriteKey,
)

_POINTS_PER_CALL = 32
"""About 4 ms of GIL at 384 dimensions: what a search may have to wait for."""
_UPDATES_PER_FLUSH = 4096
"""Half a second of replaying after a crash, and some 15 MB of log."""
_POINTS_PER_LOOK = 64
_LOOK_PAUSE_S = 0.005
"""A few milliseconds of GIL, and as long for others."""
_COPY_REST = 3.0
"""After a piece of a copy, in durations of the piece: a quarter of the GIL at most."""
_MAX_WRITES_LISTED = 1_000_000

T = TypeVar("T")


class EdgeIndex:
    """DenseIndex in a folder. One process at a time may have it open. Open it with `EdgeIndex.open`."""

    def __init__(
        self,
        path: Path,
        *,
        max_waiting: int = 256,
        suspected: asyncio.Event | None = None,
        removed: asyncio.Event | None = None,
    ) -> None:
        """`suspected`, `removed`: shared with other indexes that are looked after together."""
        self._path = path
        self._reader = EngineThread("qdrant-edge-read", max_waiting)
        self._writer = EngineThread("qdrant-edge-write", max_waiting)
        self._shard: OpenShard | None = None
        self._commit = GroupCommit(self._commit_now, IN_PROCESS)
        self._unflushed = 0
        self._preparing = asyncio.Lock()
        self.suspected = suspected or asyncio.Event()
        self.removed = removed or asyncio.Event()

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        max_waiting: int = 256,
        suspected: asyncio.Event | None = None,
        removed: asyncio.Event | None = None,
    ) -> "EdgeIndex":
        """Opens what is there; an empty folder becomes an index with the first vectors, and what is damaged is set aside. Raises
        IndexUnavailable."""
        index = cls(path, max_waiting=max_waiting, suspected=suspected, removed=removed)
        await index._writer.run(index._load)
        index._say_removed()
        return index

    async def close(self) -> None:
        """Flushes and lets go of the folder."""
        await self._reader.close()
        if self._shard is not None:
            await self._writer.run(self._shard.engine.flush)
            await self._writer.run(self._shard.engine.close)
            with contextlib.suppress(OSError):  # the next start does it as well
                # Under the name that other releases know, too.
                await self._writer.run(shards.settled_folder, self._path)
        await self._writer.close()

    @property
    def space(self) -> EmbeddingSpace | None:
        return self._shard.space if self._shard else None

    async def prepare(self, space: EmbeddingSpace) -> None:
        if self.space == space:
            return
        async with self._preparing:
            if self.space == space:
                return
            if self._shard is not None:
                raise EmbeddingSpaceMismatch(
                    f"the dense index holds vectors of {_named(self.space)} and was given vectors of {_named(space)}; "
                    "use one embedding model, or remove the index folder and index all documents again"
                )
            await self._writer.run(self._create, space)

    async def inspect(self) -> str | None:
        """The engine has no checksums: what it can read and decode is taken for whole."""
        offset: Any = None
        while self._shard is not None:
            request = qe.ScrollRequest(limit=_POINTS_PER_LOOK, offset=offset, with_payload=True, with_vector=True)
            try:
                _, offset = await self._reader.run(self._shard.engine.scroll, request)
            except IndexUnavailable:
                raise
            except Exception as error:
                return str(error)
            if offset is None:
                break
            await asyncio.sleep(_LOOK_PAUSE_S)
        return None

    async def start_anew(self, problem: str) -> None:
        async with self._preparing:
            shard, self._shard = self._shard, None
            await self._reader.run(int)  # who was asking the old one has had the answer
            await self._writer.run(self._set_aside, shard, problem)

    async def erase(self) -> None:
        async with self._preparing:
            shard = self._shard
            if shard is None or not shard.holds_removed:
                return
            try:
                await self._on(self._writer, lambda _: shard.begin_copy())
                offset, is_whole = None, False
                while not is_whole:
                    began = time.monotonic()
                    offset = await self._on(self._writer, partial(shard.copy_piece, offset, _POINTS_PER_CALL))
                    is_whole = offset is None
                    await asyncio.sleep(_COPY_REST * (time.monotonic() - began))
                replaced = await self._on(self._writer, lambda _: shard.switch())
            except BaseException:
                await self._writer.run_anyway(shard.give_up_copy)
                raise
            self._unflushed = 0
            await self._reader.run_anyway(int)  # calls that were given the engine before have had their answers
            await self._writer.run_anyway(shards.close_and_remove, *replaced)

    async def write(self, key: WriteKey, batch: IndexBatch) -> None:
        for start in range(0, len(batch.chunks), _POINTS_PER_CALL):
            part = slice(start, start + _POINTS_PER_CALL)
            await self._change(partial(_upsert, key, batch.chunks[part], batch.vectors[part]))
            self._unflushed += len(batch.chunks[part])

    async def commit(self, key: WriteKey, *, is_last: bool = False) -> int:
        revision = any_of(AnyOf(filters.REVISION, (filters.revision_term(key.revision),)))
        this_attempt = any_of(AnyOf(filters.WRITE, (filters.write_term(key),)))
        await self._commit(is_last=is_last)
        count, from_this_attempt = await self._counts(revision_filter(key.revision), qe.Filter(must=[this_attempt]))
        if count == from_this_attempt:
            return count  # the rule: no earlier attempt has left anything to delete
        await self._delete(qe.Filter(must=[revision], must_not=[this_attempt]))
        return await self.count(key.revision)

    async def count(self, key: RevisionKey) -> int:
        (count,) = await self._counts(revision_filter(key))
        return count

    async def _counts(self, *conditions: Any) -> list[int]:
        if self._shard is None:
            return [0 for _ in conditions]
        requests = [qe.CountRequest(exact=True, filter=condition) for condition in conditions]
        return await self._on(self._reader, lambda shard: [int(shard.count(request)) for request in requests])

    async def delete_revision(self, key: RevisionKey) -> None:
        await self._delete(revision_filter(key))

    async def delete_document(self, tenant_id: str, document_id: str) -> None:
        await self._delete(all_of(filters.document_clauses(tenant_id, document_id)))

    async def fetch(self, tenant_id: str, chunk_ids: Sequence[str]) -> list[StoredChunk]:
        if self._shard is None:
            return []
        ids = [point_id(tenant_id, chunk_id) for chunk_id in chunk_ids]
        records = await self._on(self._reader, lambda shard: shard.retrieve(ids, [STORED], False))
        return [decode(record.payload[STORED]) for record in records]

    async def fetch_ordinals(self, key: RevisionKey, ordinals: Sequence[int]) -> list[StoredChunk]:
        if self._shard is None or not ordinals:
            return []
        positions = qe.FieldCondition(ORDINAL, match=qe.MatchAny(list(ordinals)))
        request = qe.ScrollRequest(
            limit=len(ordinals),
            filter=qe.Filter(must=[*revision_filter(key).must, positions]),
            with_payload=[STORED],
            with_vector=False,
        )
        records, _ = await self._on(self._reader, lambda shard: shard.scroll(request))
        return [decode(record.payload[STORED]) for record in records]

    async def writes(self) -> list[WriteKey]:
        if self._shard is None:
            return []
        request = qe.FacetRequest(filters.WRITE, limit=_MAX_WRITES_LISTED, exact=True)
        response = await self._on(self._reader, lambda shard: shard.facet(request))
        return [filters.parse_write_term(hit.value) for hit in response.hits if hit.count]

    async def search(
        self, scope: SearchScope, vectors: Vectors, limit: int, languages: Languages | None = None
    ) -> list[list[Candidate]]:
        condition = scope_filter(scope, languages)
        if self._shard is None:
            return [[] for _ in vectors]
        queries = [
            qe.QueryRequest(limit=limit, query=qe.Query.Nearest(row.tolist()), filter=condition, with_payload=[STORED])
            for row in vectors
        ]
        answers = await self._query(queries)
        return [[Candidate(decode(point.payload[STORED]), point.score) for point in answer] for answer in answers]

    async def cosines(self, tenant_id: str, chunk_ids: Sequence[str], vectors: Vectors) -> list[dict[str, float]]:
        if self._shard is None or not chunk_ids:
            return [{} for _ in vectors]
        by_point = {point_id(tenant_id, chunk_id): chunk_id for chunk_id in chunk_ids}
        these = qe.Filter(must=[qe.HasIdCondition(set(by_point))])
        queries = [
            qe.QueryRequest(limit=len(by_point), query=qe.Query.Nearest(row.tolist()), filter=these) for row in vectors
        ]
        return [{by_point[point.id]: point.score for point in answer} for answer in await self._query(queries)]

    async def vectors(self, tenant_id: str, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        if self._shard is None or not chunk_ids:
            return {}
        by_point = {point_id(tenant_id, chunk_id): chunk_id for chunk_id in chunk_ids}
        records = await self._on(self._reader, lambda shard: shard.retrieve(list(by_point), False, True))
        return {by_point[record.id]: np.asarray(record.vector, dtype=np.float32) for record in records}

    async def _query(self, queries: list[Any]) -> list[list[Any]]:
        batch = qe.QueryBatchRequest(queries)
        return await self._on(self._reader, lambda shard: shard.query_batch(batch))

    async def _delete(self, condition: Any) -> None:
        if self._shard is None:
            return
        await self._change(lambda shard: shard.remove(condition))
        self._unflushed += 1
        await self._commit()

    async def _change(self, change: Callable[[OpenShard], None]) -> None:
        shard = self._shard
        try:
            await self._on(self._writer, lambda _: change(shard) if shard else None)
        finally:
            self._say_removed()

    def _say_removed(self) -> None:
        if self._shard is not None and self._shard.is_to_be_copied:
            self.removed.set()

    async def _commit_now(self) -> None:
        shard = self._shard
        try:
            if shard is not None:
                await self._writer.run(shard.sync)
        except OSError as error:
            raise IndexUnavailable(f"the dense index at {self._path} cannot be written: {error}") from error
        if self._unflushed >= _UPDATES_PER_FLUSH:
            self._unflushed = 0
            await self._on(self._writer, lambda shard: shard.flush())

    async def _on(self, thread: EngineThread, call: Callable[[Any], T]) -> T:
        if self._shard is None:
            raise IndexUnavailable(f"the dense index at {self._path} has just begun anew; try again", retry_after_s=1.0)
        try:
            return await thread.run(call, self._shard.engine)
        except GroundworkError:
            raise
        except Exception as error:  # the engine raises nothing more precise
            self.suspected.set()
            raise IndexUnavailable(f"the dense index at {self._path} failed: {error}") from error

    def _load(self) -> None:
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            is_in_use = any(is_locked(log) for log in shards.logs(self._path))
            folder = None if is_in_use else shards.settled_folder(self._path)
        except OSError as error:
            raise self._not_opened(str(error)) from error
        if folder is None:  # its copies must not be touched either
            raise self._not_opened("another process has it open")
        try:
            if folder.exists():
                self._shard = OpenShard.load(folder)
        except BaseException as error:  # also a panic of Rust, which is no Exception
            if not is_locked(folder / shards.LOG) and environment_problem(self._path) is None:
                set_aside(folder, "dense", str(error))
                return
            raise self._not_opened(str(error)) from error

    def _not_opened(self, problem: str) -> IndexUnavailable:
        return IndexUnavailable(
            f"the dense index at {self._path} cannot be opened ({problem}); check the folder's permissions and that no "
            "other process uses it, or remove it and index all documents again"
        )

    def _set_aside(self, shard: OpenShard | None, problem: str) -> None:
        with contextlib.suppress(Exception):
            if shard is not None:
                shard.engine.close()
        set_aside(shards.settled_folder(self._path), "dense", problem)

    def _create(self, space: EmbeddingSpace) -> None:
        shards.create(self._path, space)
        self._load()


def _upsert(key: WriteKey, chunks: Sequence[IndexedChunk], vectors: Vectors, shard: OpenShard) -> None:
    shard.upsert(list(to_points(key, chunks, vectors)))


def _named(space: EmbeddingSpace | None) -> str:
    return f"{space.model} ({space.dimension} dimensions)" if space else "no model"
