"""The two stores of threads, fake and real."""

import pytest

from kit.jetstream import Nats
from services.memory.adapters.nats import NatsThreadStore
from services.memory.ports import ThreadStore
from tests.unit.memory.fakes import MemoryThreadStore


@pytest.fixture
async def nats_store(jetstream: Nats) -> ThreadStore:
    return await NatsThreadStore.open(jetstream)


@pytest.fixture
def fake_store() -> ThreadStore:
    return MemoryThreadStore()
