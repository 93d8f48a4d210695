"""Search and passages over real gRPC: what a request says arrives, what the retriever answers comes back in the public shape."""

import httpx
import pytest
from groundwork.retriever.v1 import retriever_pb2

from kit.errors import GroundworkError, ResourceExhausted
from tests.service.gateway.conftest import World


async def test_search_passes_everything_on_and_flattens_hits(client: httpx.AsyncClient, world: World) -> None:
    request = {
        "query": "notice",
        "collection_ids": ["default", "contracts"],
        "top_k": 3,
        "filters": {"document_ids": ["d0000001"], "metadata": {"year": "2026", "kind": ["a", "b"]}},
        "explain": True,
        "strategy": "lexical",
        "rerank": "off",
        "fusion": "convex",
    }
    answer = await client.post("/v1/search", json=request)
    assert answer.status_code == 200
    sent = world.retriever.requests[0]
    assert list(sent.queries) == ["notice"]
    assert sent.top_k == 3
    assert {each.key: list(each.values) for each in sent.filter.metadata} == {"year": ["2026"], "kind": ["a", "b"]}
    assert sent.strategy == retriever_pb2.STRATEGY_LEXICAL
    assert sent.fusion == retriever_pb2.FUSION_METHOD_CONVEX
    hit = answer.json()["hits"][0]
    assert hit["chunk_id"] == "c1"
    assert hit["document_name"] == "handbook.pdf"
    assert hit["page"] == 3
    assert hit["score"] == 0.25
    assert hit["explain"]["dense_rank"] == 1
    assert hit["explain"]["lexical_rank"] is None
    assert answer.json()["timings_ms"] == {"total": 4.5}
    assert answer.json()["degraded"][0]["part"] == "rerank"
    assert answer.json()["strategy"] == "hybrid"


async def test_search_passes_on_all_that_overrides_the_defaults(client: httpx.AsyncClient, world: World) -> None:
    request = {
        "query": 'the "notice period"',
        "queries": ["resigning"],
        "query_weights": [1, 0.5],
        "must": ["two weeks"],
        "filters": {"date_from": "2024-01-01T12:00:00+02:00", "date_to": "2024-12-31"},
        "weights": {"dense": 0.7, "lexical": 0.3},
        "rerank": "auto",
        "diversity": 0.5,
        "min_score": 0.3,
        "window": 1,
        "cache": False,
        "explain": True,
    }
    answer = await client.post("/v1/search", json=request)
    assert answer.status_code == 200, answer.text
    sent = world.retriever.requests[0]
    assert list(sent.queries) == ['the "notice period"', "resigning"]
    assert (list(sent.query_weights), list(sent.must_phrases), sent.exact_quotes) == ([1, 0.5], ["two weeks"], True)
    assert sent.filter.date_from.ToJsonString() == "2024-01-01T10:00:00Z"
    assert sent.filter.date_to.ToJsonString() == "2025-01-01T00:00:00Z"
    assert (sent.weights.dense, sent.weights.lexical, sent.rerank) == (0.7, 0.3, retriever_pb2.RERANK_MODE_AUTO)
    assert (sent.diversity, sent.min_score, sent.window, sent.no_cache, sent.top_k) == (0.5, 0.3, 1, True, 0)
    body = answer.json()
    assert [each["chunk_id"] for each in body["hits"][0]["before"]] == ["c0"]
    assert body["cache"] == "miss"
    assert (body["plan"]["rerank"], body["plan"]["weights"]) == ("auto", {"dense": 0.5, "lexical": 0.5})


@pytest.mark.parametrize(
    ("request_body", "said"),
    [
        ({}, "give `query`, `queries` or both"),
        ({"query": "q", "queries": ["q"] * 8}, "1 to 8 queries, this one 9"),
        ({"query": "q", "query_weights": [1, 2]}, "2 query_weights came with 1 queries"),
        ({"query": "q", "query_weights": [0]}, "one of the query_weights must be over 0"),
        ({"query": "q", "weights": {"dense": 0, "lexical": 0}}, "one of the weights must be over 0"),
        ({"query": "q", "filters": {"date_from": "yesterday"}}, "write 2024-12-31 or 2024-12-31T18:00:00Z"),
        ({"query": "q", "diversity": 2}, "diversity"),
        ({"query": "q", "min_score": -2}, "min_score"),
        ({"query": "q", "window": 11}, "window"),
        ({"query": "q", "must": [""]}, "must"),
        ({"query": "q", "rerank": "maybe"}, "rerank"),
    ],
    ids=str,
)
async def test_a_search_that_makes_no_sense_is_refused_with_what_to_write(
    client: httpx.AsyncClient, world: World, request_body: dict[str, object], said: str
) -> None:
    answer = await client.post("/v1/search", json=request_body)
    assert answer.status_code == 400
    assert said in answer.text
    assert world.retriever.requests == []


async def test_search_without_explain_has_null_explain(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/search", json={"query": "notice"})
    assert answer.json()["hits"][0]["explain"] is None
    assert answer.json()["plan"] is None


async def test_passage_comes_with_its_neighbours(client: httpx.AsyncClient) -> None:
    body = (await client.get("/v1/chunks/c1?window=1")).json()
    assert body["chunk"]["chunk_id"] == "c1"
    assert body["chunk"]["page"] is None
    assert [each["chunk_id"] for each in body["before"] + body["after"]] == ["c0", "c2"]
    assert (await client.get("/v1/chunks/c9")).json()["reason"] == "CHUNK_NOT_FOUND"


@pytest.mark.parametrize("failure", [None, ResourceExhausted("too many searches", reason="TOO_MANY_SEARCHES")])
async def test_a_search_of_an_unknown_collection_is_404_whatever_the_retriever_says(
    client: httpx.AsyncClient, world: World, failure: GroundworkError | None
) -> None:
    world.retriever.failure = failure
    answer = await client.post("/v1/search", json={"query": "notice", "collection_ids": ["default", "nope"]})
    assert (answer.status_code, answer.json()["reason"]) == (404, "COLLECTION_NOT_FOUND")
