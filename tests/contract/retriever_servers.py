"""The server engines as the contract suites need them: over their HTTP doubles always, over real servers when
TEST_QDRANT_URL and TEST_ELASTICSEARCH_URL say where they are. Each test gets a collection and an index of its own."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from elasticsearch import AsyncElasticsearch
from qdrant_client import AsyncQdrantClient, models

from services.retriever.adapters.elasticsearch.index import ElasticsearchIndex
from services.retriever.adapters.elasticsearch.mapping import index_name
from services.retriever.adapters.qdrant.index import QdrantIndex
from services.retriever.options import ElasticsearchOptions, QdrantOptions
from tests.doubles.elasticsearch import elasticsearch_server
from tests.doubles.http_double import LOOPBACK
from tests.doubles.qdrant import qdrant_server


def server_url(variable: str) -> str:
    """The value of the environment variable; the test is skipped without it."""
    url = os.environ.get(variable)
    if not url:
        pytest.skip(f"set {variable} to the address of a server")
    return url


@asynccontextmanager
async def qdrant_over_double(host: str = LOOPBACK) -> AsyncIterator[QdrantIndex]:
    async with qdrant_server(host=host) as server:
        index = await QdrantIndex.open(QdrantOptions(server.url))
        yield index
        await index.close()


@asynccontextmanager
async def qdrant_over_real_server() -> AsyncIterator[QdrantIndex]:
    url, name = server_url("TEST_QDRANT_URL"), f"test-{uuid.uuid4().hex}"
    index = await QdrantIndex.open(QdrantOptions(url, collection=name))
    try:
        yield index
    finally:
        await index.close()
        await remove_collections(url, name)


async def remove_collections(url: str, name: str) -> None:
    """Removes the alias and its collections. The client must not compare versions: it warns of one that it does not know, from a
    thread, and the warning fails the next test."""
    client = AsyncQdrantClient(url=url, check_compatibility=False)
    removal = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=name))
    await client.update_collection_aliases([removal])
    for collection in (await client.get_collections()).collections:
        if collection.name.startswith(name):
            await client.delete_collection(collection.name)
    await client.close()


@asynccontextmanager
async def elasticsearch_over_double() -> AsyncIterator[ElasticsearchIndex]:
    async with elasticsearch_server() as server:
        index = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
        yield index
        await index.close()


@asynccontextmanager
async def elasticsearch_over_real_server() -> AsyncIterator[ElasticsearchIndex]:
    url = server_url("TEST_ELASTICSEARCH_URL")  # with credentials, if it wants them: https://user:password@host:9200
    options = ElasticsearchOptions((url,), index=f"test-{uuid.uuid4().hex}", replicas=0)
    index = await ElasticsearchIndex.open(options)
    try:
        yield index
    finally:
        await index.close()
        client = AsyncElasticsearch(url)
        await client.indices.delete(index=index_name(options))
        await client.indices.delete_index_template(name=options.index)
        await client.close()
