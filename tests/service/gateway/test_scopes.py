"""Each route names the scope that it needs, and refuses who lacks it before it asks a service, reads a file or begins a stream."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from kit.access.principal import ADMIN, INGEST, OPERATOR, QUERY, SCOPES, Principal
from services.gateway.access.scopes import declared_scopes
from tests.service.gateway.conftest import Settings, World, act_as, in_process
from tests.service.gateway.test_openapi_enforced import Operation, operations

WITHOUT_A_SCOPE = {"/livez", "/readyz", "/guests", "/guests/challenge"}
"""What load balancers ask without a key, and how guests come in."""


EVERY_CALLERS = {
    ("/v1/me", "get"),
    ("/v1/keys", "get"),
    ("/v1/keys/{key_id}", "get"),
    ("/v1/keys/{key_id}", "delete"),
    ("/v1/keys/{key_id}/rotate", "post"),
}
"""About oneself and one's own keys, whatever they may do."""


def _act_as(client: httpx.AsyncClient, *scopes: str) -> None:
    act_as(client, Principal("local", "guest", frozenset(scopes)))


def _lacking(needed: str) -> list[tuple[str, str]]:
    """Every scope that does not grant all that is needed, with the first that it does not grant."""
    held = {each: Principal("local", "guest", frozenset({each})) for each in SCOPES}
    missing = {each: [scope for scope in needed.split() if not by.may(scope)] for each, by in held.items()}
    return [(each, scopes[0]) for each, scopes in missing.items() if scopes]


async def test_each_route_declares_a_scope_and_the_document_shows_it(client: httpx.AsyncClient) -> None:
    transport: Any = client._transport
    declared = declared_scopes(transport.app)
    assert {path for (path, _), scope in declared.items() if scope is None} == WITHOUT_A_SCOPE
    assert {place for place, scope in declared.items() if scope == ""} == EVERY_CALLERS
    shown = {
        (path, method): operation.get("x-required-scope")
        for path, methods in transport.app.openapi()["paths"].items()
        for method, operation in methods.items()
    }
    assert shown == {place: scope or None for place, scope in declared.items()}


async def test_route_is_open_to_the_scope_that_it_declares(client: httpx.AsyncClient, world: World) -> None:
    """The services behind it ask for no more."""
    openapi = (await client.get("/openapi.json")).json()
    tried = 0
    for each in operations(openapi):
        scope = openapi["paths"][each.path][each.method.lower()].get("x-required-scope")
        if scope:
            _act_as(client, *scope.split())
            answer = await each.ask(client)
            assert answer.status_code != 403, (each, answer.text)
            tried += 1
    assert tried > 20


async def test_route_refuses_every_other_scope_before_any_service_is_asked(settings: Settings, world: World) -> None:
    await world.kill()  # whatever is asked of a service ends with 503
    async with in_process(settings(rpc_timeout_s=0.2, health_timeout_s=0.2)) as client:
        openapi = (await client.get("/openapi.json")).json()
        for each in operations(openapi, streams=True):
            scope = openapi["paths"][each.path][each.method.lower()].get("x-required-scope")
            for held, missing in _lacking(scope or ""):
                _act_as(client, held)
                await _assert_refused(await each.ask(client), missing)
                await _assert_refused(await _ask_badly(client, each), missing)


async def _ask_badly(client: httpx.AsyncClient, operation: Operation) -> httpx.Response:
    """With a body that no route takes: who may not ask is not told what would be right."""
    return await operation.ask(client, **({"body": {"unknown": 1}} if operation.body else {}))


async def _assert_refused(answer: httpx.Response, scope: str) -> None:
    body = answer.json()
    if "error" in body:  # in the shape of OpenAI's API
        assert (answer.status_code, body["error"]["code"]) == (403, "scope_missing"), answer.text
        assert repr(scope) in body["error"]["message"]
        return
    assert (answer.status_code, body["reason"], body["scope"]) == (403, "SCOPE_MISSING", scope), answer.text
    assert repr(scope) in body["detail"]


async def test_file_is_not_read_of_who_may_not_upload(client: httpx.AsyncClient) -> None:
    async def file() -> AsyncIterator[bytes]:
        pytest.fail("the body was read")
        yield b""

    _act_as(client, QUERY)
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = await client.post("/v1/collections/default/documents", content=file(), headers=headers)
    await _assert_refused(answer, INGEST)


@pytest.mark.parametrize(("held", "status"), [(QUERY, 403), (INGEST, 403), (ADMIN, 403), (OPERATOR, 200)])
async def test_models_are_set_by_operators_alone(client: httpx.AsyncClient, held: str, status: int) -> None:
    _act_as(client, held)
    answer = await client.put("/v1/models/answer", json={"provider": "gpu", "model": "m"})
    assert answer.status_code == status
