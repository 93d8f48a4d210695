"""The index of what is remembered of people: facts, and messages of their threads.

Indexes of their own hold it, behind the same ports as those of documents. Each text is a revision of one chunk, and the collection
that it lies in is its owner's: nobody else's search finds it.

What is lost here is made again: the memory service compares how many facts there are with how many it keeps.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

from kit.errors import GroundworkError
from kit.ranking.fusion import RankedList, convex_combination
from services.retriever.errors import IndexUnavailable
from services.retriever.indexes.similarity import Group
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.indexes.stored_chunk import Candidate
from services.retriever.models import (
    Chunk,
    Degradation,
    IndexBatch,
    IndexedChunk,
    LexicalQuery,
    MetadataCondition,
    RevisionKey,
    SearchScope,
    Strategy,
    Vectors,
    WriteKey,
)
from services.retriever.ports import Embedder, LexicalIndex, PassageEmbedder

_CANDIDATES = 60
"""Of each engine: as searches of documents ask for at least."""
_COUNTS_LIVE_S = 60.0
_AT_ONCE = 32
_LANGUAGES = ("en",)
"""All texts are analysed alike: they are short, and what language a name is in nobody can tell."""
COUNTED = ("fact",)
"""Sources whose texts are counted."""
_DENSE_WEIGHT, _LEXICAL_WEIGHT = 1.0, 1.0


@dataclass(frozen=True)
class Owner:
    """Whose it is: one subject of one tenant."""

    tenant_id: str
    subject: str

    @property
    def collection_id(self) -> str:
        """Where the owner's texts lie."""
        return f"memory-{hashlib.sha256(self.subject.encode()).hexdigest()[:32]}"


@dataclass(frozen=True)
class Memory:
    """A text that is remembered."""

    item_id: str
    text: str
    source: str
    group: str = ""
    at_us: int = 0
    context: str = ""
    """What was said before it. A search goes by these words, too; they are not kept."""

    @property
    def searched_text(self) -> str:
        """What both engines index."""
        return f"{self.text}\n{self.context}" if self.context else self.text


@dataclass(frozen=True)
class FoundMemory:
    """A text that was found."""

    memory: Memory
    score: float
    cosine: float | None = None


@dataclass(frozen=True)
class FoundMemories:
    """What a search found."""

    found: Sequence[FoundMemory]
    counts: dict[str, int]
    degraded: Sequence[Degradation] = ()


class MemoryIndex:
    """Holds what is remembered, and searches it."""

    def __init__(
        self,
        dense: DenseSpaces,
        lexical: LexicalIndex,
        embed_passages: PassageEmbedder,
        embed_queries: Embedder,
        *,
        embed_timeout_s: float,
        engine_timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._dense = dense
        self._lexical = lexical
        self._passages = embed_passages
        self._queries = embed_queries
        self._embed_timeout_s = embed_timeout_s
        self._engine_timeout_s = engine_timeout_s
        self._clock = clock
        self._counts: dict[str, tuple[float, dict[str, int]]] = {}

    async def put(self, owner: Owner, memories: Sequence[Memory], *, known_only: bool = False) -> None:
        """Adds texts, or puts them in the place of what has their ids. `known_only`: adds none."""
        if known_only:
            memories = [each for each in memories if await self._lexical.count(revision_of(owner, each))]
        if not memories:
            return
        space, vectors = await self._passages.embed_passages([each.searched_text for each in memories], "")
        await self._dense.prepare(space)
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(memory: Memory, row: Vectors) -> None:
            key = WriteKey(revision_of(owner, memory), time.time_ns() // 1_000_000, uuid4().hex)
            batch = IndexBatch([IndexedChunk(chunk_of(owner, memory), memory.searched_text)], row, space)
            async with slots:
                await asyncio.gather(self._dense.write(key, batch), self._lexical.write(key, batch))
                await asyncio.gather(self._dense.commit(key), self._lexical.commit(key))

        async with asyncio.TaskGroup() as group:
            for place, memory in enumerate(memories):
                group.create_task(one(memory, vectors[place : place + 1]))
        self._counts.pop(_counts_key(owner), None)

    async def remove(self, owner: Owner, item_ids: Sequence[str], groups: Sequence[str]) -> None:
        """Removes texts, and all of these groups, for good."""
        for group in groups:
            await self._remove_document(owner.tenant_id, _document(owner, "message", group))
        for item_id in item_ids:
            thread_id, is_message, _ = item_id.partition("/")
            source, group = ("message", thread_id) if is_message else ("fact", "")
            key = revision_of(owner, Memory(item_id, "", source, group))
            await asyncio.gather(self._dense.delete_revision(key), self._lexical.delete_revision(key))
        self._counts.pop(_counts_key(owner), None)

    async def search(
        self, owner: Owner, query_text: str, limit: int, source: str = "", strategy: Strategy = Strategy.HYBRID
    ) -> FoundMemories:
        """What fits the query best. Raises IndexUnavailable when no engine that is asked answers."""
        metadata = (MetadataCondition("source", (source,)),) if source else ()
        scope = SearchScope(owner.tenant_id, (owner.collection_id,), metadata=metadata)
        degraded: list[Degradation] = []
        by_meaning, by_words, counts = await asyncio.gather(
            self._by_meaning(scope, query_text, degraded) if strategy is not Strategy.LEXICAL else _nothing(),
            self._by_words(scope, query_text, degraded) if strategy is not Strategy.DENSE else _nothing(),
            self._count(owner),
        )
        if by_meaning is None and by_words is None:
            raise IndexUnavailable("the index of memories does not answer now", retry_after_s=1.0)
        return FoundMemories(_fused(by_meaning or [], by_words or [], limit), counts, degraded)

    async def _by_meaning(
        self, scope: SearchScope, query_text: str, degraded: list[Degradation]
    ) -> list[Candidate] | None:
        try:
            space, vectors = await self._queries.embed_queries([query_text], "", self._embed_timeout_s)
            async with asyncio.timeout(self._engine_timeout_s):
                return (await self._dense.search(scope, Group(space), vectors, _CANDIDATES))[0]
        except (GroundworkError, TimeoutError) as error:
            degraded.append(_lacking("dense", error, "What is remembered was looked up by words alone."))
            return None

    async def _by_words(
        self, scope: SearchScope, query_text: str, degraded: list[Degradation]
    ) -> list[Candidate] | None:
        try:
            async with asyncio.timeout(self._engine_timeout_s):
                return (
                    await self._lexical.search(scope, [LexicalQuery(query_text, languages=_LANGUAGES)], _CANDIDATES)
                )[0]
        except (GroundworkError, TimeoutError) as error:
            degraded.append(_lacking("lexical", error, "What is remembered was looked up by meaning alone."))
            return None

    async def _count(self, owner: Owner) -> dict[str, int]:
        """Texts of the sources that are counted; what is known of them is believed for a minute."""
        key, now = _counts_key(owner), self._clock()
        known = self._counts.get(key)
        if known is None or now - known[0] > _COUNTS_LIVE_S:
            counts = {
                source: len(await self._lexical.revisions(owner.tenant_id, _document(owner, source, "")))
                for source in COUNTED
            }
            if len(self._counts) > 10_000:
                self._counts.clear()
            known = self._counts[key] = (now, counts)
        return known[1]

    async def _remove_document(self, tenant_id: str, document_id: str) -> None:
        await asyncio.gather(
            self._dense.delete_document(tenant_id, document_id), self._lexical.delete_document(tenant_id, document_id)
        )


async def _nothing() -> None:
    """Of an engine that is not asked."""


def _fused(by_meaning: Sequence[Candidate], by_words: Sequence[Candidate], limit: int) -> list[FoundMemory]:
    lists = [
        RankedList([each.stored.chunk_id for each in by_meaning], [each.score for each in by_meaning], _DENSE_WEIGHT),
        RankedList(
            [each.stored.chunk_id for each in by_words], [each.score for each in by_words], _LEXICAL_WEIGHT, floor=0.0
        ),
    ]
    stored = {each.stored.chunk_id: each.stored for each in (*by_meaning, *by_words)}
    cosines = {each.stored.chunk_id: each.score for each in by_meaning}
    fused = convex_combination([each for each in lists if each.ids])
    best = list(fused.items())[:limit]
    return [FoundMemory(_memory(stored[chunk_id].chunk), score, cosines.get(chunk_id)) for chunk_id, score in best]


def _document(owner: Owner, source: str, group: str) -> str:
    return f"{owner.collection_id}.{source}.{hashlib.sha256(group.encode()).hexdigest()[:16]}"


def revision_of(owner: Owner, memory: Memory) -> RevisionKey:
    item = hashlib.sha256(memory.item_id.encode()).hexdigest()[:32]
    return RevisionKey(owner.tenant_id, _document(owner, memory.source, memory.group), item)


def chunk_of(owner: Owner, memory: Memory) -> Chunk:
    key = revision_of(owner, memory)
    chunk_id = hashlib.sha256(f"{owner.subject}\0{memory.item_id}".encode()).hexdigest()[:32]
    return Chunk(
        chunk_id,
        key.document_id,
        owner.collection_id,
        key.revision_id,
        0,
        "",
        memory.text,
        metadata={"source": memory.source, "item": memory.item_id, "group": memory.group, "at": str(memory.at_us)},
    )


def _memory(chunk: Chunk) -> Memory:
    said = chunk.metadata
    return Memory(said["item"], chunk.text, said["source"], said.get("group", ""), int(said.get("at", "0")))


def _counts_key(owner: Owner) -> str:
    return f"{owner.tenant_id}.{owner.collection_id}"


def _lacking(part: str, error: Exception, message: str) -> Degradation:
    reason = error.reason if isinstance(error, GroundworkError) else "INDEX_TOO_SLOW"
    return Degradation(part, reason, message)
