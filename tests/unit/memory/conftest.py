"""The two stores of threads, fake and real."""

import pytest

from kit.jetstream import Nats
from services.memory.adapters.facts import NatsFactStore
from services.memory.adapters.nats import NatsThreadStore
from services.memory.facts.ports import FactStore
from services.memory.ports import ThreadStore
from tests.unit.memory.fakes import MemoryThreadStore


@pytest.fixture
async def nats_store(jetstream: Nats) -> ThreadStore:
    return await NatsThreadStore.open(jetstream)


@pytest.fixture
def fake_store() -> ThreadStore:
    return MemoryThreadStore()


@pytest.fixture
async def nats_fact_store(jetstream: Nats) -> FactStore:
    return await NatsFactStore.open(jetstream)
