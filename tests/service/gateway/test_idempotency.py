"""Idempotency keys at the edge: each request that starts something hands its key on, and what a service says of it comes back."""

from typing import Any

import httpx
import pytest

from kit.stores.idempotency import IdempotencyConflict, IdempotencyInFlight
from tests.service.gateway.conftest import World

KEY = "7d9f5b1e-0000-4000-8000-1c2d3e4f5a6b"
HEADERS = {"Idempotency-Key": KEY}
STARTS: dict[str, dict[str, Any]] = {
    "/v1/qa": {"json": {"question": "How long?"}},
    "/v1/collections/default/chat": {"json": {"message": "How long?"}},
    "/v1/chat": {"json": {"message": "How long?"}},
    "/v1/threads": {"json": {"title": "Notice"}},
    "/v1/collections": {"json": {"id": "contracts"}},
    "/v1/collections/default/documents": {"files": {"file": ("a.txt", b"text")}},
    "/v1/documents/d1/reindex": {},
}


@pytest.mark.parametrize("path", STARTS)
async def test_key_is_documented_where_something_is_started(client: httpx.AsyncClient, path: str) -> None:
    template = path.replace("/default/", "/{collection_id}/").replace("/d1/", "/{document_id}/")
    parameters = (await client.get("/openapi.json")).json()["paths"][template]["post"]["parameters"]
    assert "idempotency-key" in {each["name"].lower() for each in parameters}


async def test_key_is_handed_on(client: httpx.AsyncClient, world: World) -> None:
    await client.post("/v1/qa", **STARTS["/v1/qa"], headers=HEADERS)
    await client.post("/v1/collections/default/chat", **STARTS["/v1/collections/default/chat"], headers=HEADERS)
    await client.post("/v1/chat", **STARTS["/v1/chat"], headers=HEADERS)
    assert [each.idempotency_key for each in world.orchestrator.requests] == [KEY, KEY, KEY]
    await client.post("/v1/qa", **STARTS["/v1/qa"])
    assert world.orchestrator.requests[-1].idempotency_key == ""


@pytest.mark.parametrize("key", ["", "two words", "é", "x" * 256])
async def test_key_that_is_none_is_refused(client: httpx.AsyncClient, key: str) -> None:
    answer = await client.post("/v1/qa", **STARTS["/v1/qa"], headers={"Idempotency-Key": key.encode()})
    assert answer.status_code == 400, answer.text
    assert "UUID" in answer.json()["detail"]
    assert "Value error" not in answer.text


async def test_run_that_is_still_going_on_is_409_and_says_when_and_where(
    client: httpx.AsyncClient, world: World
) -> None:
    world.orchestrator.start_failure = IdempotencyInFlight("still going on", retry_after_s=2.0, run_id="r1")
    answer = await client.post("/v1/qa", **STARTS["/v1/qa"], headers=HEADERS)
    body = answer.json()
    assert (answer.status_code, answer.headers["Retry-After"]) == (409, "2")
    assert (body["reason"], body["run_id"], body["retryable"]) == ("IDEMPOTENCY_KEY_IN_FLIGHT", "r1", True)


async def test_key_used_for_another_request_is_409_for_good(client: httpx.AsyncClient, world: World) -> None:
    world.orchestrator.start_failure = IdempotencyConflict("used for another question")
    answer = await client.post("/v1/qa", **STARTS["/v1/qa"], headers=HEADERS)
    assert answer.status_code == 409
    assert "Retry-After" not in answer.headers
    assert (answer.json()["reason"], answer.json()["retryable"]) == ("IDEMPOTENCY_KEY_REUSED", False)
