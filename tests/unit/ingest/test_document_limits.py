"""How many documents a caller may upload."""

from pathlib import Path

import pytest

from kit.limits.errors import LimitReached
from kit.limits.rules import Limit, Per, Scope, What, Whose
from services.ingest.errors import UploadCorrupt
from tests.unit.ingest.world import TENANT, World

ANN = Whose(Scope.SUBJECT, TENANT, "ann")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.limit_rules.set(ANN, [Limit(What.DOCUMENTS, 2, Per.DAY), Limit(What.RUNS, 0, Per.DAY)])
    return world


async def test_upload_beyond_the_limit_is_refused_and_does_not_count(world: World) -> None:
    for letter in "ab":
        await world.upload(letter, name=f"{letter}.txt")
    for _ in range(2):
        with pytest.raises(LimitReached, match="you may use 2 documents a day") as refused:
            await world.upload("c", name="c.txt")
    assert "give back" not in refused.value.message
    assert list(world.counters.sums.values()) == [2]


async def test_upload_that_fails_or_is_repeated_with_its_key_does_not_count(world: World) -> None:
    with pytest.raises(UploadCorrupt):
        await world.upload("a", name="a.txt", sha256="0" * 64)
    for _ in range(3):
        await world.upload("a", name="a.txt", idempotency_key="same")
    await world.upload("b", name="b.txt")
    assert list(world.counters.sums.values()) == [2]
