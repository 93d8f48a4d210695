"""Dense index on a Qdrant server or cluster.

One collection for each embedding space; an alias names the one in use, so that a retriever which starts finds out what it
holds, and vectors of two models never meet. Writes wait until they are applied and go through each shard's permanent leader
(ordering "strong"): a deletion cannot overtake the writing it follows. While that leader is down, its shard cannot be written
and jobs come back later; searches go on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import structlog
from qdrant_client import AsyncQdrantClient, models

from services.retriever.adapters.qdrant.connection import CollectionNotThere, QdrantConnection
from services.retriever.adapters.qdrant.schema import (
    STORED,
    all_of,
    at_positions,
    collection_name,
    collection_parameters,
    in_languages,
    of_attempt,
    of_other_attempts,
    of_revision,
    payload_indexes,
    points,
    space_of,
)
from services.retriever.adapters.server_retry import OPEN_TIMEOUT_S
from services.retriever.concurrency import engine_deadline
from services.retriever.errors import EmbeddingSpaceMismatch, IndexUnavailable
from services.retriever.indexes import filters
from services.retriever.indexes.chunk_encoding import decode, point_id
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
from services.retriever.options import READ_TIMEOUT_S, QdrantOptions

_log = structlog.get_logger()
_EXACT = models.SearchParams(exact=True)
_POINTS_PER_REQUEST = 64
"""About 1 MB of JSON and 3 ms of encoding, far below the server's limit of 32 MB even for the longest chunks."""
_READ_TIMEOUT_S = int(READ_TIMEOUT_S)
"""For the server to give a read up: nobody waits for it longer."""
_MAX_WRITES_LISTED = 1_000_000

T = TypeVar("T")

_Ask = Callable[[Callable[[AsyncQdrantClient], Awaitable[models.CountResult]]], Awaitable[models.CountResult]]
"""`_read` or `_write`: who waits how long for a count."""


@dataclass(frozen=True)
class _Collection:
    """The collection in use."""

    name: str
    space: EmbeddingSpace


class QdrantIndex:
    """DenseIndex on a server; any number of processes may use it. Open it with `QdrantIndex.open`."""

    def __init__(self, options: QdrantOptions) -> None:
        self._options = options
        self._server = QdrantConnection(options)
        self._held: _Collection | None = None
        self._preparing = asyncio.Lock()

    @classmethod
    async def open(cls, options: QdrantOptions) -> "QdrantIndex":
        """Checks the server's version and finds the collection in use. A server that does not answer yet is asked again with
        the first call. Raises EngineUnsupported."""
        index = cls(options)
        try:
            async with engine_deadline(OPEN_TIMEOUT_S):
                await index._current()
        except IndexUnavailable as error:
            _log.warning("dense_index_unavailable", reason=error.reason, error=error.message)
        except BaseException:
            await index.close()
            raise
        return index

    async def close(self) -> None:
        """Closes the connections."""
        await self._server.close()

    @property
    def space(self) -> EmbeddingSpace | None:
        return self._held.space if self._held else None

    async def prepare(self, space: EmbeddingSpace) -> None:
        async with self._preparing:
            held = await self._current()
            if held is not None and held.space != space:
                held = self._held = await self._find()  # its operator may have made room for another model
            if held is None:
                await self._create(space)
                held = await self._current()
            if held is None or held.space != space:
                raise EmbeddingSpaceMismatch(
                    f"the dense index at {self._server.url} holds vectors of {_named(held)} and was given vectors of "
                    f"{_named(_Collection('', space))}; use one embedding model, or remove the alias "
                    f"{self._options.collection!r} from the server and index all documents again"
                )

    async def write(self, key: WriteKey, batch: IndexBatch) -> None:
        held = await self._current()
        if held is None:
            raise IndexUnavailable(f"the dense index at {self._server.url} was removed; send the revision again")
        for start in range(0, len(batch.chunks), _POINTS_PER_REQUEST):
            part = slice(start, start + _POINTS_PER_REQUEST)
            await self._upsert(held.name, list(points(key, batch.chunks[part], batch.vectors[part])))

    async def commit(self, key: WriteKey, *, is_last: bool = False) -> int:  # noqa: ARG002 - what is written is there
        held = await self._current()
        if held is None:
            return 0
        # With the patience of a write: a server that restarts here must not fail a revision whose writes would have waited.
        count = await self._count(held.name, of_revision(key.revision), self._write)
        if count == await self._count(held.name, of_attempt(key), self._write):
            return count  # the rule: no earlier attempt has left anything to delete
        await self._delete(held.name, of_other_attempts(key))
        return await self._count(held.name, of_revision(key.revision), self._write)

    async def count(self, key: RevisionKey) -> int:
        held = await self._current()
        return await self._count(held.name, of_revision(key), self._read) if held else 0

    async def delete_revision(self, key: RevisionKey) -> None:
        if held := await self._current():
            await self._delete(held.name, of_revision(key))

    async def delete_document(self, tenant_id: str, document_id: str) -> None:
        if held := await self._current():
            await self._delete(held.name, all_of(filters.document_clauses(tenant_id, document_id)))

    async def fetch(self, tenant_id: str, chunk_ids: Sequence[str]) -> list[StoredChunk]:
        records = await self._retrieve(tenant_id, chunk_ids, with_vectors=False)
        return [_stored(record.payload) for record in records]

    async def vectors(self, tenant_id: str, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        chunk_of = {str(point_id(tenant_id, chunk_id)): chunk_id for chunk_id in chunk_ids}
        records = await self._retrieve(tenant_id, chunk_ids, with_vectors=True)
        return {chunk_of[str(record.id)]: np.asarray(record.vector, dtype=np.float32) for record in records}

    async def fetch_ordinals(self, key: RevisionKey, ordinals: Sequence[int]) -> list[StoredChunk]:
        held = await self._current()
        if held is None or not ordinals:
            return []
        records, _ = await self._read(
            lambda client: client.scroll(
                held.name,
                at_positions(key, ordinals),
                limit=len(ordinals),
                with_payload=[STORED],
                with_vectors=False,
                timeout=_READ_TIMEOUT_S,
            )
        )
        return [_stored(record.payload) for record in records]

    async def writes(self) -> list[WriteKey]:
        held = await self._current()
        if held is None:
            return []
        # With the patience of a write: this runs in the background and passes over every chunk.
        answer = await self._write(
            lambda client: client.facet(held.name, filters.WRITE, limit=_MAX_WRITES_LISTED, exact=True)
        )
        return [filters.parse_write_term(str(hit.value)) for hit in answer.hits if hit.count]

    async def search(
        self, scope: SearchScope, vectors: Vectors, limit: int, languages: Languages | None = None
    ) -> list[list[Candidate]]:
        scope_filter = in_languages(all_of(filters.compile_scope(scope)), languages)
        held = await self._current()
        if held is None:
            return [[] for _ in vectors]
        requests = [
            models.QueryRequest(query=row, filter=scope_filter, limit=limit, with_payload=[STORED], with_vector=False)
            for row in vectors.tolist()
        ]
        answers = await self._query(held.name, requests)
        return [
            [Candidate(_stored(point.payload), float(point.score)) for point in answer.points] for answer in answers
        ]

    async def cosines(self, tenant_id: str, chunk_ids: Sequence[str], vectors: Vectors) -> list[dict[str, float]]:
        held = await self._current()
        if held is None or not chunk_ids:
            return [{} for _ in vectors]
        chunk_of = {str(point_id(tenant_id, chunk_id)): chunk_id for chunk_id in chunk_ids}
        these = models.Filter(must=[models.HasIdCondition(has_id=list(chunk_of))])
        requests = [
            models.QueryRequest(
                query=row, filter=these, limit=len(chunk_of), params=_EXACT, with_payload=False, with_vector=False
            )
            for row in vectors.tolist()
        ]
        answers = await self._query(held.name, requests)
        return [{chunk_of[str(point.id)]: float(point.score) for point in answer.points} for answer in answers]

    async def find(self) -> None:
        """Finds out what the index holds, if that is not known yet. Raises IndexUnavailable."""
        await self._current()

    async def _current(self) -> _Collection | None:
        """The collection in use; None while nothing was ever written. Asks the server until there is one."""
        if self._held is None:
            self._held = await self._find()
        return self._held

    async def _find(self) -> _Collection | None:
        aliases = (await self._server.read(lambda client: client.get_aliases())).aliases
        names = [alias.collection_name for alias in aliases if alias.alias_name == self._options.collection]
        if not names:
            return None
        info = await self._server.read(lambda client: client.get_collection(names[0]))
        space = space_of(info.config.metadata)
        if space is None:
            raise IndexUnavailable(
                f"the alias {self._options.collection!r} on {self._server.url} names the collection {names[0]!r}, which was "
                "not made by Groundwork; set GROUNDWORK_QDRANT_COLLECTION to another name"
            )
        return _Collection(names[0], space)

    async def _create(self, space: EmbeddingSpace) -> None:
        """Each step may have been done before: by a process that was killed here, or by one that is doing the same now. The
        alias comes last, so that a collection in use is complete."""
        name = collection_name(self._options.collection, space)
        await self._create_collection(name, space)
        for field, schema in payload_indexes().items():
            await self._server.write(
                lambda client, field=field, schema=schema: client.create_payload_index(  # type: ignore[misc]
                    name, field, schema, wait=True, ordering=models.WriteOrdering.STRONG
                )
            )
        if await self._find() is None:
            alias = models.CreateAlias(collection_name=name, alias_name=self._options.collection)
            operation = models.CreateAliasOperation(create_alias=alias)
            await self._server.write(lambda client: client.update_collection_aliases([operation]))
        _log.info("dense_collection_created", collection=name, model=space.model, dimension=space.dimension)

    async def _create_collection(self, name: str, space: EmbeddingSpace) -> None:
        try:
            await self._server.write(
                lambda client: client.create_collection(name, **collection_parameters(space, self._options))
            )
        except IndexUnavailable:
            # Servers say 409 or, before 1.12, 400 when it exists; an attempt that timed out may have made it as well.
            if not await self._server.read(lambda client: client.collection_exists(name)):
                raise

    async def _upsert(self, collection: str, batch: list[models.PointStruct]) -> None:
        result = await self._write(
            lambda client: client.upsert(collection, batch, wait=True, ordering=models.WriteOrdering.STRONG)
        )
        self._check_applied(result, f"{len(batch)} points")

    async def _delete(self, collection: str, condition: models.Filter) -> None:
        selector = models.FilterSelector(filter=condition)
        result = await self._write(
            lambda client: client.delete(collection, selector, wait=True, ordering=models.WriteOrdering.STRONG)
        )
        self._check_applied(result, "a deletion")

    def _check_applied(self, result: models.UpdateResult, what: str) -> None:
        """A server that is too busy answers in time that it will do so later: nobody may count on that yet."""
        if result.status != models.UpdateStatus.COMPLETED:
            raise IndexUnavailable(
                f"the dense index at {self._server.url} took {what} and has not applied it yet ({result.status}); try again",
                retry_after_s=1.0,
            )

    async def _count(self, collection: str, condition: models.Filter, ask: _Ask) -> int:
        answer = await ask(lambda client: client.count(collection, condition, exact=True, timeout=_READ_TIMEOUT_S))
        return answer.count

    async def _query(self, collection: str, requests: list[models.QueryRequest]) -> list[models.QueryResponse]:
        return await self._read(lambda client: client.query_batch_points(collection, requests, timeout=_READ_TIMEOUT_S))

    async def _retrieve(self, tenant_id: str, chunk_ids: Sequence[str], *, with_vectors: bool) -> list[models.Record]:
        held = await self._current()
        if held is None or not chunk_ids:
            return []
        ids: list[models.ExtendedPointId] = [str(point_id(tenant_id, chunk_id)) for chunk_id in chunk_ids]
        with_payload = False if with_vectors else [STORED]
        return await self._read(
            lambda client: client.retrieve(
                held.name, ids, with_payload=with_payload, with_vectors=with_vectors, timeout=_READ_TIMEOUT_S
            )
        )

    async def _read(self, call: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        with self._forgetting_what_is_gone():
            return await self._server.read(call)

    async def _write(self, call: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        with self._forgetting_what_is_gone():
            return await self._server.write(call)

    @contextmanager
    def _forgetting_what_is_gone(self) -> Iterator[None]:
        try:
            yield
        except CollectionNotThere:
            self._held = None  # removed by its operator: the next call looks for what is there now
            raise


def _stored(payload: models.Payload | None) -> StoredChunk:
    return decode(str((payload or {})[STORED]))


def _named(held: _Collection | None) -> str:
    return f"{held.space.model} ({held.space.dimension} dimensions)" if held else "no model"
