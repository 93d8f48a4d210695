"""Files, vector stores and embeddings in OpenAI's shape: what of a request is honoured, refused with a reason, or named as ignored.
The whole way through the services is tried in tests/integration/test_openai.py."""

from typing import Any

import httpx
import pytest
from groundwork.ingest.v1 import ingest_pb2
from groundwork.reranker.v1 import reranker_pb2

from tests.service.gateway.conftest import World
from tests.service.gateway.fakes import document

KEPT = ingest_pb2.DOCUMENT_STATUS_KEPT
FILE = ("notes/a.txt", b"Four weeks.")


@pytest.mark.parametrize("fields", [[("purpose", "user_data")], []], ids=["purpose first", "file first"])
async def test_file_is_kept_in_a_folder_of_its_own_whatever_the_order_of_the_form(
    client: httpx.AsyncClient, world: World, fields: list[tuple[str, str]]
) -> None:
    parts: list[Any] = [(name, (None, value)) for name, value in fields]
    parts += [
        ("file", FILE),
        *([] if fields else [("purpose", (None, "user_data"))]),
        ("expires_after[seconds]", (None, "9")),
    ]
    answer = await client.post("/v1/files", files=parts)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-groundwork-ignored"] == "expires_after[seconds]"
    (header,) = world.ingest.headers
    assert (header.collection_id, header.keep, header.name[8:]) == ("files", True, "/a.txt")
    assert {**header.metadata, **world.ingest.late_metadata} == {"purpose": "user_data"}


async def test_file_for_another_purpose_is_refused_in_openais_shape(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.post("/v1/files", files=[("file", FILE), ("purpose", (None, "fine-tune"))])
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "unsupported_parameter", "purpose")
    assert world.ingest.committed == 0


async def test_file_of_a_store_is_known_by_the_id_of_its_upload(client: httpx.AsyncClient, world: World) -> None:
    world.ingest.documents = {"d0000001": document(status=KEPT, name="ab/handbook.pdf", collection_id="files")}
    added = (
        await client.post("/v1/vector_stores/contracts/files", json={"file_id": "d0000001", "attributes": {"n": 2.0}})
    ).json()
    assert (added["id"], added["vector_store_id"], added["attributes"]) == ("d0000001", "contracts", {"n": "2"})
    found = (await client.get("/v1/vector_stores/contracts/files/d0000001")).json()
    assert (found["id"], found["status"]) == ("d0000001", "in_progress")
    missing = await client.get("/v1/vector_stores/other/files/d0000001")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "file_not_in_store")
    await client.delete("/v1/vector_stores/contracts/files/d0000001")
    assert list(world.ingest.documents) == ["d0000001"]


async def test_batch_adds_nothing_where_a_file_is_missing(client: httpx.AsyncClient, world: World) -> None:
    world.ingest.documents = {"d0000001": document(status=KEPT, collection_id="files")}
    answer = await client.post("/v1/vector_stores/contracts/file_batches", json={"file_ids": ["d0000001", "d0000002"]})
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")
    assert list(world.ingest.documents) == ["d0000001"]
    both = await client.post("/v1/vector_stores/contracts/file_batches", json={})
    assert both.json()["error"]["param"] == "file_ids"


@pytest.mark.parametrize(
    ("filters", "conditions"),
    [
        ({"type": "eq", "key": "year", "value": 2026}, [("year", ["2026"])]),
        ({"type": "in", "key": "year", "value": ["2025", "2026"]}, [("year", ["2025", "2026"])]),
        (
            {
                "type": "and",
                "filters": [{"type": "eq", "key": "a", "value": True}, {"type": "eq", "key": "b", "value": "x"}],
            },
            [("a", ["true"]), ("b", ["x"])],
        ),
        (
            {
                "type": "or",
                "filters": [{"type": "eq", "key": "a", "value": "1"}, {"type": "eq", "key": "a", "value": "2"}],
            },
            [("a", ["1", "2"])],
        ),
        ({"type": "gt", "key": "year", "value": 2020}, None),
        (
            {
                "type": "or",
                "filters": [{"type": "eq", "key": "a", "value": "1"}, {"type": "eq", "key": "b", "value": "2"}],
            },
            None,
        ),
    ],
)
async def test_filters_are_equalities(
    client: httpx.AsyncClient, world: World, filters: dict[str, Any], conditions: list[tuple[str, list[str]]] | None
) -> None:
    body = {"query": "notice", "filters": filters, "rewrite_query": True, "ranking_options": {"ranker": "auto"}}
    answer = await client.post("/v1/vector_stores/default/search", json=body)
    if conditions is None:
        assert answer.json()["error"]["param"] == "filters"
        return
    assert answer.headers["x-groundwork-ignored"] == "ranking_options.ranker, rewrite_query"
    (request,) = world.retriever.requests
    assert [(each.key, list(each.values)) for each in request.filter.metadata] == conditions
    assert answer.json()["data"][0]["score"] == 0.5


async def test_embeddings_are_those_of_the_model_server(client: httpx.AsyncClient, world: World) -> None:
    body = {"model": "groundwork/embedding", "input": ["ab", "abc d"], "input_type": "query", "user": "ann"}
    answer = await client.post("/v1/embeddings", json=body)
    assert [each["embedding"] for each in answer.json()["data"]] == [[2.0, 1.0], [5.0, 1.0]]
    assert (answer.json()["model"], answer.json()["usage"]["total_tokens"]) == ("small", 3)
    assert answer.headers["x-groundwork-ignored"] == "user"
    (request,) = world.reranker.requests
    assert request.kind == reranker_pb2.EMBED_KIND_QUERY


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"model": "text-embedding-3-small"}, "model"),
        ({"dimensions": 3}, "dimensions"),
        ({"input": [[1, 2]]}, "input"),
        ({"input": [7]}, "input"),
    ],
)
async def test_embeddings_that_nobody_can_make_are_refused(
    client: httpx.AsyncClient, changed: dict[str, Any], param: str
) -> None:
    answer = await client.post("/v1/embeddings", json={"model": "small", "input": "ab", **changed})
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["param"] == param


async def test_file_is_deleted_although_somebody_else_has_copied_it(client: httpx.AsyncClient, world: World) -> None:
    stored = {
        "d0000001": document(status=KEPT, collection_id="files", copies={"theirs": "c1" * 16, "contracts": "c2" * 16}),
        "c1" * 16: document("c1" * 16, collection_id="theirs"),
        "c2" * 16: document("c2" * 16, collection_id="contracts"),
    }
    world.ingest.documents, world.ingest.others = stored, {"c1" * 16}
    answer = await client.delete("/v1/files/d0000001")
    assert (answer.status_code, list(world.ingest.documents)) == (200, ["c1" * 16])


async def test_files_of_a_purpose_are_listed_by_pages_that_are_full(client: httpx.AsyncClient, world: World) -> None:
    for number in range(9):
        purpose = "user_data" if number % 3 == 2 else "assistants"
        one = document(f"f000000{number}", collection_id="files", metadata={"purpose": purpose})
        world.ingest.documents[one.document_id] = one
    query: dict[str, Any] = {"purpose": "user_data", "limit": 2}
    page = (await client.get("/v1/files", params=query)).json()
    assert ([each["id"] for each in page["data"]], page["has_more"]) == (["f0000002", "f0000005"], True)
    page = (await client.get("/v1/files", params={**query, "limit": 3})).json()
    assert (len(page["data"]), page["has_more"]) == (3, False)
