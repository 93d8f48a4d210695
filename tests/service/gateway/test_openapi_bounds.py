"""A walk over the OpenAPI document: nothing in a path, a query or a header is without bounds, and what is beyond them is refused
before any service hears of it."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.service.gateway.conftest import Settings, World, in_process
from tests.service.gateway.test_openapi_enforced import PATHS, operations, reason_of, resolved

NO_IDS = ("*", ">", "a.b", "a b", "\u0661" * 32, "\uff41" * 32, "a" * 129, "..%", "-", "\x00", "\ufffd")
"""What is an id of nothing: wildcards and separators of the message store, letters and digits of other scripts, too much."""


@pytest.fixture
async def alone(settings: Settings, world: World) -> AsyncIterator[httpx.AsyncClient]:
    """A gateway with no service behind it: whatever it asks of one ends with 503."""
    await world.kill()
    async with in_process(settings(rpc_timeout_s=0.2, health_timeout_s=0.2)) as client:
        yield client


async def test_each_path_parameter_has_a_pattern_and_every_other_one_has_bounds(alone: httpx.AsyncClient) -> None:
    openapi = (await alone.get("/openapi.json")).json()
    loose = [
        (each.path, parameter["in"], parameter["name"], schema)
        for each in operations(openapi, streams=True)
        for parameter in each.parameters
        for schema in resolved(parameter["schema"], openapi)
        if not _is_bounded(schema, openapi, parameter["in"])
    ]
    assert not loose, "\n".join(map(str, loose))
    in_paths = {p["name"] for each in operations(openapi) for p in each.parameters if p["in"] == "path"}
    assert in_paths == PATHS.keys()


def _is_bounded(schema: dict[str, Any], openapi: dict[str, Any], place: str) -> bool:
    match schema["type"]:
        case "string" if place == "path":
            return "enum" in schema or re.fullmatch(r"\^.*\$", schema["pattern"]) is not None
        case "string":
            return bool(schema.keys() & {"maxLength", "pattern", "enum", "const"})
        case "integer":
            return {"minimum", "maximum"} <= schema.keys()
        case "array":
            items = resolved(schema["items"], openapi)
            return "maxItems" in schema and all(_is_bounded(each, openapi, place) for each in items)
        case kind:
            return bool(kind in {"boolean", "null"})


async def test_what_is_no_id_is_refused_with_what_an_id_looks_like_before_any_service_is_asked(
    alone: httpx.AsyncClient,
) -> None:
    openapi = (await alone.get("/openapi.json")).json()
    tried = 0
    for each in operations(openapi, streams=True):
        for parameter in each.parameters:
            if parameter["in"] != "path":
                continue
            for text in NO_IDS:
                if parameter["name"] == "tool" and text in ("a.b", "-"):
                    continue  # tools of MCP servers may be called so
                answer = await each.ask(alone, **{parameter["name"]: text})
                body = answer.json()
                assert (answer.status_code, reason_of(body)) == (400, "VALIDATION_FAILED"), (each, text, body)
                (error,) = body.get("errors") or [{"field": body["error"]["param"], **body["error"]}]
                assert error["field"] == parameter["name"]
                assert re.search(r"is no [a-z ]*id; (use|it is)|is no such name; |must be one of ", error["message"]), (
                    body
                )
                assert "400" in openapi["paths"][each.path][each.method.lower()]["responses"]
                tried += 1
    assert tried > 15 * len(NO_IDS)


async def test_malformed_thread_in_a_body_is_refused_before_any_service_is_asked(alone: httpx.AsyncClient) -> None:
    for text in ("", "nope", "0123456789ab\n", "*", "0123456789AB"):
        body = {"message": "How long?", "thread_id": text}
        answer = await alone.post("/v1/collections/default/chat", json=body)
        assert (answer.status_code, reason_of(answer.json())) == (400, "VALIDATION_FAILED"), text


@pytest.mark.parametrize("more", ["%0A", "/", "%2F", "%2Fx", "%00", "%0A%0A", "%20", "%0D", "%3B", "%E2%80%A8"])
async def test_path_with_more_behind_it_is_not_taken_for_the_path(alone: httpx.AsyncClient, more: str) -> None:
    openapi = (await alone.get("/openapi.json")).json()
    paths = [re.sub(r"{(\w+)}", lambda match: PATHS[match[1]], path) for path in openapi["paths"]]
    for path, methods in zip(paths, openapi["paths"].values(), strict=True):
        for method in methods:
            answer = await alone.request(method, path + more)
            assert answer.status_code in {400, 404}, (method, path, more, answer.text)
            assert reason_of(answer.json()) in {"VALIDATION_FAILED", "ROUTE_NOT_FOUND"}


async def test_slash_within_an_id_leads_nowhere_else(alone: httpx.AsyncClient) -> None:
    answer = await alone.post("/v1/jobs/dead%2Frequeue/requeue")
    assert reason_of(answer.json()) == "ROUTE_NOT_FOUND"
    for id_ in ("a%2Fb", "..%2F..%2Fetc", "%2F", f"{PATHS['run_id']}%2Fcancel%2Fx"):
        answer = await alone.delete(f"/v1/runs/{id_}")
        assert (answer.status_code, reason_of(answer.json())) == (404, "ROUTE_NOT_FOUND"), id_
