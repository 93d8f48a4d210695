"""The retriever on the cluster's engines, each chosen by a setting of its own. The servers are HTTP doubles."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kit.testing.harness import free_port, running_service
from services.retriever.app import run
from services.retriever.errors import EngineUnsupported
from services.retriever.settings import RetrieverSettings
from tests.doubles.elasticsearch import ElasticsearchServer, elasticsearch_server
from tests.doubles.http_double import Failure
from tests.doubles.qdrant import QdrantServer, qdrant_server
from tests.service.retriever.conftest import Retriever, retriever_as


@pytest.fixture
async def qdrant() -> AsyncIterator[QdrantServer]:
    async with qdrant_server() as server:
        yield server


@pytest.fixture
async def elasticsearch() -> AsyncIterator[ElasticsearchServer]:
    async with elasticsearch_server() as server:
        yield server


@pytest.mark.parametrize("engines", [("qdrant",), ("elasticsearch",), ("qdrant", "elasticsearch")], ids="+".join)
async def test_either_engine_may_be_a_server(
    settings: RetrieverSettings, qdrant: QdrantServer, elasticsearch: ElasticsearchServer, engines: tuple[str, ...]
) -> None:
    urls = {"qdrant_url": qdrant.url, "elasticsearch_url": elasticsearch.url}
    chosen = settings.model_copy(update={name: url for name, url in urls.items() if name.split("_")[0] in engines})
    async with running_service(run, chosen) as address, retriever_as(address, "local") as local:
        await local.publish("r1", ["solar panels", "wind turbines"])
        best = (await local.search("solar panels", explain=True)).hits[0]
        assert best.chunk.text == "solar panels"
        assert (best.explanation.lexical_rank, best.explanation.dense_rank) == (1, 1)
    assert bool(qdrant.asked("PUT", "/points")) == ("qdrant" in engines)
    assert bool(elasticsearch.asked("PUT", "/_bulk")) == ("elasticsearch" in engines)


async def test_replicas_share_the_engines_and_one_goes_on_when_an_engine_fails(
    settings: RetrieverSettings, qdrant: QdrantServer, elasticsearch: ElasticsearchServer
) -> None:
    servers = {"qdrant_url": qdrant.url, "elasticsearch_url": elasticsearch.url}
    first = settings.model_copy(update=servers)
    second = settings.model_copy(update={**servers, "grpc_address": f"127.0.0.1:{free_port()}"})
    async with (
        running_service(run, first) as one,
        running_service(run, second) as two,
        retriever_as(one, "local") as writer,
        retriever_as(two, "local") as reader,
    ):
        await writer.publish("r1", ["solar panels", "wind turbines"])
        assert (await _found_by(reader, "solar panels"))[0] == "solar panels"
        elasticsearch.failures += [Failure("/_msearch", 503, "down", {"content-type": "text/plain"})] * 2
        response = await reader.search("wind turbines", no_cache=True)
        assert [(part.part, part.reason) for part in response.degraded] == [("lexical", "INDEX_UNAVAILABLE")]
        assert response.hits[0].chunk.text == "wind turbines"


async def _found_by(reader: Retriever, query_text: str) -> list[str]:
    """Asks until the replica's watch has told it of the revision."""
    while not (texts := await reader.texts(query_text)):
        pass
    return texts


async def test_a_server_of_the_wrong_version_keeps_the_retriever_from_starting(settings: RetrieverSettings) -> None:
    async with qdrant_server("1.9.0") as old:
        with pytest.raises(ExceptionGroup) as caught:
            await run(settings.model_copy(update={"qdrant_url": old.url}))
    (error,) = caught.value.exceptions
    assert isinstance(error, EngineUnsupported)
    assert "is version 1.9.0; this release works with 1.16 and later 1.x" in error.message
