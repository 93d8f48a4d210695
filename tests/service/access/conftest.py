"""The services that access is tried at."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.service.access.world import World, running_world
from tests.service.ingest.conftest import _own_metrics

__all__ = ["_own_metrics"]


@pytest.fixture
async def world(nats_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with running_world(nats_url, tmp_path) as world:
        yield world
