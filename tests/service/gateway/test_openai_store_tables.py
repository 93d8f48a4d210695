"""The tables of docs/openai.md for files, vector stores and embeddings: each word of a row is tried; one without a case fails."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from groundwork.ingest.v1 import ingest_pb2

from tests.service.gateway.conftest import World
from tests.service.gateway.fakes import document
from tests.service.gateway.test_openai_table import WORDS, rows

STORES, STORE = "/v1/vector_stores", "/v1/vector_stores/contracts"
FILE, OTHER = "d0000001", "d0000002"
_KEPT = ingest_pb2.DOCUMENT_STATUS_KEPT

Shown = Callable[[Any, World], Any]


@dataclass(frozen=True)
class Call:
    """A call, the word of its row that it tries, and how an answer shows it."""

    word: str
    method: str
    path: str
    body: dict[str, Any] = field(default_factory=dict)
    """`json`, `params` or `files` of the request."""
    shown: Shown = lambda answer, world: True
    names: str = ""
    """What the header names of a call that ignores something."""


def honoured(shown: Shown, path: str, method: str = "POST", **body: Any) -> Call:
    return Call("honoured", method, path, body, shown)


def refused(path: str, **body: Any) -> Call:
    return Call("refused", "POST", path, body)


def ignored(names: str, path: str, method: str = "POST", **body: Any) -> Call:
    return Call("ignored", method, path, body, names=names)


def upload(purpose: str) -> list[Any]:
    return [("purpose", (None, purpose)), ("file", ("a.txt", b"Four weeks."))]


def embedding(**changed: Any) -> dict[str, Any]:
    return {"json": {"model": "small", "input": "ab", **changed}}


def added(world: World) -> ingest_pb2.Document:
    (copy,) = [each for each in world.ingest.documents.values() if each.copy_of == FILE]
    return copy


def is_added(_: Any, world: World) -> bool:
    return added(world).collection_id == "contracts"


SEARCH = f"{STORE}/search"
FILES = f"{STORE}/files"
FEW, MANY = {"year": 2026}, {f"n{number}": "x" for number in range(17)}
EQUAL = {"type": "eq", "key": "year", "value": 2026}
CALLS: dict[str, list[Call]] = {
    "file": [honoured(lambda _, world: world.ingest.received_bytes == 11, "/v1/files", files=upload("assistants"))],
    "purpose": [
        honoured(
            lambda _, world: world.ingest.headers[-1].metadata["purpose"] == "user_data",
            "/v1/files",
            files=upload("user_data"),
        ),
        refused("/v1/files", files=upload("fine-tune")),
    ],
    "name": [honoured(lambda _, world: "Mine" in str(world.ingest.updates), STORE, json={"name": "Mine"})],
    "file_id": [honoured(lambda answer, _: answer["id"] == FILE, FILES, json={"file_id": FILE})],
    "file_ids": [
        honoured(is_added, f"{STORE}/file_batches", json={"file_ids": [FILE]}),
        refused(f"{STORE}/file_batches", json={"file_ids": [FILE] * 501}),
    ],
    "files": [
        honoured(
            lambda answer, world: is_added(answer, world) and added(world).metadata["year"] == "2026",
            f"{STORE}/file_batches",
            json={"files": [{"file_id": FILE, "attributes": FEW}]},
        ),
        refused(f"{STORE}/file_batches", json={"files": [{"file_id": FILE}] * 501}),
    ],
    "attributes": [
        honoured(
            lambda answer, _: answer["attributes"] == {"year": "2026"}, FILES, json={"file_id": FILE, "attributes": FEW}
        ),
        refused(FILES, json={"file_id": FILE, "attributes": MANY}),
    ],
    "limit": [honoured(lambda answer, _: len(answer["data"]) == 1, "/v1/files", "GET", params={"limit": 1})],
    "after": [
        honoured(
            lambda _, world: world.ingest.listed[-1].after_document_id == FILE,
            "/v1/files",
            "GET",
            params={"after": FILE},
        )
    ],
    "order": [
        honoured(lambda _, world: world.ingest.listed[-1].oldest_first, "/v1/files", "GET", params={"order": "asc"}),
    ],
    "filter": [honoured(lambda answer, _: not answer["data"], FILES, "GET", params={"filter": "failed"})],
    "before": [ignored("", "/v1/files", "GET", params={"before": FILE})],
    "query": [
        honoured(
            lambda _, world: list(world.retriever.requests[-1].queries) == ["notice"], SEARCH, json={"query": "notice"}
        )
    ],
    "max_num_results": [
        honoured(
            lambda _, world: world.retriever.requests[-1].top_k == 3,
            SEARCH,
            json={"query": "notice", "max_num_results": 3},
        )
    ],
    "filters": [
        honoured(
            lambda _, world: world.retriever.requests[-1].filter.metadata[0].key == "year",
            SEARCH,
            json={"query": "notice", "filters": EQUAL},
        ),
        refused(SEARCH, json={"query": "notice", "filters": {**EQUAL, "type": "gt"}}),
    ],
    "ranking_options.score_threshold": [
        honoured(
            lambda _, world: world.retriever.requests[-1].min_score == 0.5,
            SEARCH,
            json={"query": "notice", "ranking_options": {"score_threshold": 0.5}},
        )
    ],
    "chunking_strategy": [
        ignored("chunking_strategy", FILES, json={"file_id": FILE, "chunking_strategy": {"type": "auto"}}),
    ],
    "expires_after": [ignored("expires_after", STORES, json={"expires_after": {"days": 1}})],
    "metadata": [ignored("metadata", STORES, json={"metadata": {"a": "b"}})],
    "description": [ignored("description", STORES, json={"description": "Leases."})],
    "rewrite_query": [ignored("rewrite_query", SEARCH, json={"query": "notice", "rewrite_query": True})],
    "ranking_options.ranker": [
        ignored("ranking_options.ranker", SEARCH, json={"query": "notice", "ranking_options": {"ranker": "auto"}})
    ],
    "model": [
        honoured(lambda answer, _: answer["model"] == "small", "/v1/embeddings", **embedding()),
        refused("/v1/embeddings", **embedding(model="text-embedding-3-small")),
    ],
    "input": [
        honoured(lambda answer, _: len(answer["data"]) == 2, "/v1/embeddings", **embedding(input=["ab", "c"])),
        refused("/v1/embeddings", **embedding(input=[[1, 2]])),
    ],
    "encoding_format": [
        honoured(
            lambda answer, _: isinstance(answer["data"][0]["embedding"], str),
            "/v1/embeddings",
            **embedding(encoding_format="base64"),
        )
    ],
    "dimensions": [
        honoured(lambda answer, _: len(answer["data"]) == 1, "/v1/embeddings", **embedding(dimensions=2)),
        refused("/v1/embeddings", **embedding(dimensions=3)),
    ],
    "input_type": [
        honoured(
            lambda _, world: world.reranker.requests[-1].kind == 1, "/v1/embeddings", **embedding(input_type="query")
        )
    ],
    "user": [ignored("user", "/v1/embeddings", **embedding(user="ann"))],
}
TABLE = [*rows("Files and vector stores"), *rows("Embeddings")]


async def test_parameters_do_what_the_tables_say(client: httpx.AsyncClient, world: World) -> None:
    for name, cells in TABLE:
        calls = CALLS.get(name, [])
        assert {each.word for each in calls} == {word for word in WORDS if word in cells[0]}, (name, cells)
        for call in calls:
            world.ingest.documents = {
                each: document(each, status=_KEPT, name="ab/a.txt", collection_id="files") for each in (FILE, OTHER)
            }
            answer = await client.request(call.method, call.path, **call.body)
            if call.word == "refused":
                assert answer.status_code in (400, 404), (name, answer.text)
                assert answer.json()["error"]["param"].startswith(name)
                continue
            assert answer.status_code == 200, (name, answer.text)
            assert answer.headers.get("x-groundwork-ignored", "") == call.names, name
            assert call.shown(answer.json(), world), (name, answer.text)


def test_every_call_is_of_a_parameter_in_the_tables() -> None:
    assert set(CALLS) <= {name for name, _ in TABLE}
