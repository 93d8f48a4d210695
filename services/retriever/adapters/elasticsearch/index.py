"""Lexical index on an Elasticsearch cluster: BM25.

Requests of a tenant carry its id as routing, so that its chunks lie in one shard: a search asks one shard instead of all, and
scores compare. What is written is durable when the server answers, and searchable when a commit has refreshed the index.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import structlog
from elasticsearch import AsyncElasticsearch, BadRequestError

from services.retriever.adapters.elasticsearch.bulk import BulkDocument, index_all
from services.retriever.adapters.elasticsearch.connection import ElasticsearchConnection, IndexNotThere, reason_of
from services.retriever.adapters.elasticsearch.mapping import (
    FORMAT,
    STORED,
    TERMS,
    document,
    earlier_names,
    format_of,
    index_name,
    index_template,
)
from services.retriever.adapters.elasticsearch.query import (
    Json,
    at_positions,
    count_bodies,
    field_terms,
    matching,
    must_phrases,
    of_attempt,
    of_other_attempts,
    of_revision,
    search_body,
    writes_page,
)
from services.retriever.adapters.elasticsearch.statistics import SERVER_WEIGHTS, CorpusStatistics, Weights
from services.retriever.adapters.engine_thread import EngineThread
from services.retriever.adapters.group_commit import GroupCommit, Rest
from services.retriever.adapters.server_retry import OPEN_TIMEOUT_S
from services.retriever.analysis.analyser import Analysis
from services.retriever.concurrency import engine_deadline
from services.retriever.errors import EngineUnsupported, IndexUnavailable
from services.retriever.indexes import filters
from services.retriever.indexes.chunk_encoding import decode, point_id
from services.retriever.indexes.filters import Clause
from services.retriever.indexes.scoring import LENGTHS, Sought, scorer, sought_in
from services.retriever.indexes.stored_chunk import Candidate, StoredChunk
from services.retriever.models import IndexBatch, IndexedChunk, LexicalQuery, RevisionKey, SearchScope, WriteKey
from services.retriever.options import ElasticsearchOptions

_log = structlog.get_logger()
_CHUNKS_PER_CALL = 64
"""Folding and encoding them takes 20 to 50 ms, so it has a thread of its own."""
_MAX_WAITING = 256
_WRITES_PER_PAGE = 1000
_DELETE_ATTEMPTS = 3
_FURTHER = 20
"""Hits that are fetched beyond those that are wanted, for the server chooses them by weights of its own."""
REST = Rest(per_commit=1, short_per_commit=1, longest_s=0.5, enough=16)
"""A refresh takes 2 to 80 ms of a machine that is not ours: half of the time for refreshes is enough to share them. With the rest
of the embedded engines one to four writers wrote a tenth of what they write so, and sixteen no more."""

T = TypeVar("T")

_Ask = Callable[[Callable[[AsyncElasticsearch], Awaitable[Any]]], Awaitable[Any]]
"""`_read` or `_write`: who waits how long for an answer."""


class ElasticsearchIndex:
    """LexicalIndex on a cluster; any number of processes may use it. Open it with `ElasticsearchIndex.open`."""

    def __init__(self, options: ElasticsearchOptions) -> None:
        self._options = options
        self._name = index_name(options)
        self._server = ElasticsearchConnection(options)
        self._encoder = EngineThread("elasticsearch-encode", _MAX_WAITING)
        self._encoding = Analysis()
        self._querying = Analysis()
        self._is_ready = False
        self._preparing = asyncio.Lock()
        self._refresh = GroupCommit(self._refresh_now, REST)

    @classmethod
    async def open(cls, options: ElasticsearchOptions) -> "ElasticsearchIndex":
        """Checks the server's version and makes the index unless it is there. A server that does not answer yet is asked
        again with the first call. Raises EngineUnsupported."""
        index = cls(options)
        try:
            async with engine_deadline(OPEN_TIMEOUT_S):
                await index._prepare()
        except IndexUnavailable as error:
            _log.warning("lexical_index_unavailable", reason=error.reason, error=error.message)
        except BaseException:
            await index.close()
            raise
        return index

    async def close(self) -> None:
        """Closes the connections."""
        await self._server.close()
        await self._encoder.close()

    async def write(self, key: WriteKey, batch: IndexBatch) -> None:
        await self._prepare()
        for start in range(0, len(batch.chunks), _CHUNKS_PER_CALL):
            documents = await self._encoder.run(self._documents, key, batch.chunks[start : start + _CHUNKS_PER_CALL])
            try:
                await index_all(self._server, self._name, key.revision.tenant_id, documents)
            except IndexNotThere:
                self._is_ready = False
                raise

    async def commit(self, key: WriteKey, *, is_last: bool = False) -> int:
        await self._refresh(is_last=is_last)
        tenant_id = key.revision.tenant_id
        # With the patience of a write: a server that restarts here must not fail a revision whose writes would have waited.
        count = await self._count(tenant_id, of_revision(key.revision), self._write)
        if count == await self._count(tenant_id, of_attempt(key), self._write):
            return count  # the rule: no earlier attempt has left anything to delete
        await self._delete(tenant_id, of_other_attempts(key))
        return await self._count(tenant_id, of_revision(key.revision), self._write)

    async def count(self, key: RevisionKey) -> int:
        return await self._count(key.tenant_id, of_revision(key), self._read)

    async def delete_revision(self, key: RevisionKey) -> None:
        await self._refresh()  # what is to be deleted is found by a search
        await self._delete(key.tenant_id, of_revision(key))

    async def delete_document(self, tenant_id: str, document_id: str) -> None:
        await self._refresh()
        await self._delete(tenant_id, matching(filters.document_clauses(tenant_id, document_id)))

    async def fetch(self, tenant_id: str, chunk_ids: Sequence[str]) -> list[StoredChunk]:
        if not chunk_ids:
            return []
        ids = [str(point_id(tenant_id, chunk_id)) for chunk_id in chunk_ids]
        answer = await self._read(lambda client: client.mget(index=self._name, ids=ids, routing=tenant_id))
        for found in answer["docs"]:
            if "error" in found:
                raise IndexUnavailable(f"the lexical index at {self._server.url} failed: {reason_of(found)}")
        return [_stored(found) for found in answer["docs"] if found["found"]]

    async def fetch_ordinals(self, key: RevisionKey, ordinals: Sequence[int]) -> list[StoredChunk]:
        if not ordinals:
            return []
        (answer,) = await self._search(key.tenant_id, [at_positions(key, ordinals)])
        return [_stored(hit) for hit in answer["hits"]["hits"]]

    async def writes(self) -> list[WriteKey]:
        return await self._writes(None)

    async def revisions(self, tenant_id: str, document_id: str) -> set[RevisionKey]:
        await self._refresh()  # what was written is found by a search
        writes = await self._writes(matching(filters.document_clauses(tenant_id, document_id)))
        return {write.revision for write in writes}

    async def _writes(self, query: Json | None) -> list[WriteKey]:
        found: list[WriteKey] = []
        after: Json | None = None
        while True:
            body = writes_page(_WRITES_PER_PAGE, after, query)
            # With the patience of a write: each page passes over every chunk, and nobody waits for it.
            answer = await self._write(lambda client, body=body: client.search(index=self._name, **body))  # type: ignore[misc]
            self._check_whole(answer)
            page = answer["aggregations"]["writes"]
            found += [filters.parse_write_term(bucket["key"][filters.WRITE]) for bucket in page["buckets"]]
            after = page.get("after_key")
            if after is None:
                return found

    async def drop_outdated(self) -> None:
        names = earlier_names(self._options)
        await self._write(lambda client: client.indices.delete(index=names, ignore_unavailable=True))

    async def search(self, scope: SearchScope, queries: Sequence[LexicalQuery], limit: int) -> list[list[Candidate]]:
        clauses = filters.compile_scope(scope)
        if any(map(must_phrases, queries)):
            return await self._search_counted(scope.tenant_id, clauses, queries, limit)
        terms = field_terms(self._querying, queries)
        by_server = self._compiled(clauses, queries, SERVER_WEIGHTS, limit + _FURTHER)
        if not terms:
            return [[] for _ in queries]
        corpus, _ = count_bodies(clauses, terms)
        counted, *answers = await self._search(scope.tenant_id, [corpus, *(body for _, body in by_server if body)])
        statistics = CorpusStatistics(terms, counted)
        sought = [list(sought_in(self._querying, query, statistics.weight)) for query in queries]
        found = _in_places([body for _, body in by_server], answers)
        # Without a thread 60 hits would hold up the event loop for a millisecond or two.
        ranked = await asyncio.to_thread(_ranked, queries, sought, statistics, found)
        return [candidates[:limit] for candidates in ranked]

    async def _search_counted(
        self, tenant_id: str, clauses: Sequence[Clause], queries: Sequence[LexicalQuery], limit: int
    ) -> list[list[Candidate]]:
        """By weights that are counted first: what has to have phrases keeps the server's score."""
        terms = field_terms(self._querying, queries)
        bodies = count_bodies(clauses, terms) if terms else []
        statistics = CorpusStatistics(terms, *await self._search(tenant_id, bodies)) if terms else None
        compiled = self._compiled(clauses, queries, statistics.weights if statistics else SERVER_WEIGHTS, limit)
        answers = await self._search(tenant_id, [body for _, body in compiled if body])
        found = _in_places([body for _, body in compiled], answers)
        return await asyncio.to_thread(_ranked, queries, [sought for sought, _ in compiled], statistics, found)

    def _compiled(
        self, clauses: Sequence[Clause], queries: Sequence[LexicalQuery], weights: Weights, limit: int
    ) -> list[tuple[list[Sought], Json | None]]:
        """What each query looks for, and the body of its search."""
        sought = [list(sought_in(self._querying, query, weights.word)) for query in queries]
        return [
            (wanted, search_body(clauses, query, wanted, weights, limit))
            for query, wanted in zip(queries, sought, strict=True)
        ]

    async def _search(self, tenant_id: str, bodies: Sequence[Json]) -> list[Any]:
        """All in one request; one answer for each, whole or an error."""
        if not bodies:
            return []
        searches = [part for body in bodies for part in ({}, body)]
        answer = await self._read(lambda client: client.msearch(index=self._name, searches=searches, routing=tenant_id))
        for response in answer["responses"]:
            self._check_whole(response)
        return list(answer["responses"])

    def _check_whole(self, response: Any) -> None:
        """An answer from which a shard is missing, or that ran out of time, must not pass for the whole."""
        if "error" in response:
            raise IndexUnavailable(f"the lexical index at {self._server.url} failed: {reason_of(response)}")
        if response.get("timed_out") or response["_shards"]["failed"]:
            raise IndexUnavailable(
                f"the lexical index at {self._server.url} answered in part only: {response['_shards']['failed']} of "
                f"{response['_shards']['total']} shards failed, timed out: {response.get('timed_out', False)}",
                retry_after_s=1.0,
            )

    async def _count(self, tenant_id: str, query: Json, ask: _Ask) -> int:
        answer = await ask(lambda client: client.count(index=self._name, query=query, routing=tenant_id))
        self._check_whole(answer)
        return int(answer["count"])

    async def _delete(self, tenant_id: str, query: Json) -> None:
        """Chunks that are rewritten while they are deleted are skipped by the server: they are looked at again."""
        for _ in range(_DELETE_ATTEMPTS):
            answer = await self._write(
                lambda client: client.delete_by_query(
                    index=self._name,
                    query=query,
                    routing=tenant_id,
                    conflicts="proceed",
                    refresh=True,
                    wait_for_completion=True,
                )
            )
            if answer["failures"] or answer["timed_out"]:
                raise IndexUnavailable(
                    f"the lexical index at {self._server.url} could not delete all that it was asked to: "
                    f"{answer['failures'][:1]}; try again"
                )
            if not answer["version_conflicts"]:
                return
        raise IndexUnavailable(
            f"the lexical index at {self._server.url} could not delete chunks that are being written all the time; try again"
        )

    async def _refresh_now(self) -> None:
        answer = await self._write(lambda client: client.indices.refresh(index=self._name))
        self._check_whole(answer)

    def _documents(self, key: WriteKey, chunks: Sequence[IndexedChunk]) -> list[BulkDocument]:
        return [BulkDocument.of(*document(key, item, self._encoding)) for item in chunks]

    async def _read(self, call: Callable[[AsyncElasticsearch], Awaitable[T]]) -> T:
        await self._prepare()
        try:
            return await self._server.read(call)
        except IndexNotThere:
            self._is_ready = False  # removed by its operator: the next call makes it again
            raise

    async def _write(self, call: Callable[[AsyncElasticsearch], Awaitable[T]]) -> T:
        await self._prepare()
        try:
            return await self._server.write(call)
        except IndexNotThere:
            self._is_ready = False
            raise

    async def _prepare(self) -> None:
        """Makes sure, once, that the index is there and has this release's mapping."""
        if self._is_ready:
            return
        async with self._preparing:
            if self._is_ready:
                return
            try:
                await self._check_format()
            except IndexNotThere:
                await self._create()
                await self._check_format()
            self._is_ready = True

    async def _check_format(self) -> None:
        indexes: Any = await self._server.read(
            lambda client: client.indices.get(index=self._name, features=["mappings"])
        )
        for name, index in indexes.items():
            found = format_of(index.get("mappings", {}))
            if found != FORMAT:
                raise EngineUnsupported(
                    f"the index {name!r} on {self._server.url} has a mapping of format {found} and not {FORMAT}: remove it, so "
                    "that it is made and filled again, or set GROUNDWORK_ELASTICSEARCH_INDEX to another name"
                )

    async def _create(self) -> None:
        """Another process may be doing the same."""
        await self._server.write(lambda client: client.indices.put_index_template(**index_template(self._options)))
        try:
            await self._server.write(lambda client: client.indices.create(index=self._name))
        except IndexUnavailable as error:
            if not _is_there_already(error.__cause__):
                raise
        else:
            _log.info("lexical_index_created", index=self._name)


def _is_there_already(cause: BaseException | None) -> bool:
    return isinstance(cause, BadRequestError) and cause.error == "resource_already_exists_exception"


def _in_places(bodies: Sequence[Json | None], answers: Iterable[Any]) -> list[Any]:
    """An answer for each body, None for a query without one."""
    rest = iter(answers)
    return [next(rest) if body else None for body in bodies]


def _ranked(
    queries: Sequence[LexicalQuery],
    sought: Sequence[Sequence[Sought]],
    statistics: CorpusStatistics | None,
    answers: Sequence[Any],
) -> list[list[Candidate]]:
    """What was found, by its score among the collections; by the server's where phrases have to be there."""
    return [
        _candidates(answer, None if statistics is None or must_phrases(query) else _score(wanted, statistics))
        for query, wanted, answer in zip(queries, sought, answers, strict=True)
    ]


def _score(sought: Sequence[Sought], statistics: CorpusStatistics) -> Callable[[str], float]:
    return scorer(list(LENGTHS), sought, statistics.mean_lengths)


def _candidates(answer: Any, score: Callable[[str], float] | None) -> list[Candidate]:
    hits = answer["hits"]["hits"] if answer else []
    found = [Candidate(_stored(hit), score(hit["_source"][TERMS]) if score else float(hit["_score"])) for hit in hits]
    return sorted(found, key=lambda candidate: -candidate.score)


def _stored(hit: Any) -> StoredChunk:
    return decode(hit["_source"][STORED])
