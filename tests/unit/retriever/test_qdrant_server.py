"""What the adapter says to a Qdrant server, word for word, and what it makes of the server's refusals. The contract suite
proves what the requests mean."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from kit.deadline import set_remaining
from services.retriever.adapters import server_retry
from services.retriever.adapters.qdrant import connection as qdrant_connection
from services.retriever.adapters.qdrant.index import QdrantIndex
from services.retriever.adapters.qdrant.schema import collection_name
from services.retriever.adapters.server_retry import RetryPolicy
from services.retriever.errors import EmbeddingSpaceMismatch, EngineUnsupported, IndexUnavailable
from services.retriever.indexes.chunk_encoding import point_id
from services.retriever.models import EmbeddingSpace, MetadataCondition, RevisionKey, SearchScope
from services.retriever.options import QdrantOptions
from tests.contract.retriever_index_contract import KEY, SCOPE, store
from tests.contract.retriever_servers import remove_collections
from tests.doubles.http_double import OTHER_LOOPBACK, Failure
from tests.doubles.qdrant import QdrantServer, qdrant_server
from tests.unit.retriever.fakes import SPACE, embed, make_batch, make_chunk, write_key

NAME = collection_name("groundwork", SPACE)
COLLECTION = f"/collections/{NAME}"
APPLIED = {"wait": "true", "ordering": "strong"}


@pytest.fixture
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetryPolicy, "wait_s", lambda self, failures, asked_for_s: 0.001)


@pytest.fixture
async def server() -> AsyncIterator[QdrantServer]:
    async with qdrant_server() as double:
        yield double


@pytest.fixture
async def index(server: QdrantServer) -> AsyncIterator[QdrantIndex]:
    made = await QdrantIndex.open(QdrantOptions(server.url))
    await made.prepare(SPACE)
    server.requests.clear()
    yield made
    await made.close()


async def test_a_collection_is_made_complete_before_its_alias(server: QdrantServer) -> None:
    made = await QdrantIndex.open(QdrantOptions(server.url, shards=4, replicas=3))
    await made.prepare(SPACE)
    await made.close()
    changes = [request for request in server.requests if request.method != "GET"]
    assert [request.path for request in changes] == [COLLECTION, *[f"{COLLECTION}/index"] * 10, "/collections/aliases"]
    assert changes[0].body == {
        "vectors": {"size": SPACE.dimension, "distance": "Dot"},
        "hnsw_config": {"m": 0, "payload_m": 16},
        "on_disk_payload": True,
        "shard_number": 4,
        "replication_factor": 3,
        "write_consistency_factor": 2,
        "metadata": {"embedding_model": SPACE.model, "dimension": SPACE.dimension},
    }
    assert all(request.query == APPLIED for request in changes[1:-1])
    assert {request.body["field_name"]: request.body["field_schema"] for request in changes[1:-1]} == {
        "tenant": {"type": "keyword", "is_tenant": True},
        "collection": {"type": "keyword"},
        "document": {"type": "keyword"},
        "metadata": {"type": "keyword"},
        "language": {"type": "keyword"},
        "revision": {"type": "keyword", "on_disk": True},
        "write": {"type": "keyword", "on_disk": True},
        "chunk": {"type": "keyword", "on_disk": True},
        "date": {"type": "integer", "lookup": False, "range": True},
        "ordinal": {"type": "integer", "lookup": True, "range": False, "on_disk": True},
    }
    create_alias = {"collection_name": NAME, "alias_name": "groundwork"}
    assert changes[-1].body == {"actions": [{"create_alias": create_alias}]}


async def test_points_are_sent_in_bounded_requests_that_wait_until_applied(
    server: QdrantServer, index: QdrantIndex
) -> None:
    chunks = [make_chunk(f"solar {n}", n, key=KEY, metadata={"date": "1970-01-02"}) for n in range(150)]
    await index.write(write_key(KEY), make_batch(chunks))
    sent = server.asked("PUT", "/points")
    assert [len(request.body["points"]) for request in sent] == [64, 64, 22]
    assert all(request.query == APPLIED for request in sent)
    point = sent[0].body["points"][1]
    assert point["id"] == str(point_id("local", "r1-1"))
    assert point["vector"] == pytest.approx(embed(["solar 1"])[0].tolist())
    stored = point["payload"].pop("stored")
    assert stored.startswith("r1-1\x1fd1\x1fr1\x1f")
    assert point["payload"] == {
        "tenant": ["local"],
        "collection": ["default"],
        "document": ["d1"],
        "revision": ["local\x1fd1\x1fr1"],
        "write": ["local\x1fd1\x1fr1\x1f0\x1fa"],
        "chunk": ["r1-1"],
        "metadata": ["date\x1f1970-01-02"],
        "date": 86400,
        "ordinal": 1,
    }


async def test_a_search_sends_every_clause_with_every_vector(server: QdrantServer, index: QdrantIndex) -> None:
    scope = SearchScope("local", ("a", "b"), ("d1",), (MetadataCondition("year", ("2024",)),), 5, 9, ("c1",))
    vectors = embed(["solar", "wind"])
    await index.search(scope, vectors, 7)
    (asked,) = server.asked("POST", "/points/query/batch")
    assert asked.path == f"{COLLECTION}/points/query/batch"
    condition = {
        "must": [
            {"key": "tenant", "match": {"any": ["local"]}},
            {"key": "collection", "match": {"any": ["a", "b"]}},
            {"key": "document", "match": {"any": ["d1"]}},
            {"key": "metadata", "match": {"any": ["year\x1f2024"]}},
            {"key": "date", "range": {"gte": 5, "lt": 9}},
            {"key": "chunk", "match": {"any": ["c1"]}},
        ]
    }
    rest = {"filter": condition, "limit": 7, "with_payload": ["stored"], "with_vector": False}
    assert [search["query"]["nearest"] for search in asked.body["searches"]] == [
        pytest.approx(vector.tolist()) for vector in vectors
    ]
    assert all({**search, "query": None} == {**rest, "query": None} for search in asked.body["searches"])


async def test_cosines_are_asked_for_by_id_and_exactly(server: QdrantServer, index: QdrantIndex) -> None:
    await index.cosines("local", ["r1-0"], embed(["solar"]))
    (asked,) = server.asked("POST", "/points/query/batch")
    (search,) = asked.body["searches"]
    assert search.pop("query")["nearest"] == pytest.approx(embed(["solar"])[0].tolist())
    assert search == {
        "filter": {"must": [{"has_id": [str(point_id("local", "r1-0"))]}]},
        "limit": 1,
        "params": {"exact": True},
        "with_payload": False,
        "with_vector": False,
    }


async def test_a_commit_deletes_only_what_another_attempt_left(server: QdrantServer, index: QdrantIndex) -> None:
    await store(index, KEY, ["one", "two"], "a")
    assert server.asked("POST", "/points/delete") == []
    assert await store(index, KEY, ["one"], "b") == 1
    (deletion,) = server.asked("POST", "/points/delete")
    assert deletion.query == APPLIED
    revision = {"key": "revision", "match": {"any": ["local\x1fd1\x1fr1"]}}
    assert deletion.body == {
        "filter": {
            "must": [{"key": "tenant", "match": {"any": ["local"]}}, revision],
            "must_not": [{"key": "write", "match": {"any": ["local\x1fd1\x1fr1\x1f0\x1fb"]}}],
        }
    }


async def test_attempts_are_counted_by_a_facet(server: QdrantServer, index: QdrantIndex) -> None:
    await store(index, KEY, ["one"])
    await index.writes()
    (asked,) = server.asked("POST", "/facet")
    assert asked.body == {"key": "write", "limit": 1_000_000, "exact": True}


async def test_answers_come_in_one_piece_also_where_connections_are_kept() -> None:
    """A compressed answer leaves the server in several writes, and on a kept connection the second waits 40 ms."""
    async with qdrant_server(host=OTHER_LOOPBACK) as server:
        index = await QdrantIndex.open(QdrantOptions(server.url))
        await index.prepare(SPACE)
        await store(index, KEY, [f"solar panel number {n}" for n in range(30)])
        assert len((await index.search(SCOPE, embed(["solar panel"]), 30))[0]) == 30
        assert server.compressed_count == 0
        async with httpx.AsyncClient() as other:  # the double does what the server does
            await other.post(f"{server.url}{COLLECTION}/points/scroll", json={"limit": 30, "with_payload": True})
        assert server.compressed_count == 1
        await index.close()


async def test_what_the_contract_suite_made_on_a_server_is_removed_without_a_warning() -> None:
    async with qdrant_server("1.99.0") as server:  # a version that the client would warn of
        index = await QdrantIndex.open(QdrantOptions(server.url, collection="test-1"))
        await index.prepare(SPACE)
        await index.close()
        server.requests.clear()
        await remove_collections(server.url, "test-1")
        assert len(server.asked("DELETE", "")) == 1
        assert server.asked("GET", "/") == [], "its version is not asked for"


async def test_counts_are_exact(server: QdrantServer, index: QdrantIndex) -> None:
    await index.count(KEY)
    assert server.asked("POST", "/points/count")[0].body["exact"] is True


@pytest.mark.usefixtures("_short_pauses")
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_writes_are_tried_again_when_the_server_is_in_trouble(
    server: QdrantServer, index: QdrantIndex, status: int
) -> None:
    server.failures += [Failure("PUT /collections", status, "busy")] * 4
    assert await store(index, KEY, ["one"]) == 1
    assert len(server.asked("PUT", "/points")) == 5


@pytest.mark.usefixtures("_short_pauses")
async def test_a_restart_between_write_and_commit_is_waited_for(server: QdrantServer, index: QdrantIndex) -> None:
    await index.write(write_key(KEY), make_batch([make_chunk("solar", key=KEY)]))
    server.failures += [Failure("/points/count", 503, "starting")] * 4
    assert await index.commit(write_key(KEY)) == 1


async def test_a_search_is_tried_once_more_and_no_more(server: QdrantServer, index: QdrantIndex) -> None:
    server.failures += [Failure("query/batch", 503, {"status": {"error": "shard is dead"}})] * 5
    with pytest.raises(IndexUnavailable, match="answered 503: shard is dead"):
        await index.search(SCOPE, embed(["solar"]), 3)
    assert len(server.asked("POST", "/query/batch")) == 2


async def test_what_the_server_finds_wrong_is_not_sent_again(server: QdrantServer, index: QdrantIndex) -> None:
    error = {"status": {"error": "Wrong input: Vector dimension error: expected dim: 32, got 3"}}
    server.failures += [Failure("/points", 400, error)]
    with pytest.raises(IndexUnavailable, match="answered 400: Wrong input: Vector dimension"):
        await store(index, KEY, ["one"])
    assert len(server.asked("PUT", "/points")) == 1


async def test_a_pause_that_the_server_asks_for_is_not_begun_when_the_request_has_no_time_for_it(
    server: QdrantServer, index: QdrantIndex
) -> None:
    set_remaining(20.0)
    server.failures += [Failure("/points", 429, {"status": {"error": "rate limit"}}, {"Retry-After": "30"})]
    with pytest.raises(IndexUnavailable, match="asked too much: rate limit") as caught:
        await store(index, KEY, ["one"])
    assert caught.value.retry_after_s == 30.0


async def test_points_that_are_not_applied_yet_do_not_count_as_written(
    server: QdrantServer, index: QdrantIndex
) -> None:
    server.update_status = "wait_timeout"
    with pytest.raises(IndexUnavailable, match="has not applied it yet"):
        await store(index, KEY, ["one"])


@dataclass(frozen=True)
class Refused:
    """A server that must not be used, and what is said about it."""

    version: str
    says: str


@pytest.mark.parametrize(
    "case",
    [
        Refused("1.15.4", "is version 1.15.4; this release works with 1.16 and later"),
        Refused("2.0.0", "is version 2.0.0"),
        Refused("unknown", "check GROUNDWORK_QDRANT_URL"),
    ],
)
async def test_a_server_of_another_age_is_refused_at_start(case: Refused) -> None:
    async with qdrant_server(case.version) as server:
        with pytest.raises(EngineUnsupported, match=case.says):
            await QdrantIndex.open(QdrantOptions(server.url))


@pytest.mark.parametrize("version", ["1.16.0", "1.20.3", "1.21.0-dev"])
async def test_servers_of_this_age_are_taken(version: str) -> None:
    async with qdrant_server(version) as server:
        await (await QdrantIndex.open(QdrantOptions(server.url))).close()


async def test_a_server_that_comes_up_late_is_found() -> None:
    options = QdrantOptions("http://user:hidden@127.0.0.1:9")  # the discard port: nobody listens
    index = await QdrantIndex.open(options)
    with pytest.raises(IndexUnavailable, match="GROUNDWORK_QDRANT_URL") as caught:
        await index.count(KEY)
    assert "hidden" not in caught.value.message
    await index.close()


async def test_a_server_that_never_answers_does_not_hold_up_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.retriever.adapters.qdrant.index.OPEN_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the system takes connections, and nobody reads from them
        index = await QdrantIndex.open(QdrantOptions(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        assert index.space is None
        await index.close()


@pytest.mark.usefixtures("_short_pauses")
async def test_a_server_that_takes_connections_and_never_answers_is_said_to_be_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(qdrant_connection, "READ_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index = QdrantIndex(QdrantOptions(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        for call in (index.prepare(SPACE), index.count(KEY)):
            with pytest.raises(IndexUnavailable, match=r"did not answer in time \(ReadTimeout\)") as caught:
                await call
            assert "GROUNDWORK_QDRANT_URL" not in caught.value.message
        await index.close()


async def test_the_api_key_is_sent_and_a_wrong_one_is_said(server: QdrantServer) -> None:
    server.api_key = "right"
    index = await QdrantIndex.open(QdrantOptions(server.url, SecretStr("right")))
    await index.prepare(SPACE)
    await index.close()
    wrong = await QdrantIndex.open(QdrantOptions(server.url, SecretStr("wrong")))
    with pytest.raises(IndexUnavailable, match="check GROUNDWORK_QDRANT_API_KEY"):
        await wrong.prepare(SPACE)
    await wrong.close()


async def test_a_second_process_finds_what_the_first_made_and_refuses_another_model(
    server: QdrantServer, index: QdrantIndex
) -> None:
    second = await QdrantIndex.open(QdrantOptions(server.url))
    assert second.space == SPACE
    with pytest.raises(EmbeddingSpaceMismatch, match="remove the alias 'groundwork'"):
        await second.prepare(EmbeddingSpace("other", 8))
    await second.close()


async def test_another_model_may_come_in_once_the_alias_was_removed(server: QdrantServer, index: QdrantIndex) -> None:
    await server.remove_alias("groundwork")
    other = EmbeddingSpace("other", 8)
    await index.prepare(other)
    assert index.space == other


async def test_two_processes_may_create_at_once(server: QdrantServer) -> None:
    first, second = [await QdrantIndex.open(QdrantOptions(server.url)) for _ in range(2)]
    await first.prepare(SPACE)
    await second.prepare(SPACE)  # it had found nothing when it was opened
    server.failures += [Failure(f"PUT {COLLECTION}", 409, {"status": {"error": "already exists!"}})]
    third = QdrantIndex(QdrantOptions(server.url))
    await third._create(SPACE)
    for index in (first, second, third):
        await index.close()


async def test_a_collection_that_was_removed_is_made_again(server: QdrantServer, index: QdrantIndex) -> None:
    await store(index, KEY, ["one"])
    await server.lose_everything()
    with pytest.raises(IndexUnavailable, match="answered 404"):
        await index.search(SCOPE, embed(["one"]), 3)
    assert await index.search(SCOPE, embed(["one"]), 3) == [[]]
    await index.prepare(SPACE)
    assert await store(index, RevisionKey("local", "d2", "r2"), ["two"]) == 1


def test_names_of_collections_tell_models_apart() -> None:
    names = [collection_name("g", EmbeddingSpace(model, 3)) for model in ("a/b", "a-b", "A/B", "a/b c")]
    assert len(set(names)) == 4
    assert names[0].startswith("g-a-b-3-")


def test_pauses_grow_are_random_and_respect_the_server() -> None:
    policy = RetryPolicy(attempts=9, first_wait_s=0.25, longest_wait_s=2.0)
    waits = [[policy.wait_s(failures, None) for _ in range(50)] for failures in range(1, 5)]
    assert all(max(shorter) <= min(longer) for shorter, longer in pairwise(waits))
    assert all(0.125 <= wait <= 2.0 for row in waits for wait in row)
    assert len({*waits[0]}) > 1
    assert policy.wait_s(99, None) <= 2.0
    assert policy.wait_s(1, 7.0) == 7.0


async def test_a_failure_that_is_final_is_raised_at_once() -> None:
    calls: list[Any] = []

    async def call() -> None:
        calls.append(None)
        raise ValueError

    with pytest.raises(ValueError):
        await server_retry.retried(call, server_retry.WRITE, lambda _: None)
    assert len(calls) == 1
