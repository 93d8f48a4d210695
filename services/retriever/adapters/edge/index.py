"""Dense index on Qdrant Edge: the Qdrant engine in this process, one shard on disk.

The binding holds the GIL during every call, so writes are cut into small pieces and nothing here ever calls `optimize()`,
which blocks for tens of seconds; a plain scan of 10 000 vectors takes 1-4 ms. Updates go to a write-ahead log first and are
replayed on load, so a SIGKILL loses nothing that was written. A commit syncs that log, which survives a power cut as well: 1 ms
without the GIL, where `flush()` writes all of the shard's files and takes 20-60 ms with it. The log shrinks at a flush only, so
there is one now and then.
"""

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import qdrant_edge as qe

from kit.errors import GroundworkError
from services.retriever.adapters.damaged_folder import environment_problem, is_locked, set_aside
from services.retriever.adapters.edge.points import (
    LANGUAGE,
    ORDINAL,
    PLACE,
    STORED,
    all_of,
    any_of,
    revision_filter,
    scope_filter,
    upsert,
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
    Languages,
    RevisionKey,
    SearchScope,
    Vector,
    Vectors,
    WriteKey,
)

_SHARD = "shard-v3"
"""Folder of this payload and these vectors. Change it with either: documents must then be indexed again."""
_BEING_CREATED = "shard.creating"
_SPACE_FILE = "space.json"
_DATATYPE = qe.VectorStorageDatatype.Float16
"""Half of the memory and disk, and a scan of 60 000 takes 10 ms, not 13. A cosine is off by 0.0001 at most."""
_POINTS_PER_CALL = 32
"""About 4 ms of GIL at 384 dimensions: what a search may have to wait for."""
_UPDATES_PER_FLUSH = 4096
"""Half a second of replaying after a crash, and some 15 MB of log."""
_POINTS_PER_LOOK = 64
_LOOK_PAUSE_S = 0.005
"""A few milliseconds of GIL, and as long for others."""
_LOG = "wal"
_MAX_WRITES_LISTED = 1_000_000

T = TypeVar("T")


class EdgeIndex:
    """DenseIndex in a folder. One process at a time may have it open. Open it with `EdgeIndex.open`."""

    def __init__(self, path: Path, *, max_waiting: int = 256, suspected: asyncio.Event | None = None) -> None:
        """`suspected`: shared with other indexes that are looked after together."""
        self._path = path
        self._reader = EngineThread("qdrant-edge-read", max_waiting)
        self._writer = EngineThread("qdrant-edge-write", max_waiting)
        self._shard: Any = None
        self._space: EmbeddingSpace | None = None
        self._commit = GroupCommit(self._commit_now, IN_PROCESS)
        self._unflushed = 0
        self._preparing = asyncio.Lock()
        self.suspected = suspected or asyncio.Event()

    @classmethod
    async def open(cls, path: Path, *, max_waiting: int = 256, suspected: asyncio.Event | None = None) -> "EdgeIndex":
        """Opens what is there; an empty folder becomes an index with the first vectors, and what is damaged is set aside. Raises
        IndexUnavailable."""
        index = cls(path, max_waiting=max_waiting, suspected=suspected)
        await index._writer.run(index._load)
        return index

    async def close(self) -> None:
        """Flushes and lets go of the folder."""
        await self._reader.close()
        if self._shard is not None:
            await self._writer.run(self._shard.flush)
            await self._writer.run(self._shard.close)
        await self._writer.close()

    @property
    def space(self) -> EmbeddingSpace | None:
        return self._space

    async def prepare(self, space: EmbeddingSpace) -> None:
        async with self._preparing:
            if self._space == space:
                return
            if self._shard is not None:
                raise EmbeddingSpaceMismatch(
                    f"the dense index holds vectors of {_named(self._space)} and was given vectors of {_named(space)}; "
                    "use one embedding model, or remove the index folder and index all documents again"
                )
            await self._writer.run(self._create, space)

    async def inspect(self) -> str | None:
        """The engine has no checksums: what it can read and decode is taken for whole."""
        offset: Any = None
        while self._shard is not None:
            request = qe.ScrollRequest(limit=_POINTS_PER_LOOK, offset=offset, with_payload=True, with_vector=True)
            try:
                _, offset = await self._reader.run(self._shard.scroll, request)
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
            shard, self._shard, self._space = self._shard, None, None
            await self._reader.run(int)  # who was asking the old one has had the answer
            await self._writer.run(self._set_aside, shard, problem)

    async def write(self, key: WriteKey, batch: IndexBatch) -> None:
        for start in range(0, len(batch.chunks), _POINTS_PER_CALL):
            part = slice(start, start + _POINTS_PER_CALL)
            await self._on(self._writer, upsert(key, batch.chunks[part], batch.vectors[part]))
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
        operation = qe.UpdateOperation.delete_points_by_filter(condition)
        await self._on(self._writer, lambda shard: shard.update(operation))
        self._unflushed += 1
        await self._commit()

    async def _commit_now(self) -> None:
        try:
            await self._writer.run(_sync, self._path / _SHARD / _LOG)
        except OSError as error:
            raise IndexUnavailable(f"the dense index at {self._path} cannot be written: {error}") from error
        if self._unflushed >= _UPDATES_PER_FLUSH:
            self._unflushed = 0
            await self._on(self._writer, lambda shard: shard.flush())

    async def _on(self, thread: EngineThread, call: Callable[[Any], T]) -> T:
        if self._shard is None:
            raise IndexUnavailable(f"the dense index at {self._path} has just begun anew; try again", retry_after_s=1.0)
        try:
            return await thread.run(call, self._shard)
        except GroundworkError:
            raise
        except Exception as error:  # the engine raises nothing more precise
            self.suspected.set()
            raise IndexUnavailable(f"the dense index at {self._path} failed: {error}") from error

    def _load(self) -> None:
        shutil.rmtree(self._path / _BEING_CREATED, ignore_errors=True)
        folder = self._path / _SHARD
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            if not folder.exists():
                return
            self._space = EmbeddingSpace(**json.loads((folder / _SPACE_FILE).read_text()))
            self._shard = qe.EdgeShard.load(str(folder))
        except BaseException as error:  # also a panic of Rust, which is no Exception
            self._space = None
            if not is_locked(folder / _LOG) and environment_problem(self._path) is None:
                set_aside(folder, "dense", str(error))
                return
            raise IndexUnavailable(
                f"the dense index at {self._path} cannot be opened ({error}); check the folder's permissions and that no "
                "other process uses it, or remove it and index all documents again"
            ) from error

    def _set_aside(self, shard: Any, problem: str) -> None:
        with contextlib.suppress(Exception):
            shard.close()
        set_aside(self._path / _SHARD, "dense", problem)

    def _create(self, space: EmbeddingSpace) -> None:
        """Builds the shard beside its place and renames it there, so that a kill leaves a whole index or none."""
        folder = self._path / _BEING_CREATED
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        vectors = qe.EdgeVectorParams(size=space.dimension, distance=qe.Distance.Dot, datatype=_DATATYPE)
        shard = qe.EdgeShard.create(str(folder), qe.EdgeConfig(vectors=vectors))
        for field in (*filters.KEYWORD_FIELDS, PLACE, LANGUAGE):
            shard.update(qe.UpdateOperation.create_field_index(field, qe.PayloadSchemaType.Keyword))
        for field in filters.NUMERIC_FIELDS:
            shard.update(qe.UpdateOperation.create_field_index(field, qe.PayloadSchemaType.Integer))
        shard.flush()
        shard.close()
        (folder / _SPACE_FILE).write_text(json.dumps({"model": space.model, "dimension": space.dimension}))
        folder.rename(self._path / _SHARD)
        self._load()


def _sync(folder: Path) -> None:
    """Has the disk keep the files of a folder, and the folder itself: new files are entries of it."""
    while not all(_is_synced(path) for path in (*folder.iterdir(), folder)):
        pass  # the log renamed a segment after it was listed (a thread of its own prepares them): under its new name it is due


def _is_synced(path: Path) -> bool:
    """False when nothing has this name any more."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return True


def _named(space: EmbeddingSpace | None) -> str:
    return f"{space.model} ({space.dimension} dimensions)" if space else "no model"
