"""A message store of a test's own, with its ledger."""

from pathlib import Path

import pytest

from kit.testing.nats import NatsServer
from tests.unit.ops.stores import Store


@pytest.fixture
async def store(nats: NatsServer, tmp_path: Path) -> Store:
    return Store(nats, tmp_path / "ledger.sqlite")
