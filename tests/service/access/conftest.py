"""The services that access is tried at, once for all tests of a module: none of them may change what Ann has."""

from collections.abc import AsyncIterator

import prometheus_client
import pytest
import pytest_asyncio

from kit.testing.nats import nats_server
from services.ingest import app as ingest
from tests.service.access.world import World, running_world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    metrics = ingest.Metrics
    with pytest.MonkeyPatch.context() as patch:
        # The API and the worker of ingest are in one process here: each with instruments of its own.
        patch.setattr(ingest, "Metrics", lambda: metrics(prometheus_client.CollectorRegistry()))
        async with nats_server() as nats, running_world(nats.url, tmp_path_factory.mktemp("world")) as world:
            yield world
