"""The double of an Elasticsearch server, and an index on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.retriever.adapters.elasticsearch.index import ElasticsearchIndex
from services.retriever.adapters.server_retry import RetryPolicy
from services.retriever.options import ElasticsearchOptions
from tests.doubles.elasticsearch import ElasticsearchServer, elasticsearch_server


@pytest.fixture
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetryPolicy, "wait_s", lambda self, failures, asked_for_s: 0.001)


@pytest.fixture
async def server() -> AsyncIterator[ElasticsearchServer]:
    async with elasticsearch_server() as double:
        yield double


@pytest.fixture
async def index(server: ElasticsearchServer) -> AsyncIterator[ElasticsearchIndex]:
    made = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
    server.requests.clear()
    yield made
    await made.close()
