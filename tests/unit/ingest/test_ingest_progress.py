"""What is told of a document's progress, however fast the machine is."""

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from services.ingest.documents.models import Status
from tests.unit.ingest.world import IN_FLIGHT, World

TEXT = "\n\n".join(f"Paragraph {n} says that item {n} costs {n * 7} euros. " * 4 for n in range(400))
"""Enough for a document whose progress is told: small ones are made at once."""


async def test_progress_is_told_while_embedding_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedder goes on when what it has done is told, so that no speed of a machine can skip it."""
    world = World(tmp_path)
    queued = await world.upload(TEXT)
    embed, told, calls = world.embedder.embed, [0.1], itertools.count(1)

    async def embed_when_told(texts: Sequence[str]) -> Any:
        if next(calls) > IN_FLIGHT and len(told) < 3:
            before = told[-1]
            while (progress := (await world.record(queued)).progress) <= before:
                await asyncio.sleep(0.01)
            told.append(progress)
        return await embed(texts)

    monkeypatch.setattr(world.embedder, "embed", embed_when_told)
    done = await world.ingest(queued)
    assert done.status is Status.READY
    assert len(told) >= 3
    assert told == sorted(told)
    assert told[-1] < 0.9, "embedding ends there"
