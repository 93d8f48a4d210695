"""A store of many people's facts in a minute, in the data directory of a system that is stopped: records into the buckets of its
message store, texts and made-up vectors through the write ports of both indexes.

The vector index has the facts of a person as one revision instead of one each: a search looks at its points alone, and they are
written in batches.
"""

import asyncio
import hashlib
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.corpus import make_paragraphs
from bench.filling import clustered_unit_vectors
from kit.jetstream import connect
from kit.testing.nats import NatsServer
from services.memory.adapters.facts import NatsFactStore
from services.memory.facts.models import Fact, FactKind
from services.memory.models import Owner
from services.retriever.adapters.edge.spaces import EdgeSpaces
from services.retriever.adapters.tantivy.index import TantivyIndex
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.memories import memory_index
from services.retriever.models import EmbeddingSpace, IndexBatch, IndexedChunk, WriteKey

_WORDS = 14
_WRITTEN = 10_000
"""Sentences that are made up; beyond, they come again with another number."""
_AT_ONCE = 64
_HEAP_BYTES = 64_000_000
_USERS_PER_COMMIT = 50
_LEARNT_AT = datetime(2026, 1, 1, tzinfo=UTC)


def fill(
    data_dir: Path, subjects: Sequence[str], facts_each: int, model: str, centers: npt.NDArray[np.float32]
) -> None:
    """Gives each person so many facts, in the data directory of a system that is stopped."""
    facts = dict(zip(subjects, _facts(len(subjects), facts_each), strict=True))
    asyncio.run(_store(data_dir / "nats", facts))
    asyncio.run(_index(data_dir / "retriever" / "memories" / "retriever", facts, model, centers))


def _facts(users: int, each: int) -> Iterator[list[Fact]]:
    written = make_paragraphs(5, min(users * each, _WRITTEN), _WORDS)
    for user in range(users):
        yield [_fact(number, written[number % _WRITTEN]) for number in range(user * each, (user + 1) * each)]


def _fact(number: int, sentence: str) -> Fact:
    at = _LEARNT_AT + timedelta(seconds=number)
    fact_id = hashlib.sha256(str(number).encode()).hexdigest()[:32]
    return Fact(fact_id, f"{sentence} Note {number}.", FactKind.PROFILE, learnt_at=at, valid_from=at, said=sentence)


async def _store(store: Path, facts: dict[str, list[Fact]]) -> None:
    server = NatsServer(store)
    await server.start()
    try:
        async with connect(server.url, name="bench") as nats:
            records = await NatsFactStore.open(nats)
            slots = asyncio.Semaphore(_AT_ONCE)

            async def add(owner: Owner, fact: Fact) -> None:
                async with slots:
                    await records.add(owner, fact)

            for subject, known in facts.items():
                await asyncio.gather(*(add(Owner("local", subject), fact) for fact in known))
    finally:
        await server.stop()


async def _index(folder: Path, facts: dict[str, list[Fact]], model: str, centers: npt.NDArray[np.float32]) -> None:
    rng, space = np.random.default_rng(1), EmbeddingSpace(model, centers.shape[1])
    async with AsyncExitStack() as stack:
        lexical = await TantivyIndex.open(folder / "lexical", writer_heap_bytes=_HEAP_BYTES)
        stack.push_async_callback(lexical.close)
        spaces = await EdgeSpaces.open(folder / "dense", lambda index: index)
        stack.push_async_callback(spaces.close)
        dense = DenseSpaces(spaces)
        await dense.prepare(space)
        slots = asyncio.Semaphore(_AT_ONCE)

        async def write_words(key: WriteKey, chunk: IndexedChunk, row: npt.NDArray[np.float32]) -> None:
            async with slots:
                await lexical.write(key, IndexBatch([chunk], row, space))

        last: WriteKey | None = None
        for number, (subject, known) in enumerate(facts.items(), start=1):
            owner = memory_index.Owner("local", subject)
            memories = [memory_index.Memory(fact.fact_id, fact.text, "fact") for fact in known]
            chunks = [IndexedChunk(memory_index.chunk_of(owner, each), each.text) for each in memories]
            keys = [_key(owner, each) for each in memories]
            vectors = clustered_unit_vectors(rng, centers, len(known))
            await asyncio.gather(
                dense.write(keys[0], IndexBatch(chunks, vectors, space)),
                *(write_words(*each, vectors[:1]) for each in zip(keys, chunks, strict=True)),
            )
            last = keys[0]
            if not number % _USERS_PER_COMMIT or number == len(facts):
                await asyncio.gather(dense.commit(last), lexical.commit(last))


def _key(owner: memory_index.Owner, memory: memory_index.Memory) -> WriteKey:
    return WriteKey(memory_index.revision_of(owner, memory), time.time_ns() // 1_000_000, uuid.uuid4().hex)
