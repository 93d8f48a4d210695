"""The routes of language models, and questions that bring one."""

from typing import Any
from unittest.mock import Mock
from urllib.parse import quote

import httpx
import pytest

from kit.access.principal import Principal
from services.gateway.api import create_api
from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import World, act_as

SECRET = "sk-very-secret"


async def test_models_are_shown_in_their_public_shape(client: httpx.AsyncClient) -> None:
    shown = (await client.get("/v1/models")).json()
    offered = shown.pop("data")
    assert {each["object"] for each in offered} == {"model"}
    assert shown == {
        "object": "list",
        "operations": [
            {
                "operation": "answer",
                "chain": [{"provider": "gpu", "model": "qwen"}],
                "set": False,
                "set_by": "",
                "set_at": None,
            }
        ],
        "providers": [
            {
                "name": "gpu",
                "preset": "vllm",
                "models": ["qwen"],
                "any_model": False,
                "state": "half_open",
                "problem": "gpu:8000 answers with HTTP 503; look at the server",
            }
        ],
    }


async def test_the_local_user_is_an_operator_and_sets_a_model(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.put("/v1/models/answer", json={"provider": "openai", "model": "gpt", "force": True})
    assert (answer.status_code, answer.json()["set_by"]) == (200, "local-user")
    (asked,) = world.orchestrator.set_models
    assert (asked.operation, asked.model.provider, asked.model.model, asked.force) == ("answer", "openai", "gpt", True)
    assert (await client.delete("/v1/models/answer")).json()["set"] is False


async def test_who_is_no_operator_may_not(client: httpx.AsyncClient, world: World) -> None:
    act_as(client, Principal("local", "guest"))
    for answer in (
        await client.put("/v1/models/answer", json={"provider": "gpu", "model": "m"}),
        await client.delete("/v1/models/answer"),
    ):
        assert (answer.status_code, answer.json()["reason"]) == (403, "SCOPE_MISSING")
    assert not world.orchestrator.set_models


@pytest.mark.parametrize("name", ["groundwork", "groundwork/research", "groundwork@handbook", "groundwork/embedding"])
async def test_model_is_found_by_its_name(client: httpx.AsyncClient, name: str) -> None:
    assert (await client.get(f"/v1/models/{quote(name, safe='')}")).json() == {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "groundwork",
    }


async def test_model_that_is_not_offered_is_an_error_that_clients_know(client: httpx.AsyncClient) -> None:
    for name in ("gpt-5", "groundwork%2Fnone", "groundwork/none"):
        answer = await client.get(f"/v1/models/{name}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
    for name in ("gpt%2F5", "groundwork%2Fa%2Fb"):
        assert (await client.get(f"/v1/models/{name}")).json()["reason"] == "ROUTE_NOT_FOUND"
    assert (await client.delete("/v1/models/groundwork%2Fnone")).json()["reason"] == "ROUTE_NOT_FOUND"


@pytest.mark.parametrize("path", ["/v1/qa", "/v1/collections/default/chat"])
async def test_a_question_brings_its_model(client: httpx.AsyncClient, world: World, path: str) -> None:
    model = {"base_url": "https://api.example.com/v1", "api_key": SECRET, "model": "mine", "preset": "openai"}
    name = "question" if path == "/v1/qa" else "message"
    assert (await client.post(path, json={name: "How long?", "model": model})).status_code == 200
    given = world.orchestrator.requests[0].model_credentials
    assert (given.base_url, given.api_key, given.model, given.preset) == tuple(model.values())


async def test_a_question_without_a_model_brings_none(client: httpx.AsyncClient, world: World) -> None:
    await client.post("/v1/qa", json={"question": "How long?"})
    assert not world.orchestrator.requests[0].HasField("model_credentials")


@pytest.mark.parametrize(
    "wrong",
    [{"model": ""}, {"preset": "gpt"}, {"api_key": [SECRET]}, {"api_key": SECRET * 1000}, {"key": SECRET}],
)
async def test_a_model_that_cannot_be_is_refused_without_repeating_its_key(
    client: httpx.AsyncClient, wrong: dict[str, object], logs: list[Any]
) -> None:
    model = {"api_key": SECRET, "model": "mine", **wrong}
    answer = await client.post("/v1/qa", json={"question": "How long?", "model": model})
    assert (answer.status_code, answer.json()["reason"]) == (400, "VALIDATION_FAILED")
    assert SECRET not in answer.text + repr(logs)


def test_the_key_is_marked_as_a_secret_in_the_reference() -> None:
    document = create_api(Mock(settings=GatewaySettings())).openapi()
    key = document["components"]["schemas"]["BroughtModel"]["properties"]["api_key"]
    assert (key["format"], key["writeOnly"]) == ("password", True)
