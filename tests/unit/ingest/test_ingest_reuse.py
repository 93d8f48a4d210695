"""Unchanged content is not embedded again."""

from collections.abc import AsyncGenerator
from pathlib import Path

import numpy as np
import pytest

from kit.errors import Unimplemented
from services.ingest.documents.models import Status
from services.ingest.work.ledger import FailedTry
from tests.unit.ingest.world import World

PARTS = [f"Part {n} says that item {n} costs {n * 7} euros.\n\n" + f"It is item {n}. " * 30 for n in range(12)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def markdown(parts: list[str]) -> str:
    return "# Items\n\n" + "\n\n".join(f"## Item {n}\n\n{part}" for n, part in enumerate(parts))


def embedded(world: World) -> list[str]:
    return [text for call in world.embedder.calls for text in call]


async def test_reindex_of_an_unchanged_file_embeds_nothing(world: World) -> None:
    first = await world.ingest(await world.upload(markdown(PARTS), "items.md"))
    texts = world.index.searchable(first.document_id)
    world.embedder.calls.clear()
    second = await world.ingest(await world.reviser.reindex("local", first.document_id))
    assert world.embedder.calls == []
    assert second.report is not None
    assert second.report.reused_chunk_count == second.report.chunk_count == len(texts) > 10
    assert second.report.embed_batch_count == 0
    assert world.index.searchable(first.document_id) == texts


async def test_changed_file_embeds_only_what_changed(world: World) -> None:
    first = await world.ingest(await world.upload(markdown(PARTS), "items.md"))
    world.embedder.calls.clear()
    changed = [*PARTS[:5], "Something else altogether stands here now.", *PARTS[6:]]
    second = await world.ingest(await world.upload(markdown(changed), "items.md"))
    assert second.document_id == first.document_id
    assert second.report is not None
    assert 0 < len(embedded(world)) == second.report.chunk_count - second.report.reused_chunk_count <= 3
    assert "Something else altogether" in embedded(world)[0]


async def test_text_that_stands_twice_in_a_document_is_embedded_once(world: World) -> None:
    row = "name,price\n" + "".join(["Fastener with a very long name of its own,12\n"] * 40)
    done = await world.ingest(await world.upload(row, "rows.csv"))
    assert done.status is Status.READY
    assert len(embedded(world)) == len(set(embedded(world)))


async def test_another_embedding_model_embeds_everything_anew(world: World) -> None:
    first = await world.ingest(await world.upload(markdown(PARTS), "items.md"))
    texts = embedded(world)
    world.embedder.calls.clear()
    world.embedder.name = "another-embedder"
    second = await world.ingest(await world.reviser.reindex("local", first.document_id))
    assert second.report is not None
    assert second.report.reused_chunk_count == 0
    assert embedded(world) == texts


async def test_retriever_that_cannot_tell_its_vectors_costs_only_the_work(world: World) -> None:
    first = await world.ingest(await world.upload(markdown(PARTS), "items.md"))

    async def unknown(*_: str) -> AsyncGenerator[tuple[list[str], np.ndarray], None]:
        raise Unimplemented("an older retriever")
        yield

    world.index.vectors = unknown  # type: ignore[method-assign, assignment]
    second = await world.ingest(await world.reviser.reindex("local", first.document_id))
    assert second.status is Status.READY
    assert second.report is not None
    assert second.report.reused_chunk_count == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, 3.0])
async def test_vectors_that_no_index_of_cosines_can_hold_are_not_written(world: World, value: float) -> None:
    queued = await world.upload("Some text.")

    async def broken(texts: list[str]) -> tuple[np.ndarray, str]:
        return np.full((len(texts), 4), value, dtype=np.float32), world.embedder.name

    world.embedder.embed = broken  # type: ignore[method-assign, assignment]
    with pytest.raises(FailedTry) as raised:
        await world.ingest(queued)
    assert raised.value.error.reason == "EMBEDDING_MALFORMED"  # type: ignore[attr-defined]
    assert world.index.log == []


@pytest.mark.parametrize("shape", [(0, 4), (2, 4), (1, 0)])
async def test_vectors_that_are_too_few_or_too_many_are_not_written(world: World, shape: tuple[int, int]) -> None:
    queued = await world.upload("Some text.")

    async def broken(_: list[str]) -> tuple[np.ndarray, str]:
        return np.full(shape, 0.5, dtype=np.float32), world.embedder.name

    world.embedder.embed = broken  # type: ignore[method-assign, assignment]
    with pytest.raises(FailedTry) as raised:
        await world.ingest(queued)
    assert "for 1 texts" in str(raised.value.error)
    assert world.index.log == []
