"""Lexical index on tantivy: BM25 in this process, one folder on disk.

One writer with one thread and a bounded heap serves all concurrent revisions; their commits are coalesced. A commit is
atomic (meta.json is renamed into place), so a SIGKILL leaves the last committed state and an index that opens.
"""

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import tantivy

from kit.errors import GroundworkError
from services.retriever.adapters.damaged_folder import environment_problem, is_locked, set_aside
from services.retriever.adapters.engine_thread import EngineThread
from services.retriever.adapters.free_room import require_room
from services.retriever.adapters.group_commit import IN_PROCESS, GroupCommit
from services.retriever.adapters.tantivy.documents import ORDINAL, STORED, TERMS, make_again, make_document, make_schema
from services.retriever.adapters.tantivy.files import problem_of, segments_with_removed
from services.retriever.adapters.tantivy.query import KEY, Compiled, QueryBuilder, key_term
from services.retriever.analysis.analyser import Analysis
from services.retriever.errors import IndexUnavailable
from services.retriever.indexes import filters
from services.retriever.indexes.chunk_encoding import decode, note_unreadable
from services.retriever.indexes.filters import AnyOf, NoneOf
from services.retriever.indexes.scoring import LENGTHS, scorer
from services.retriever.indexes.stored_chunk import Candidate, ChunkUnreadable, StoredChunk
from services.retriever.models import IndexBatch, IndexedChunk, LexicalQuery, RevisionKey, SearchScope, WriteKey

_FORMAT = "v8"
"""Folder of this schema and analysis. Change it with either: the index is then filled again from the dense one."""
_EARLIER_FORMATS = "v[1-7]*"
"""Folders of formats before, and what was set aside of them."""
_LOCK = ".tantivy-writer.lock"
_DOCUMENTS_PER_CALL = 32
_ERASE_REST = 3.0
"""After a piece of erasing, in durations of the piece: a quarter of the processor at most."""
_ERASE_SIZES = 2
"""Free room on the disk that erasing needs, in sizes of what is there: what is written again, and merges of it."""
_WRITER_ATTEMPTS = 20
_WRITER_PAUSE_S = 0.1

T = TypeVar("T")


class _Piece(NamedTuple):
    """Documents that are written again at once: of attempts, those at some positions or all."""

    writes: Sequence[WriteKey]
    positions: filters.Clause | None = None

    def clauses(self, writes: Iterable[WriteKey]) -> list[filters.Clause]:
        """That find the documents of these attempts."""
        these = AnyOf(filters.WRITE, tuple(filters.write_term(write) for write in writes))
        return [these, self.positions] if self.positions else [these]


class TantivyIndex:
    """LexicalIndex in a folder. One process at a time may have it open. Open it with `TantivyIndex.open`."""

    def __init__(self, path: Path, *, writer_heap_bytes: int = 64_000_000, max_waiting: int = 256) -> None:
        self._path = path / _FORMAT
        self._writer_heap_bytes = writer_heap_bytes
        self._reader = EngineThread("tantivy-read", max_waiting)
        self._writer = EngineThread("tantivy-write", max_waiting)
        self._analysis = Analysis()
        self._commit = GroupCommit(lambda: self._on(self._writer, self._commit_now), IN_PROCESS)
        self._index: Any = None
        self._index_writer: Any = None
        self.suspected = asyncio.Event()
        self.removed = asyncio.Event()
        self._is_changed = False
        """Whether there is a change that no search of this process sees yet."""

    @classmethod
    async def open(cls, path: Path, *, writer_heap_bytes: int = 64_000_000, max_waiting: int = 256) -> "TantivyIndex":
        """Opens what is there or creates it; what is damaged is set aside first. Raises IndexUnavailable."""
        index = cls(path, writer_heap_bytes=writer_heap_bytes, max_waiting=max_waiting)
        await index._writer.run(index._open)
        if segments_with_removed(index._path):
            index.removed.set()
        return index

    async def close(self) -> None:
        """Commits what is pending, waits for merges and lets go of the folder."""
        await self._reader.close()
        if self._index_writer is not None:
            await self._on(self._writer, self._close_writer)
        await self._writer.close()

    async def inspect(self) -> str | None:
        if self._index_writer is None:
            return "it could not be begun anew before"
        return await asyncio.to_thread(problem_of, self._path)

    async def start_anew(self, problem: str) -> None:
        await self._on(self._writer, self._start_anew, problem)

    async def erase(self) -> None:
        """A segment keeps a removed text until it is merged. So what is left in such segments is written again, and the segments,
        which are then empty, go."""
        holding = await self._on(self._writer, self._end_merges)
        if not holding:
            return
        await asyncio.to_thread(require_room, self._path, _ERASE_SIZES)
        for piece in _pieces(await self._counted_writes("")):
            began = time.monotonic()
            await self._on(self._writer, self._write_again, piece)
            await asyncio.sleep(_ERASE_REST * (time.monotonic() - began))
        await self._commit()
        if holding & await asyncio.to_thread(segments_with_removed, self._path):
            raise IndexUnavailable(f"removed texts are left in segments of {self._path}; they are written again later")

    async def write(self, key: WriteKey, batch: IndexBatch) -> None:
        for start in range(0, len(batch.chunks), _DOCUMENTS_PER_CALL):
            part = batch.chunks[start : start + _DOCUMENTS_PER_CALL]
            await self._on(self._writer, self._add, key, part)

    async def commit(self, key: WriteKey, *, is_last: bool = False) -> int:
        this_attempt = self._queries.matching([AnyOf(filters.WRITE, (filters.write_term(key),))])
        stale = tantivy.Query.boolean_query(
            [(tantivy.Occur.Must, self._revision_query(key.revision)), (tantivy.Occur.MustNot, this_attempt)]
        )
        if await self.count(key.revision):
            await self._delete(stale)  # in the same commit, so that an active revision is never there twice
            return await self.count(key.revision)
        await self._commit(is_last=is_last)
        count, from_this_attempt = await self._counts(self._revision_query(key.revision), this_attempt)
        if count == from_this_attempt:
            return count  # the rule: no earlier attempt has left anything to delete
        await self._delete(stale)
        return await self.count(key.revision)

    async def count(self, key: RevisionKey) -> int:
        (count,) = await self._counts(self._revision_query(key))
        return count

    async def _counts(self, *queries: Any) -> list[int]:
        def count_all() -> list[int]:
            searcher = self._index.searcher()
            return [int(searcher.search(query, 1, count=True).count) for query in queries]

        return await self._on(self._reader, count_all)

    async def delete_revision(self, key: RevisionKey) -> None:
        await self._delete(self._revision_query(key))

    async def delete_document(self, tenant_id: str, document_id: str) -> None:
        await self._delete(self._queries.matching(filters.document_clauses(tenant_id, document_id)))

    async def fetch(self, tenant_id: str, chunk_ids: Sequence[str]) -> list[StoredChunk]:
        if not chunk_ids:
            return []
        query = self._queries.matching(filters.chunk_clauses(tenant_id, chunk_ids))
        # A chunk id stands in the index twice while its revision is being replaced.
        return [candidate.stored for candidate in await self._found(query, 2 * len(chunk_ids))]

    async def fetch_ordinals(self, key: RevisionKey, ordinals: Sequence[int]) -> list[StoredChunk]:
        if not ordinals:
            return []
        positions = AnyOf(ORDINAL, tuple(map(str, ordinals)))
        query = self._queries.matching([AnyOf(filters.REVISION, (filters.revision_term(key),)), positions])
        return [candidate.stored for candidate in await self._found(query, 2 * len(ordinals))]

    async def writes(self) -> list[WriteKey]:
        return await self._writes("")

    async def revisions(self, tenant_id: str, document_id: str) -> set[RevisionKey]:
        return {write.revision for write in await self._writes(filters.document_prefix(tenant_id, document_id))}

    async def _writes(self, beginning: str) -> list[WriteKey]:
        """The attempts whose terms begin so."""
        return [write for write, _ in await self._counted_writes(beginning)]

    async def _counted_writes(self, beginning: str) -> list[tuple[WriteKey, int]]:
        """With the number of their chunks."""
        prefix, field = key_term(filters.WRITE, beginning), key_term(filters.WRITE, "")

        def count_all() -> list[tuple[WriteKey, int]]:
            terms = self._index.searcher().terms_with_prefix(KEY, prefix, tantivy.Query.all_query())
            return [(filters.parse_write_term(term.removeprefix(field)), count) for term, count in terms if count]

        return await self._on(self._reader, count_all)  # 100 000 terms take a moment to read, too

    async def drop_outdated(self) -> None:
        await asyncio.to_thread(_remove_all, self._path.parent.glob(_EARLIER_FORMATS))

    async def search(self, scope: SearchScope, queries: Sequence[LexicalQuery], limit: int) -> list[list[Candidate]]:
        clauses = filters.compile_scope(scope)
        return [await self._on(self._reader, self._search_text, clauses, query, limit) for query in queries]

    async def _found(self, query: Any, limit: int) -> list[Candidate]:
        return await self._on(self._reader, self._search, query, limit)

    async def _delete(self, query: Any) -> None:
        try:
            await self._on(self._writer, self._delete_now, query)
            await self._commit()
        except BaseException:
            self.removed.set()  # the next commit of another caller may make the removal
            raise
        if await asyncio.to_thread(segments_with_removed, self._path):
            self.removed.set()

    async def _on(self, thread: EngineThread, call: Callable[..., T], *args: Any) -> T:
        try:
            return await thread.run(call, *args)
        except GroundworkError:
            raise
        except Exception as error:  # also what a damaged record decodes to
            self.suspected.set()
            raise IndexUnavailable(f"the lexical index at {self._path} failed: {error}") from error

    def _open(self) -> None:
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            self._open_files()
        except BaseException as error:  # also a panic of Rust, which is no Exception
            self._index = self._index_writer = None
            problem = None if environment_problem(self._path) else problem_of(self._path)
            if problem is None or is_locked(self._path / _LOCK):
                raise IndexUnavailable(
                    f"the lexical index at {self._path} cannot be opened ({error}); check the folder's permissions and that "
                    "no other process uses it, or remove it and index all documents again"
                ) from error
            self._begin_anew(problem)

    def _open_files(self) -> None:
        self._schema = make_schema()
        self._queries = QueryBuilder(self._schema)
        index = tantivy.Index(self._schema, path=str(self._path))
        index.config_reader("manual")
        self._index_writer = index.writer(self._writer_heap_bytes, 1)
        index.reload()
        self._index = index

    def _start_anew(self, problem: str) -> None:
        # Its merges would go on in the folder of the new index.
        with contextlib.suppress(Exception):
            self._index_writer.rollback()
            self._index_writer.wait_merging_threads()
        self._index_writer = None
        self._begin_anew(problem)

    def _begin_anew(self, problem: str) -> None:
        set_aside(self._path, "lexical", problem)
        self._path.mkdir()
        self._open_files()

    def _close_writer(self) -> None:
        self._index_writer.commit()
        self._index_writer.wait_merging_threads()
        self._index_writer = None
        self._index = None

    def _delete_now(self, query: Any) -> None:
        self._is_changed = True
        self._index_writer.delete_documents_by_query(query)

    def _end_merges(self) -> set[str]:
        """Returns the segments with removed texts. What is merged from now on leaves out all that was removed."""
        self._commit_now()
        try:
            self._index_writer.wait_merging_threads()
        finally:
            self._index_writer = None
            self._index_writer = self._make_writer()
        return segments_with_removed(self._path)

    def _make_writer(self) -> Any:
        """Tries for a moment: without a writer the index would be taken for damaged."""
        for _ in range(_WRITER_ATTEMPTS - 1):
            with contextlib.suppress(RuntimeError, ValueError, OSError):
                return self._index.writer(self._writer_heap_bytes, 1)
            time.sleep(_WRITER_PAUSE_S)
        return self._index.writer(self._writer_heap_bytes, 1)

    def _write_again(self, piece: _Piece) -> None:
        """One removal and all that it removes, between which nothing is committed: a kill leaves the documents as they were, or
        here."""
        if self._is_changed:
            self._commit_now()  # else what was removed meanwhile would be found, and written again
        searcher = self._index.searcher()
        written, documents = [], []
        for write in piece.writes:
            try:
                found = _all(searcher, self._queries.matching(piece.clauses([write])))
                documents += [make_again(write, document) for document in found]
                written.append(write)
            except ChunkUnreadable as error:
                note_unreadable(error)  # it stays where it is, and so does what was removed from its segment
        if documents:
            self._index_writer.delete_documents_by_query(self._queries.matching(piece.clauses(written)))
        for document in documents:
            self._index_writer.add_document(document)

    def _add(self, key: WriteKey, chunks: Sequence[IndexedChunk]) -> None:
        self._is_changed = True
        for item in chunks:
            self._index_writer.add_document(make_document(key, item, self._analysis))

    def _commit_now(self) -> None:
        try:
            self._index_writer.commit()
        except (RuntimeError, ValueError, OSError):
            # A writer whose thread died (disk full) stays dead. What it had not committed is gone; the revisions it
            # belonged to miss their count and are refused before they are acknowledged.
            self._index_writer = None
            self._index_writer = self._make_writer()
            raise
        self._is_changed = False
        self._index.reload()

    def _search_text(self, clauses: Sequence[filters.Clause], query: LexicalQuery, limit: int) -> list[Candidate]:
        searcher = self._index.searcher()
        compiled = self._queries.search(searcher, clauses, query)
        if compiled is None:
            return []
        if not compiled.sought:
            return _hits(searcher, compiled.query, limit)
        return _scored_hits(searcher, compiled, limit)

    def _search(self, query: Any, limit: int) -> list[Candidate]:
        return _hits(self._index.searcher(), query, limit)

    def _revision_query(self, key: RevisionKey) -> Any:
        return self._queries.matching([AnyOf(filters.REVISION, (filters.revision_term(key),))])


def _pieces(counted: Iterable[tuple[WriteKey, int]]) -> Iterator[_Piece]:
    """Some 32 chunks each: several small attempts, or positions of a large one, whose last piece has what lies elsewhere."""
    small, size = [], 0
    for write, count in counted:
        if count > _DOCUMENTS_PER_CALL:
            for start in range(0, count, _DOCUMENTS_PER_CALL):
                yield _Piece([write], AnyOf(ORDINAL, tuple(map(str, range(start, start + _DOCUMENTS_PER_CALL)))))
            yield _Piece([write], NoneOf(ORDINAL, tuple(map(str, range(start + _DOCUMENTS_PER_CALL)))))
            continue
        small.append(write)
        size += count
        if size >= _DOCUMENTS_PER_CALL:
            yield _Piece(small)
            small, size = [], 0
    if small:
        yield _Piece(small)


def _all(searcher: Any, query: Any) -> list[Any]:
    """All documents that the query finds: what is removed by it must be written again."""
    found = searcher.search(query, _DOCUMENTS_PER_CALL, count=True)
    if found.count > len(found.hits):
        found = searcher.search(query, found.count, count=True)
    return [searcher.doc(address) for _, address in found.hits]


def _remove_all(folders: Iterable[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _hits(searcher: Any, query: Any, limit: int) -> list[Candidate]:
    hits = searcher.search(query, limit, count=False).hits
    return [Candidate(decode(searcher.doc(address).get_first(STORED).decode()), score) for score, address in hits]


def _scored_hits(searcher: Any, compiled: Compiled, limit: int) -> list[Candidate]:
    score = scorer(list(LENGTHS), compiled.sought, compiled.mean_lengths)
    found = []
    for _, address in searcher.search(compiled.query, limit, count=False).hits:
        document = searcher.doc(address)
        stored = decode(document.get_first(STORED).decode())
        found.append(Candidate(stored, score(document.get_first(TERMS).decode())))
    return sorted(found, key=lambda candidate: -candidate.score)
