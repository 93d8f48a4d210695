"""Large documents pass through a worker in windows: what it has in memory is bounded, and nothing gets lost or mixed up."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.ingest.documents.models import Status
from services.ingest.errors import BadVectors, SpoolFull
from services.ingest.reading.pool.chunk_lines import ChunkLines
from services.ingest.spool import MEMORY_BYTES, ScratchFile
from services.ingest.work import pipeline, put_aside, reuse
from services.ingest.work.put_aside import KnownVectors, VectorRows
from tests.unit.ingest.world import MEMORY_BYTES as WORKER_BYTES
from tests.unit.ingest.world import World

PARTS = [
    f"Part {n} says that item {n} costs {n * 7} euros.\n\n" + f"It is item {n}. " * (5 + n % 25) for n in range(60)
]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Windows of seven chunks: every document here has many."""
    monkeypatch.setattr(reuse, "WINDOW_CHUNKS", 7)
    made = World(tmp_path)

    async def embed(texts: list[str]) -> tuple[np.ndarray, str]:
        """A vector tells its text."""
        made.embedder.calls.append(list(texts))
        await asyncio.sleep(0)
        angles = np.array([hash(text) % 1000 / 1000 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32), made.embedder.name

    made.embedder.embed = embed  # type: ignore[method-assign, assignment]
    return made


def markdown(parts: list[str]) -> str:
    return "# Items\n\n" + "\n\n".join(f"## Item {n}\n\n{part}" for n, part in enumerate(parts))


def assert_each_chunk_has_its_vector(world: World) -> None:
    (key,) = world.index.revisions
    _, vectors = world.index.stored_vectors[key]
    for chunk in world.index.revisions[key]:
        angle = hash(chunk.embedded_text) % 1000 / 1000
        assert vectors[chunk.content_hash] == pytest.approx([np.cos(angle), np.sin(angle)], abs=1e-5)


async def test_each_chunk_of_a_large_document_has_its_own_vector_in_reading_order(world: World) -> None:
    done = await world.ingest(await world.upload(markdown(PARTS), "items.md"))
    assert done.report is not None
    (key,) = world.index.revisions
    chunks = world.index.revisions[key]
    assert [chunk.ordinal for chunk in chunks] == list(range(done.report.chunk_count))
    assert done.report.chunk_count > 50
    assert done.report.token_count == sum(chunk.token_count for chunk in chunks)
    assert_each_chunk_has_its_vector(world)


async def test_changed_parts_of_a_large_document_are_embedded_and_the_others_keep_their_vectors(world: World) -> None:
    await world.ingest(await world.upload(markdown(PARTS), "items.md"))
    world.embedder.calls.clear()
    changed = [*PARTS[:20], "Something else.", *PARTS[21:50], "Moved all others by one.", *PARTS[50:]]
    second = await world.ingest(await world.upload(markdown(changed), "items.md"))
    assert second.report is not None
    embedded = [text for call in world.embedder.calls for text in call]
    assert second.report.reused_chunk_count + len(embedded) == second.report.chunk_count
    assert 2 <= len(embedded) < second.report.chunk_count
    assert_each_chunk_has_its_vector(world)


async def test_windows_in_hand_are_bounded_over_all_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "WINDOW_CHUNKS", 7)
    world = World(tmp_path)
    world.embedder.gate = asyncio.Event()
    documents = [await world.upload(markdown([f"{n} {part}" for part in PARTS]), f"{n}.md") for n in range(40)]
    in_hand = most = 0
    read = ChunkLines.read

    async def counted(self: ChunkLines, start: int, stop: int) -> object:
        nonlocal in_hand, most
        in_hand += stop - start
        most = max(most, in_hand)
        return await read(self, start, stop)

    monkeypatch.setattr(ChunkLines, "read", counted)
    monkeypatch.setattr(put_aside, "_MEMORY_PER_CHUNK", 256 * 1024)  # 16 MiB are enough for 64 chunks
    tasks = [asyncio.create_task(world.ingest(document)) for document in documents]
    await world.embedder.reached.wait()
    for _ in range(200):
        await asyncio.sleep(0)
    assert 40 <= most <= 64, "forty documents have sixty chunks each"
    monkeypatch.setattr(ChunkLines, "read", read)
    world.embedder.gate.set()
    done = await asyncio.gather(*tasks)
    assert all(document.status is Status.READY for document in done)


async def test_batches_for_the_index_wait_for_memory_as_windows_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reuse, "WINDOW_CHUNKS", 7)
    monkeypatch.setattr(pipeline, "_BATCH_CHUNKS", 7)
    monkeypatch.setattr(put_aside, "_MEMORY_PER_CHUNK", 256 * 1024)
    world = World(tmp_path)
    documents = [await world.upload(markdown([f"{n} {part}" for part in PARTS]), f"{n}.md") for n in range(40)]
    indexing = 0
    some, gate = asyncio.Event(), asyncio.Event()
    index = world.index.index

    async def slow(*args: Any, **kwargs: Any) -> None:
        nonlocal indexing
        indexing += 1
        some.set()
        await gate.wait()
        await index(*args, **kwargs)

    monkeypatch.setattr(world.index, "index", slow)
    tasks = [asyncio.create_task(world.ingest(document)) for document in documents]
    await some.wait()
    while world.memory.held + 7 * 256 * 1024 <= WORKER_BYTES:
        await asyncio.sleep(0)
    assert indexing <= WORKER_BYTES // (7 * 256 * 1024) < len(documents)
    gate.set()
    done = await asyncio.gather(*tasks)
    assert all(document.status is Status.READY for document in done)
    assert WORKER_BYTES / 2 < world.memory.most <= WORKER_BYTES
    assert world.memory.held == 0


async def test_heading_without_end_is_repeated_only_in_part(world: World) -> None:
    parts = "\n\n".join(f"Sentence {n} is a paragraph. " * 20 for n in range(30))
    done = await world.ingest(await world.upload("# " + "heading " * 20_000 + "\n\n" + parts, "long.md"))
    assert done.status is Status.READY
    (key,) = world.index.revisions
    assert max(len(name) for chunk in world.index.revisions[key] for name in chunk.heading_path) <= 300


async def test_document_with_too_many_chunks_fails_and_says_what_to_do(world: World) -> None:
    world.preparer.max_chunks = 20
    done = await world.ingest(await world.upload(markdown(PARTS), "items.md"))
    assert done.status is Status.FAILED
    assert done.error is not None
    assert done.error.reason == "TOO_MANY_CHUNKS"
    assert "GROUNDWORK_INGEST_MAX_CHUNKS" in done.error.message


@pytest.fixture
def scratch(tmp_path: Path) -> ScratchFile:
    return ScratchFile(tmp_path)


async def test_what_is_put_aside_comes_back_also_from_disk(scratch: ScratchFile) -> None:
    pieces = [bytes([n]) * (MEMORY_BYTES // 3) for n in range(7)]
    starts = [await scratch.append(piece) for piece in pieces]
    for start, piece in zip(starts, pieces, strict=True):
        assert await scratch.read(start, len(piece)) == piece
    scratch.close()


async def test_full_disk_is_said_while_something_is_put_aside(
    scratch: ScratchFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(offset: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(scratch._file, "write", lambda data: full(0, data))
    with pytest.raises(SpoolFull, match="No space left on device; free some space"):
        await scratch.append(b"x")
    scratch.close()


async def test_known_vectors_are_found_by_hash_wherever_they_stand(scratch: ScratchFile) -> None:
    known = KnownVectors(scratch)
    hashes = [f"{n * 7919 % 1000:064x}" for n in range(300)]
    rows = np.arange(600, dtype=np.float32).reshape(300, 2)
    for start in range(0, 300, 128):
        await known.add(hashes[start : start + 128], rows[start : start + 128])
    known.complete()
    asked = [hashes[5], "f" * 64, hashes[299], hashes[6], hashes[5], "0" * 63 + "g"]
    found = await known.find(asked)
    assert set(found) == {hashes[5], hashes[6], hashes[299]}
    assert {key: tuple(row) for key, row in found.items()} == {
        hashes[5]: (10.0, 11.0),
        hashes[6]: (12.0, 13.0),
        hashes[299]: (598.0, 599.0),
    }
    scratch.close()


async def test_vectors_of_another_length_are_refused(scratch: ScratchFile) -> None:
    rows = VectorRows(scratch)
    await rows.write(0, np.zeros((2, 4), np.float32))
    with pytest.raises(BadVectors, match="different lengths"):
        await rows.write(2, np.zeros((2, 5), np.float32))
    scratch.close()
