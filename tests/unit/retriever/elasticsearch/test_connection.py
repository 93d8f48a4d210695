"""Servers that are not what they should be, not there, or want credentials."""

from __future__ import annotations

import base64
import socket
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr

from services.retriever.adapters.elasticsearch import connection as elasticsearch_connection
from services.retriever.adapters.elasticsearch.index import ElasticsearchIndex
from services.retriever.errors import EngineUnsupported, IndexUnavailable
from services.retriever.options import ElasticsearchOptions
from tests.contract.retriever_index_contract import KEY, store
from tests.doubles.elasticsearch import ElasticsearchServer, elasticsearch_server, error_body
from tests.doubles.http_double import Failure


@dataclass(frozen=True)
class Refused:
    """A server that must not be used, and what is said about it."""

    version: str
    product: str
    says: str


@pytest.mark.parametrize(
    "case",
    [
        Refused("8.19.3", "Elasticsearch", "is version older than 9; this release works with 9.0 and later"),
        Refused("9.0.0", "OpenSearch", "is not Elasticsearch"),
    ],
)
async def test_other_servers_are_refused_at_start(case: Refused) -> None:
    async with elasticsearch_server(case.version, case.product) as server:
        with pytest.raises(EngineUnsupported, match=case.says):
            await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))


async def test_a_server_that_comes_up_late_is_found(server: ElasticsearchServer) -> None:
    server.failures += [Failure("GET /", 503, "upstream not ready", {"content-type": "text/html"})] * 2
    index = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
    assert server.indexes == set()
    assert await store(index, KEY, ["solar"]) == 1
    await index.close()


async def test_nobody_listening_names_the_setting_and_no_password() -> None:
    index = await ElasticsearchIndex.open(ElasticsearchOptions(("http://user:hidden@127.0.0.1:9",)))
    with pytest.raises(IndexUnavailable, match="GROUNDWORK_ELASTICSEARCH_URL") as caught:
        await index.count(KEY)
    assert "hidden" not in caught.value.message
    await index.close()


@pytest.mark.usefixtures("_short_pauses")
async def test_a_server_that_takes_connections_and_never_answers_is_said_to_be_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elasticsearch_connection, "READ_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index = ElasticsearchIndex(ElasticsearchOptions((f"http://127.0.0.1:{silent.getsockname()[1]}",)))
        with pytest.raises(IndexUnavailable, match=r"did not answer in time \(ConnectionTimeout\)") as caught:
            await index.count(KEY)
        assert "GROUNDWORK_ELASTICSEARCH_URL" not in caught.value.message
        await index.close()


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        ({"api_key": SecretStr("aWQ6a2V5")}, "ApiKey aWQ6a2V5"),
        ({"username": "elastic", "password": SecretStr("pw")}, "Basic " + base64.b64encode(b"elastic:pw").decode()),
    ],
)
async def test_credentials_are_sent(server: ElasticsearchServer, credentials: dict[str, Any], header: str) -> None:
    index = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,), **credentials))
    assert {request.headers["authorization"] for request in server.requests} == {header}
    await index.close()


@pytest.mark.parametrize(
    ("status", "says"),
    [(401, "check GROUNDWORK_ELASTICSEARCH_API_KEY"), (403, "privileges that docs/operations/search.md")],
)
async def test_refused_credentials_name_the_cure(
    server: ElasticsearchServer, index: ElasticsearchIndex, status: int, says: str
) -> None:
    server.failures.append(Failure("/_count", status, error_body("security_exception", "no")))
    with pytest.raises(IndexUnavailable, match=says):
        await index.count(KEY)


async def test_an_index_that_was_removed_is_made_again(server: ElasticsearchServer, index: ElasticsearchIndex) -> None:
    await store(index, KEY, ["solar"])
    server.lose_everything()
    with pytest.raises(IndexUnavailable, match="index_not_found_exception"):
        await index.count(KEY)
    assert await store(index, KEY, ["wind"]) == 1
